"""docs/systems.md names tests: each is there, and runs where the page says."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "systems.md").read_text()
SOURCES = [*ROOT.glob("operators/tests/*/test_*.py"), *ROOT.glob("tests/orphans/test_*.py")]
TESTS = {
    name: arguments for path in SOURCES for name, arguments in re.findall(r"def (test_\w+)\((.*?)\):", path.read_text())
}
SERVERS = {"api", "scene", "world", "idle", "bed", "contended"}
"""Fixtures that are each server in turn."""


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(test_\w+)`", PAGE))))
def test_a_test_that_is_named_is_there(name):
    assert name in TESTS


def test_what_is_said_to_run_on_both_servers_does():
    rows = [line for line in PAGE.splitlines() if re.search(r"\| (both|real) \|", line)]
    assert len(rows) > 20
    for row in rows:
        names = re.findall(r"`(test_\w+)`", row)
        assert any(SERVERS & {*re.findall(r"\w+", TESTS[name])} for name in names), row
