"""Tests that the catalogue of hazards is complete, names existing tests, and has up-to-date pages."""

import ast
import pkgutil
import re
import runpy
from pathlib import Path

import pytest

from fairlead import writes
from fairlead.hazards import CATEGORIES, find_hazard, load_catalogue

ROOT = Path(__file__).parents[2]
HAZARDS = load_catalogue()
# The write functions, and the parts of fairlead below them.
PREVENTIONS = {*writes.__all__, *(module.name for module in pkgutil.iter_modules(writes.__path__)), "client", "cache"}


def find_tests():
    for path in sorted((ROOT / "tests/hazards").glob("test_*.py")):
        if path.name == Path(__file__).name:
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield f"tests/hazards/{path.name}::{node.name}"


def test_ids_and_numbers_are_unique_and_well_formed():
    for values, pattern in (([h.id for h in HAZARDS], r"[a-z]+(-[a-z]+)+"), ([h.number for h in HAZARDS], r"H\d\db?")):
        assert len(set(values)) == len(values)
        assert [value for value in values if not re.fullmatch(pattern, value)] == []
    assert [h.number for h in HAZARDS] == sorted(h.number for h in HAZARDS)


def test_every_hazard_has_an_existing_test_and_every_test_a_hazard():
    assert all(hazard.tests for hazard in HAZARDS)
    listed = [test for hazard in HAZARDS for test in hazard.tests]
    assert sorted(listed) == sorted(find_tests())


@pytest.mark.parametrize("hazard", HAZARDS, ids=lambda hazard: hazard.id)
def test_hazard_is_complete(hazard):
    assert hazard.category in CATEGORIES
    assert set(hazard.prevented_by) <= PREVENTIONS
    assert all((hazard.title, hazard.story, hazard.server, hazard.fix.python, hazard.fix.go))
    assert all(f"test_{hazard.number.lower()}_" in test for test in hazard.tests)


def test_find_hazard_returns_it_or_raises_with_a_remedy():
    assert find_hazard("delete-without-uid").number == "H08"
    with pytest.raises(KeyError, match=r"docs/hazards/index\.md"):
        find_hazard("no-such-hazard")


def test_pages_are_up_to_date():
    expected = runpy.run_path(str(ROOT / "scripts/hazards.py"))["render_pages"]()
    actual = {path.name: path.read_text() for path in (ROOT / "docs/hazards").glob("*.md")}
    assert actual == expected, "run `python scripts/hazards.py --pages`"
