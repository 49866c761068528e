"""Tests of the `fairlead orphans` command with servers behind sockets."""

import asyncio
import contextlib
import json
import os
import pty
import re
import signal
import subprocess

import pytest

from fairlead.tools.orphans import plan_files
from fairlead.tools.orphans.evidence_stores import EvidenceFile
from fairlead.tools.orphans.rule_files import RulesError, load


async def test_apply_deletes_the_planned_objects(shell):
    await shell.harness.create_gateway()
    await shell.harness.create_route("kept")
    await shell.harness.create_route("orphan", parents=["missing"])
    status, stdout, _ = await shell("plan", "--grace", "0s", "-o", str(shell.plan))
    assert status == 0
    assert "2 selected: 1 to delete, 0 in their grace, 1 kept, 0 not judged" in stdout
    assert "Gateway default/missing is gone from project-a" in stdout
    status, _, errors = await shell("apply", str(shell.plan), "--grace", "0s")
    assert (status, "add --yes" in errors) == (1, True)
    assert await shell.harness.find("orphan")
    status, stdout, _ = await shell("apply", str(shell.plan), "--grace", "0s", "--yes")
    assert (status, "1 deleted" in stdout) == (0, True)
    assert await shell.harness.find("orphan") is None
    assert await shell.harness.find("kept")
    (journal,) = (shell.folder / "fairlead").glob("*.journal")
    assert [json.loads(line)["what"] for line in journal.read_text().splitlines()] == ["deleting", "deleted"]


