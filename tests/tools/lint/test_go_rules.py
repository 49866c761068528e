"""The rules for Go, on a small operator whose lines say what is to be reported."""

import re
from pathlib import Path

import pytest

from fairlead.tools.lint.engine import lint
from fairlead.tools.lint.findings import Level

SHOP = Path(__file__).parent / "shop"
JUDGED = {
    "patches.go": {"W201", "W202", "W203"},
    "creates.go": {"W101", "W102", "W103", "W105", "W106"},
    "retries.go": {"W301", "W302", "W303", "W304"},
    "status.go": {"W204", "W205", "W206", "W207", "W208", "W502"},
    "caches.go": {"W401"},
    "applies.go": {"W503", "W602", "W603", "W802"},
}
"""The rules that each file is about. Every finding of these rules must be marked, and every mark must be found."""


@pytest.fixture(scope="module")
def report():
    return lint(SHOP, ("all",))


@pytest.mark.parametrize("name", sorted(JUDGED))
def test_marked_lines_and_no_others_are_reported(report, name):
    source = (SHOP / "controllers" / name).read_text()
    wanted = {
        (number, code)
        for number, line in enumerate(source.splitlines(), 1)
        if (match := re.search(r"// want (.*)", line))
        for code in match.group(1).split()
    }
    reported_lines = {
        (finding.line, finding.rule.code)
        for finding in report.findings
        if finding.file == f"controllers/{name}" and finding.rule.code in JUDGED[name]
    }
    assert reported_lines == wanted


def test_wrappers_are_judged_where_they_are_called(report):
    assert [f for f in report.findings if f.file.startswith("helpers/") and f.level is Level.WARN] == []


def test_each_finding_tells_its_steps_and_a_fix(report):
    for finding in report.findings:
        assert finding.message
        assert finding.steps
        assert finding.to_json()["fix"]


def test_the_missing_lock_comes_with_its_replacement(report):
    first = next(f for f in report.findings if f.rule.code == "W201")
    assert first.replacement is not None
    assert first.replacement.old == "rtclient.MergeFrom(order.DeepCopy())"
    assert first.replacement.new == (
        "rtclient.MergeFromWithOptions(order.DeepCopy(), rtclient.MergeFromWithOptimisticLock{})"
    )
