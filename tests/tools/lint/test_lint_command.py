"""`fairlead lint`: formats, exit status, suppressions, baselines, and source trees that are not what they should be."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlead.cli.lint import command
from fairlead.tools.lint.engine import lint

SHOP = Path(__file__).parent / "shop"
UNSAFE = """package shop

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

type Reconciler struct{ client.Client }

func (r *Reconciler) add(ctx context.Context, order client.Object) error {
	base := order.DeepCopyObject().(client.Object)
	controllerutil.AddFinalizer(order, "shop.example.com/cleanup")
	return r.Patch(ctx, order, client.MergeFrom(base))
}
"""
LINE = 15


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "go.mod").write_text("module example.com/shop\n")
    (tmp_path / "shop.go").write_text(UNSAFE)
    return tmp_path


def run(*args):
    return CliRunner().invoke(command, [str(arg) for arg in args])


def codes(report):
    return [(finding.rule.code, finding.line) for finding in report.findings]


# --------------------------------------------------------------------------------------------- formats and exit status


def test_json_has_the_documented_fields_and_relative_paths(tree):
    result = run(tree, "--format", "json")
    assert result.exit_code == 1
    (finding,) = json.loads(result.output)["findings"]
    assert set(finding) >= {"rule", "severity", "confidence", "file", "line", "message", "steps", "fix"}
    assert (finding["rule"], finding["code"]) == ("W201-finalizers-unlocked-merge-patch", "W201")
    assert (finding["file"], finding["line"], finding["severity"]) == ("shop.go", LINE, "corrupts")


def test_sarif_has_code_flows_fingerprints_and_the_replacement(tree):
    (run_,) = json.loads(run(tree, "--format", "sarif").output)["runs"]
    (result,) = run_["results"]
    assert run_["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert len(result["codeFlows"][0]["threadFlows"][0]["locations"]) == 4
    assert result["partialFingerprints"]["fairlead/v1"]
    change = result["fixes"][0]["artifactChanges"][0]["replacements"][0]
    region = change["deletedRegion"]
    line = UNSAFE.splitlines()[region["startLine"] - 1]
    assert line[region["startColumn"] - 1 : region["endColumn"] - 1] == "client.MergeFrom(base)"


def test_github_commands_escape_what_they_quote(tree):
    (tree / "a,b:c.go").write_text(UNSAFE.replace("Reconciler", "Other"))
    output = run(tree, "--format", "github").output
    assert f"::warning file=a%2Cb%3Ac.go,line={LINE},title=W201-finalizers-unlocked-merge-patch::" in output


def test_text_of_a_hostile_path_is_printable(tree):
    (tree / "a\x1b[31mb.go").write_text(UNSAFE)
    assert "\x1b" not in run(tree).output


def test_exit_status_follows_the_chosen_level(tree):
    assert run(tree).exit_code == 1
    assert run(tree, "--fail-on", "never").exit_code == 0
    assert run(tree, "--select", "W3").exit_code == 0


@pytest.mark.parametrize(
    "name", ["W201", "W2", "finalizers-unlocked-merge-patch", "W201-finalizers-unlocked-merge-patch", "warn"]
)
def test_rules_are_selected_by_id_code_group_name_or_level(tree, name):
    assert codes(lint(tree, (name,))) == [("W201", LINE)]


def test_unknown_rule_folder_or_model_is_an_error_that_names_the_remedy(tree):
    from fairlead.api.errors import UserError

    for arguments, words in (
        ((tree, "--select", "W9999"), "there is no rule"),
        ((tree / "none",), "is not a folder"),
        ((tree, "--models", tree / "none.yaml"), "cannot be read"),
        ((tree, "--baseline", tree / "none.json"), "--write-baseline"),
        ((tree, "--new-only", "--option"), "not a git revision"),
    ):
        result = run(*arguments)
        assert isinstance(result.exception, UserError)
        assert words in str(result.exception)


def test_every_rule_can_be_explained():
    from fairlead.tools.lint.rules.table import RULES

    for rule in RULES:
        result = run("--explain", rule.code)
        assert result.exit_code == 0
        assert rule.id in result.output


def test_stats_count_findings_by_rule(tree):
    assert "W201-finalizers-unlocked-merge-patch" in run(tree, "--stats").output


def test_a_model_of_ones_own_helper_is_used(tree):
    helper = UNSAFE.replace("controllerutil.AddFinalizer(order,", "controllerutil.Claim(order,")
    (tree / "shop.go").write_text(helper)
    assert lint(tree).findings == []
    name = "sigs.k8s.io/controller-runtime/pkg/controller/controllerutil.Claim"
    (tree / "models.yaml").write_text(f"functions:\n- name: {name}\n  mutates: [{{arg: 0, field: Finalizers}}]\n")
    assert run(tree, "--models", tree / "models.yaml").exit_code == 1


# ------------------------------------------------------------------------------------------------------- suppressions


def suppressed(tree, comment, at=LINE):
    lines = UNSAFE.splitlines()
    lines.insert(at - 1, comment)
    (tree / "shop.go").write_text("\n".join(lines))
    return [finding.rule.code for finding in lint(tree).findings]


def test_a_comment_with_a_reason_silences_the_next_line(tree):
    assert suppressed(tree, "	//fairlead:ignore W201 -- the only writer") == []


def test_a_comment_above_a_function_silences_all_of_it(tree):
    assert suppressed(tree, "//fairlead:ignore W201 -- the only writer", at=12) == []


def test_a_nolint_comment_is_understood(tree):
    assert suppressed(tree, "	//nolint:fairlead // the only writer") == []
    assert suppressed(tree, "	//nolint:errcheck // another linter") == ["W201"]


def test_a_comment_without_a_reason_silences_nothing_and_is_reported(tree):
    assert suppressed(tree, "	//fairlead:ignore W201") == ["W001", "W201"]


def test_an_unused_comment_is_reported(tree):
    assert suppressed(tree, "	//fairlead:ignore W301 -- no longer true") == ["W002", "W201"]


# ---------------------------------------------------------------------------------------------------------- baselines


def test_a_baseline_survives_moved_lines_and_reports_new_findings(tree):
    baseline = tree / "baseline.json"
    assert run(tree, "--write-baseline", baseline).exit_code == 0
    assert run(tree, "--baseline", baseline).exit_code == 0
    (tree / "shop.go").write_text(UNSAFE.replace("type Reconciler", "// one\n// two\ntype Reconciler"))
    assert run(tree, "--baseline", baseline).exit_code == 0
    (tree / "other.go").write_text(UNSAFE.replace("Reconciler", "Other"))
    assert run(tree, "--baseline", baseline).exit_code == 1


def test_new_only_reports_findings_on_changed_lines(tree):
    def git(*args):
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *identity, *args], cwd=tree, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    assert run(tree, "--new-only", "HEAD").exit_code == 0
    (tree / "shop.go").write_text(UNSAFE + UNSAFE[UNSAFE.index("func ") :].replace(") add(", ") again("))
    result = run(tree, "--new-only", "HEAD", "--format", "json")
    assert [f["function"] for f in json.loads(result.output)["findings"]] == ["Reconciler.again"]


# ------------------------------------------------------------------------------------------------------- source trees


def test_a_broken_file_is_noted_and_the_rest_is_linted(tree):
    (tree / "broken.go").write_text("package shop\nfunc broken( {{{ if\n")
    report = lint(tree)
    assert codes(report) == [("W201", LINE)]
    assert [note for note in report.notes if note.startswith("broken.go: ")]


def test_syntax_of_a_newer_go_does_not_hide_findings(tree):
    newer = UNSAFE.replace("	base :=", "	retries := new(3)\n	_ = retries\n	base :=")
    (tree / "shop.go").write_text(newer)
    report = lint(tree)
    assert codes(report) == [("W201", LINE + 2)]
    assert report.notes == []


def test_a_huge_file_is_skipped_with_a_note(tree):
    (tree / "huge.go").write_text("package shop\n" + "var x = 1\n" * 250_000)
    assert any("huge.go: skipped" in note for note in lint(tree).notes)


def test_vendored_and_generated_code_is_not_linted(tree):
    for folder in ("vendor/example.com/other", "testdata"):
        (tree / folder).mkdir(parents=True)
        (tree / folder / "shop.go").write_text(UNSAFE)
    (tree / "generated.go").write_text("// Code generated by tool. DO NOT EDIT.\n" + UNSAFE.replace("Reconciler", "G"))
    report = lint(tree)
    assert codes(report) == [("W201", LINE)]
    assert "1 vendored folders were not linted" in report.notes


def test_a_tree_without_go_is_noted(tmp_path):
    report = lint(tmp_path)
    assert (report.findings, report.notes) == ([], ["there is no Go or Python source here"])


def test_a_loop_of_symbolic_links_ends(tree):
    (tree / "loop").symlink_to(tree)
    report = lint(tree)
    assert codes(report) == [("W201", LINE)]
    assert "1 symbolic links to folders were not followed" in report.notes


def test_linting_twice_gives_the_same_findings(tmp_path):
    shutil.copytree(SHOP, tmp_path / "copy")
    first, second = (run(folder, "--format", "json").output for folder in (SHOP, tmp_path / "copy"))
    assert first == second