async def test_plan_and_apply_work_as_separate_processes(shell):
    await shell.harness.create_route()
    for args in (
        ("plan", "--grace", "0s", "-o", str(shell.plan)),
        ("apply", str(shell.plan), "--grace", "0s", "--yes"),
    ):
        run = await asyncio.create_subprocess_exec(
            *shell.command(*args), env=shell.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        stdout, _ = await run.communicate()
        assert run.returncode == 0, stdout
    assert b"1 deleted" in stdout
    assert await shell.harness.find() is None


EDITS = {
    "name": lambda live_route: {"name": "kept"},
    "uid": lambda live_route: {"uid": live_route.uid},
    "name and uid": lambda live_route: {"name": "kept", "uid": live_route.uid, "evidence": ["surely gone"]},
    "kind": lambda live_route: {"kind": "ConfigMap", "apiVersion": "v1"},
    "another object of another kind": lambda live_route: {"kind": "Namespace", "apiVersion": "v1", "namespace": None},
    "version": lambda live_route: {"apiVersion": "gateway.networking.k8s.io/v1beta1"},
    "namespace": lambda live_route: {"namespace": "kube-system"},
    "no namespace": lambda live_route: {"namespace": None},
    "rule": lambda live_route: {"rule": "made-up"},
    "another rule": lambda live_route: {"rule": "anchor"},
    "grace": lambda live_route: {"since": "2020-01-01T00:00:00Z", "due": "2020-01-01T00:05:00Z"},
    "path": lambda live_route: {"name": "../httproutes/kept"},
}


@pytest.mark.parametrize("edited_field", EDITS)
async def test_edited_plan_deletes_only_what_the_rules_allow(shell, edited_field):
    await shell.harness.create_gateway()
    kept_route = await shell.harness.create_route("kept")
    orphan = await shell.harness.create_route("orphan", parents=["missing"])
    assert (await shell("plan", "--grace", "0s", "-o", str(shell.plan)))[0] == 0
    shell.edit(**EDITS[edited_field](kept_route))
    grace = () if edited_field == "grace" else ("--grace", "0s")  # without it, the rule's grace of five minutes applies
    status, stdout, _ = await shell("apply", str(shell.plan), *grace, "--yes")
    assert (status, "stays: " in stdout) == (1, True)
    assert (await shell.harness.find("kept")).uid == kept_route.uid
    assert (await shell.harness.find("orphan")).uid == orphan.uid


@pytest.mark.parametrize("fields", [{"cluster": "project-b"}, {"why": "x", "evidence": []}, {"resourceVersion": "1"}])
async def test_apply_ignores_the_informational_fields_of_a_plan(shell, fields):
    """Tests that the command reads the cluster from the labels of the live object, not from the plan."""
    await shell.harness.create_route()
    await shell("plan", "--grace", "0s", "-o", str(shell.plan))
    shell.edit(**fields)
    assert (await shell("apply", str(shell.plan), "--grace", "0s", "--yes"))[0] == 0
    assert await shell.harness.find() is None


async def test_apply_deletes_only_the_listed_objects(shell):
    """Tests that an orphan that was removed from the plan file stays."""
    await shell.harness.create_route("one")
    await shell.harness.create_route("two")
    await shell("plan", "--grace", "0s", "-o", str(shell.plan))
    plan = json.loads(shell.plan.read_text())
    plan["items"] = [item for item in plan["items"] if item["name"] == "one"]
    shell.plan.write_text(json.dumps(plan))
    assert (await shell("apply", str(shell.plan), "--grace", "0s", "--yes"))[0] == 0
    assert await shell.harness.find("two")


async def test_plan_of_another_downstream_cluster_is_refused(shell):
    await shell.harness.create_route()
    await shell("plan", "--grace", "0s", "-o", str(shell.plan))
    plan = json.loads(shell.plan.read_text())
    shell.plan.write_text(json.dumps({**plan, "downstream": "11111111-2222-3333-4444-555555555555"}))
    status, _, errors = await shell("apply", str(shell.plan), "--grace", "0s", "--yes")
    assert (status, "belongs to another downstream cluster" in errors) == (2, True)
    assert await shell.harness.find()


@pytest.mark.parametrize("fields", [{"namespace": ["default"]}, {"name": None}, {"uid": {}}, {"rule": 7}])
async def test_plan_with_an_invalid_item_is_refused(shell, fields):
    await shell.harness.create_route()
    await shell("plan", "--grace", "0s", "-o", str(shell.plan))
    shell.edit(**fields)
    status, _, errors = await shell("apply", str(shell.plan), "--grace", "0s", "--yes")
    assert (status, "item 1 does not name an object: create the plan again" in errors) == (2, True)
    assert await shell.harness.find()


async def test_plan_above_the_size_limit_is_refused(shell, monkeypatch):
    await shell.harness.create_route()
    await shell("plan", "--grace", "0s", "-o", str(shell.plan))
    monkeypatch.setattr(plan_files, "MAX_PLAN_BYTES", 2**8)
    for path in (str(shell.plan), "/dev/zero"):
        status, _, errors = await shell("apply", path, "--grace", "0s", "--yes")
        assert (status, "plan fewer clusters at a time" in errors) == (2, True)
    assert await shell.harness.find()


async def test_plan_is_written_only_to_a_regular_file(shell):
    link, evidence = shell.folder / "link.json", shell.folder / "evidence.json"
    link.symlink_to(shell.folder / "config")
    for output, message in (
        (link, "not a regular file"),
        ("/dev/null", "not a regular file"),
        (evidence, "is the evidence"),
        (shell.folder / "missing" / "plan.json", "not a writable folder"),
    ):
        status, _, errors = await shell("plan", "-o", str(output), "--evidence", str(evidence))
        assert (status, message in errors, len(errors.splitlines())) == (2, True, 1), errors
    assert link.is_symlink()


@pytest.mark.parametrize("upstreams", [("project-a=a", "project-b=a"), ("project-a=edge",)])
async def test_contexts_of_the_same_cluster_are_reported(shell, upstreams):
    await shell.harness.create_route()
    cluster_arguments = (
        *shell.cluster_arguments[:4],
        *(argument for upstream in upstreams for argument in ("--upstream", upstream)),
    )
    status, stdout, _ = await shell("plan", "--grace", "0s", "-o", str(shell.plan), cluster_arguments=cluster_arguments)
    assert (status, "are the same cluster: correct" in stdout, "0 to delete" in stdout) == (1, True, True)
    assert (await shell("apply", str(shell.plan), "--grace", "0s", "--yes", cluster_arguments=cluster_arguments))[
        0
    ] == 0  # the plan is empty
    assert await shell.harness.find()


async def test_interrupted_apply_reports_what_it_deleted(shell):
    for i in range(30):
        await shell.harness.create_route(f"web-{i}")
    assert (await shell("plan", "--grace", "0s", "-o", str(shell.plan)))[0] == 0
    command = shell.command("apply", str(shell.plan), "--grace", "0s", "--max", "100%", "--yes")
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    run = await asyncio.create_subprocess_exec(*command, env=shell.env, **pipes)
    async for line in run.stdout:
        if line.startswith(b"deleted: "):
            run.send_signal(signal.SIGINT)
            break
    stdout, errors = await run.communicate()
    assert run.returncode == 130
    assert b"Traceback" not in errors
    deleted = int(re.search(rb"not finished: (\d+) deleted; for the last one see ", errors)[1])
    assert deleted == 1 + stdout.count(b"deleted: ")
    remaining = len([i for i in range(30) if await shell.harness.find(f"web-{i}")])
    assert 0 < remaining <= 30 - deleted
    (journal,) = (shell.folder / "fairlead").glob("*.journal")
    entry_types = [json.loads(line)["what"] for line in journal.read_text().splitlines()]
    assert (entry_types.count("deleted"), entry_types.count("deleting")) in (
        (deleted, deleted),
        (deleted, deleted + 1),
        (deleted + 1, deleted + 1),
    )


# The terminal


async def run_on_terminal(shell, typed_text, *args):
    """Run the command on a new terminal and type `typed_text`. Return the exit code and the terminal output."""
    test_end, process_end = pty.openpty()
    run = await asyncio.create_subprocess_exec(
        *shell.command(*args),
        env={**shell.env, "TERM": "xterm"},
        stdin=process_end,
        stdout=process_end,
        stderr=process_end,
    )
    os.close(process_end)
    os.write(test_end, typed_text)
    status = await run.wait()
    terminal_output = b""
    with contextlib.suppress(OSError):  # reading from a closed terminal raises this
        while chunk := os.read(test_end, 65536):
            terminal_output += chunk
    os.close(test_end)
    return status, terminal_output.decode()


@pytest.mark.parametrize(
    ("typed_text", "is_deleted"), [(b"y\n", True), (b"n\n", False), (b"\n", False), (b"\x04", False)]
)
async def test_apply_on_a_terminal_deletes_only_after_yes(shell, typed_text, is_deleted):
    await shell.harness.create_route()
    await shell("plan", "--grace", "0s", "-o", str(shell.plan))
    status, terminal_output = await run_on_terminal(shell, typed_text, "apply", str(shell.plan), "--grace", "0s")
    assert "Delete 1 object? [y/N]" in terminal_output
    assert (
        "HTTPRoute default/web: Gateway default/gw is gone from project-a" in terminal_output
    )  # the object that the question is about
    assert (await shell.harness.find() is None) == is_deleted
    assert (status == 0) == is_deleted


async def test_scan_on_a_terminal_shows_its_progress(shell):
    await shell.harness.create_route()
    status, terminal_output = await run_on_terminal(shell, b"", "plan", "--grace", "0s")
    assert (status, "\r\x1b[K1 of 1 clusters looked at" in terminal_output) == (0, True)
    assert "clusters looked at\r\x1b[K" in terminal_output  # the progress line is erased


async def test_apply_without_a_terminal_requires_yes(shell):
    """Tests standard input that is a pipe with the answer "y": the command does not accept it."""
    await shell.harness.create_route()
    await shell("plan", "--grace", "0s", "-o", str(shell.plan))
    status, _, errors = await shell("apply", str(shell.plan), "--grace", "0s")
    assert (status, "there is no terminal for a confirmation: add --yes to delete" in errors) == (1, True)
    assert await shell.harness.find()


# The evidence


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ("", "it is not JSON"),
        ("{", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", "it is not evidence of this version"),
        ('{"version": 1, "downstream": "another"}', "it belongs to another downstream cluster"),
    ],
)
async def test_unreadable_evidence_is_reported_and_not_overwritten(shell, evidence, message):
    await shell.harness.create_route()
    file = shell.folder / "evidence.json"
    file.write_text(evidence)
    status, _, errors = await shell("plan", "--grace", "0s", "--evidence", str(file))
    assert status == 2
    assert message in errors
    assert "choose another file with --evidence, or move it away" in errors
    assert len(errors.splitlines()) == 1
    assert file.read_text() == evidence


