"""This project lints itself: every legacy module has findings, every operator has none."""

from pathlib import Path

import pytest

from fairlead.tools.lint.engine import lint
from fairlead.tools.lint.findings import Level

OPERATORS = Path(__file__).parents[3] / "operators" / "src" / "fairlead_operators"


@pytest.fixture(scope="module")
def findings():
    return lint(OPERATORS, ("all",)).findings


@pytest.mark.parametrize("system", ["httpproxy", "orphans", "projects", "pulsar", "seinode"])
def test_each_legacy_module_is_found_and_its_operator_is_clean(findings, system):
    assert [f for f in findings if f.file == f"{system}/legacy.py"]
    assert [f for f in findings if f.file == f"{system}/controller.py"] == []


def test_warnings_are_in_legacy_modules_only(findings):
    warned = {finding.file for finding in findings if finding.level is Level.WARN}
    assert warned == {"projects/legacy.py", "pulsar/legacy.py", "seinode/legacy.py"}
