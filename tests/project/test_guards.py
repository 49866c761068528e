"""Tests that `make mutate` finds the text of every guard, and that its table lists the current guards."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MUTANTS = runpy.run_path(str(ROOT / "scripts" / "mutation" / "guards.py"))["MUTANTS"]
TABLE = (ROOT / "docs" / "evidence" / "guards.md").read_text()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.guard)
def test_source_of_a_guard_appears_once_in_its_file(mutant):
    assert (ROOT / "src" / "fairlead" / mutant.file).read_text().count(mutant.old) == 1


def test_table_lists_every_guard_once():
    rows = re.findall(r"^\| (.+?) \|", TABLE.partition("|---")[2], re.MULTILINE)
    assert sorted(rows) == sorted(mutant.guard for mutant in MUTANTS)