@pytest.mark.parametrize(
    "damage",
    [
        lambda evidence: evidence.pop("clusters"),
        lambda evidence: evidence["clusters"]["project-a"].update(uid=None),
        lambda evidence: evidence["clusters"]["project-a"].update(absent=[["too", "short"]]),
        lambda evidence: evidence["clusters"]["project-a"]["absent"][0].__setitem__(4, "yesterday"),
        lambda evidence: evidence.update(retired=[]),
        lambda evidence: evidence.update(shared={"uid": [1]}),
    ],
)
async def test_damaged_evidence_is_reported_and_not_overwritten(shell, damage):
    await shell.harness.create_route()
    await shell("plan")
    evidence = json.loads(shell.evidence.read_text())
    damage(evidence)
    shell.evidence.write_text(json.dumps(evidence))
    evidence_before = shell.evidence.read_text()
    status, _, errors = await shell("plan")
    assert (status, "its content is damaged" in errors) == (2, True)
    assert shell.evidence.read_text() == evidence_before


async def test_evidence_from_the_future_does_not_shorten_the_grace(shell):
    await shell.harness.create_route()
    await shell("plan")
    evidence = shell.evidence.read_text()
    since = json.loads(evidence)["clusters"]["project-a"]["absent"][0][4]
    shell.evidence.write_text(evidence.replace(since, "2999-01-01T00:00:00.000000Z"))
    _, stdout, _ = await shell("plan", "-o", "-")
    assert [item["state"] for item in json.loads(stdout)["items"]] == ["waiting"]


