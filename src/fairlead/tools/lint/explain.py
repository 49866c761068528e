"""The explanation of a rule, from the catalogue of hazards."""

from fairlead.hazards import find_hazard
from fairlead.tools.lint.rules.table import find_rule


def explain_rule(name: str) -> str:
    """Return what a rule reports and why, as Markdown. Raise UserError if there is no such rule."""
    rule = find_rule(name)
    if not rule.hazard:
        return f"# {rule.id}\n\n{rule.title}.\n\n## Fix\n\n{rule.fix}"
    hazard = find_hazard(rule.hazard)
    return "\n\n".join(
        (
            f"# {rule.id}",
            f"{rule.title}. Level: {rule.level}. Severity: {rule.severity}.",
            f"## Example\n\n{hazard.story}",
            f"## What the server does\n\n{hazard.server}",
            f"## Fix\n\n{rule.fix}",
            f"Go: {hazard.fix.go}",
            f"Python, with fairlead: {hazard.fix.python}",
            f"Hazard: {hazard.number} {hazard.id}. Tests: {', '.join(hazard.tests)}",
        )
    )
