"""Tests that each rule has a page, that the page is up to date, and that `--explain` prints it."""

import runpy
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlead.cli.lint import command
from fairlead.hazards import find_hazard
from fairlead.tools.lint.python_rules.table import PYTHON_RULES
from fairlead.tools.lint.rules.table import BY_CODE, RULES

ROOT = Path(__file__).parents[3]
ALL_RULES = (*RULES, *PYTHON_RULES.values())


def test_pages_are_up_to_date():
    expected = runpy.run_path(str(ROOT / "scripts/lint_pages.py"))["render_pages"]()
    actual = {path.name: path.read_text() for path in (ROOT / "docs/reference/lint").glob("*.md")}
    assert actual == expected, "run `python scripts/lint_pages.py`"


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.id)
def test_explain_prints_the_page(rule):
    result = CliRunner().invoke(command, ["--explain", rule.id])
    assert result.exit_code == 0
    assert rule.id in result.output
    assert result.output in (ROOT / "docs" / rule.page).read_text()


@pytest.mark.parametrize("rule", [rule for rule in ALL_RULES if rule.hazard], ids=lambda rule: rule.id)
def test_page_has_the_story_the_tests_and_both_fixes(rule):
    page, hazard = (ROOT / "docs" / rule.page).read_text(), find_hazard(rule.hazard)
    for part in (rule.title, rule.fix, hazard.story, hazard.server, hazard.fix.go, hazard.fix.python, *hazard.tests):
        assert part in page


@pytest.mark.parametrize("rule", PYTHON_RULES.values(), ids=lambda rule: rule.id)
def test_both_languages_refer_to_the_same_hazard(rule):
    assert rule.hazard == BY_CODE[rule.code].hazard