async def test_concurrent_runs_do_not_share_evidence(shell):
    await shell.harness.create_route()
    await shell("plan", "--grace", "0s", "-o", str(shell.plan))
    evidence_before = shell.evidence.read_text()
    with EvidenceFile(shell.evidence).locked():
        for args in (("plan",), ("apply", str(shell.plan), "--grace", "0s", "--yes")):
            status, _, errors = await shell(*args)
            assert (status, "another run uses it: wait until that run has ended" in errors) == (1, True)
    assert await shell.harness.find()
    assert shell.evidence.read_text() == evidence_before


async def test_evidence_is_written_atomically(shell, monkeypatch):
    await shell.harness.create_route()
    await shell("plan")
    evidence_before = shell.evidence.read_text()
    await shell.harness.create_route("other", parents=["other"])

    def raise_disk_full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", raise_disk_full)
        status, _, errors = await shell("plan")
    assert (status, "cannot be written (No space left on device)" in errors) == (1, True)
    assert shell.evidence.read_text() == evidence_before
    assert sorted(path.suffix for path in shell.evidence.parent.iterdir()) == [".json", ".lock"]
    assert shell.evidence.stat().st_mode & 0o777 == 0o600


async def test_evidence_file_does_not_follow_a_symlink(shell):
    target = shell.folder / "precious"
    target.write_text("{}")
    (shell.folder / "evidence.json").symlink_to(target)
    await shell("plan", "--evidence", str(shell.folder / "evidence.json"))
    assert target.read_text() == "{}"


