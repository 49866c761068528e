"""The explanation of a rule, from the table of rules and the catalogue of hazards."""

from fairlead.hazards import find_hazard
from fairlead.tools.lint.findings import Rule
from fairlead.tools.lint.python_rules.table import PYTHON_RULES
from fairlead.tools.lint.rules.table import BY_CODE, find_rule


def explain_rule(name: str) -> str:
    """Return the page of a rule as Markdown: the story, the server's behaviour, and the fix in Go and in Python.

    Raises:
        UserError: if there is no such rule.
    """
    rule = BY_CODE[find_rule(name).code]
    if not rule.hazard:
        return "\n\n".join((f"# {rule.id}", _summary(rule), f"## Fix\n\n{rule.fix}"))
    hazard, python = find_hazard(rule.hazard), PYTHON_RULES.get(rule.code)
    tests = "\n".join(f"- `{test}`" for test in hazard.tests)
    return "\n\n".join(
        (
            f"# {rule.id}",
            _summary(rule),
            *((f"The rule for Python is `{python.id}`. {_summary(python)}",) if python else ()),
            *(("Runs only if it is selected.",) if not rule.is_default else ()),
            f"## What happens\n\n{hazard.story}",
            *((rule.why,) if rule.why else ()),
            f"## What the server does\n\n{hazard.server}",
            f"These tests show it on the embedded server and on a real kube-apiserver:\n\n{tests}",
            f"## Fix in Go\n\n{rule.fix}",
            *((hazard.fix.go,) if hazard.fix.go != rule.fix else ()),
            f"## Fix in Python\n\n{python.fix}" if python else "## Fix in Python",
            hazard.fix.python,
            f"Hazard {hazard.number}: [{hazard.title}](../../{hazard.page}). [All rules](index.md).",
        )
    )


def _summary(rule: Rule) -> str:
    return f"{rule.title}. Level: **{rule.level}**. Severity: **{rule.severity}**."
