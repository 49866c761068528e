"""Tests that every test that docs/evidence/chaos.md names exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_named_on_the_page_exists():
    named_tests = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "evidence" / "chaos.md").read_text()))
    defined = {
        name for path in ROOT.glob("tests/**/test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    assert len(named_tests) > 25
    assert named_tests - defined == set()