# Output and messages


@pytest.mark.parametrize("command", [(), ("plan",), ("apply",), ("watch",)])
async def test_help_fits_80_columns_and_is_not_truncated(shell, command, monkeypatch):
    monkeypatch.setitem(shell.env, "COLUMNS", "80")
    status, stdout, _ = await shell(*command, "--help", cluster_arguments=())
    assert status == 0
    assert max(len(line) for line in stdout.splitlines()) <= 80
    assert "..." not in stdout.replace("COMMAND [ARGS]...", "")


async def test_grace_starts_with_the_first_plan_and_is_reported(shell):
    await shell.harness.create_route()
    status, stdout, _ = await shell("plan", "-o", "-")
    assert status == 0
    (item,) = json.loads(stdout)["items"]
    assert (item["state"], item["rule"]) == ("waiting", "httproute-gateway")
    again = json.loads((await shell("plan", "-o", "-"))[1])["items"][0]
    assert again["since"] == item["since"]


async def test_exit_code_is_1_for_undecided_objects_and_2_for_wrong_usage(shell):
    await shell.harness.create_route(cluster="cluster-unheard-of")
    status, stdout, _ = await shell("plan")
    assert (status, "name it with --upstream or --retired" in stdout) == (1, True)
    kubeconfig = shell.cluster_arguments[:2]
    for wrong_arguments in (
        ("plan", "--downstream", "edge"),
        ("plan", "--downstream", "edge", "--upstream", "project-a"),
        ("plan", "--downstream", "nowhere", "--upstream", "project-a=a"),
        ("plan", "--downstream", "edge", "--upstream", "project-a=a", "--retired", "project-a"),
        ("plan", "--downstream", "edge", "--upstream", "project-a=a", "--grace", "soon"),
        ("plan", "--downstream", "edge", "--upstream", "project-a=a", "--max", "200%"),
        ("apply", str(shell.folder / "config"), "--downstream", "edge", "--upstream", "project-a=a"),
    ):
        status, _, errors = await shell(*wrong_arguments, cluster_arguments=kubeconfig)
        assert (status, len(errors.strip().splitlines())) == (2, 1), (wrong_arguments, errors)


async def test_escape_codes_in_a_rule_message_are_removed(shell):
    rules = shell.folder / "rules.py"
    rules.write_text(
        "import fairlead as fl\nfrom fairlead.tools.orphans.rules import OrphanRule\n"
        "from fairlead.tools.orphans.identity import *\n"
        "def parents(obj, identity):\n    raise UnreadableIdentity('says \\x1b[2J')\n"
        "rules = [OrphanRule('mine', fl.kind('gateway.networking.k8s.io/v1', 'HTTPRoute'), parents)]\n"
    )
    await shell.harness.create_route()
    status, stdout, errors = await shell("plan", "--rules", str(rules))
    assert (status, "says" in stdout) == (1, True)
    assert "\x1b" not in stdout + errors


@pytest.mark.parametrize(
    ("rules_yaml", "message"),
    [
        ("rules: 3", "has no list `rules`"),
        ("rules: [{use: nothing}]", "no shipped rule 'nothing'"),
        ("rules: [{name: x}]", "has no collect"),
        ("rules: [{use: anchor, gracee: 1m}]", "'gracee' is not a known field"),
        ("rules: [{use: anchor, parents: []}]", "has no parents"),
        ("rules: [{use: anchor}, {use: anchor}]", "two rules have the name anchor"),
        ("rules: [{use: anchor, enabled: false}]", "has no enabled rule"),
        ("{", "not YAML at line"),
    ],
)
def test_error_in_a_rules_file_names_the_rule_and_field(tmp_path, rules_yaml, message):
    (tmp_path / "rules.yaml").write_text(rules_yaml)
    with pytest.raises(RulesError, match=message.replace("`", ".")):
        load(tmp_path / "rules.yaml")
