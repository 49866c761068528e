"""Tests that every test that docs/systems.md names exists and runs on the stated servers."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "systems.md").read_text()
SOURCES = [*ROOT.glob("operators/tests/*/test_*.py"), *ROOT.glob("tests/orphans/test_*.py")]
TESTS = {
    name: arguments for path in SOURCES for name, arguments in re.findall(r"def (test_\w+)\((.*?)\):", path.read_text())
}
SERVERS = {"api", "env", "running_env", "harness", "contended"}
"""Fixtures that run a test on each server."""


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(test_\w+)`", PAGE))))
def test_every_named_test_exists(name):
    assert name in TESTS


def test_tests_marked_both_use_a_server_fixture():
    rows = [line for line in PAGE.splitlines() if re.search(r"\| (both|real) \|", line)]
    assert len(rows) > 20
    for row in rows:
        names = re.findall(r"`(test_\w+)`", row)
        assert any(SERVERS & {*re.findall(r"\w+", TESTS[name])} for name in names), row
