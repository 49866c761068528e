"""Comments that silence a finding: `//fairlead:ignore W201 -- reason`.

A comment counts for its own line, for the next line, and, above a function, for the whole function. It needs a reason.
Comments without one, and comments that silence nothing, are findings themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fairlead.tools.lint.findings import Confidence, Finding, Rule, Step
from fairlead.tools.lint.rules.table import SUPPRESSION_UNUSED, SUPPRESSION_WITHOUT_REASON

IGNORE = re.compile(r"fairlead:\s*ignore\b\s*(?P<rules>[\w, -]*?)\s*(?:--\s*(?P<reason>.*))?$")
NOLINT = re.compile(r"nolint:(?P<linters>[\w,-]+)\s*(?://\s*(?P<reason>.*))?$")


@dataclass(slots=True)
class Suppression:
    """One comment, and the lines that it is about."""

    file: str
    line: int
    last_line: int
    rules: tuple[str, ...]
    reason: str
    is_used: bool = False

    def covers(self, finding: Finding) -> bool:
        if finding.file != self.file or not self.line <= finding.line <= self.last_line:
            return False
        names = (finding.rule.id, finding.rule.code, finding.rule.name)
        return not self.rules or any(name in names for name in self.rules)


def read_suppression(file: str, line: int, text: str, functions: Iterable[tuple[int, int]]) -> Suppression | None:
    """Return what a comment silences, or None if it is not about this linter.

    `functions` are the first and last lines of the file's functions.
    """
    ignore, nolint = IGNORE.match(text), NOLINT.match(text)
    if ignore is not None:
        rules = tuple(name for name in re.split(r"[,\s]+", ignore["rules"]) if name)
        reason = (ignore["reason"] or "").strip()
    elif nolint is not None and "fairlead" in nolint["linters"].split(","):
        rules, reason = (), (nolint["reason"] or "").strip()
    else:
        return None
    last = next((end for start, end in functions if start == line + 1), line + 1)
    return Suppression(file, line, last, rules, reason)


def apply_suppressions(
    findings: list[Finding], suppressions: Sequence[Suppression], rules: Sequence[Rule]
) -> list[Finding]:
    """Remove the silenced findings, and add those about the comments."""
    kept: list[Finding] = []
    for finding in findings:
        covering = [s for s in suppressions if s.covers(finding)]
        for suppression in covering:
            suppression.is_used = True
        if not any(s.reason for s in covering):
            kept.append(finding)
    selected = {name for rule in rules for name in (rule.id, rule.code, rule.name)}
    for suppression in suppressions:
        if not suppression.reason:
            kept.append(
                _about(suppression, SUPPRESSION_WITHOUT_REASON, "this comment has no reason and silences nothing")
            )
        elif not suppression.is_used and (not suppression.rules or selected.issuperset(suppression.rules)):
            kept.append(_about(suppression, SUPPRESSION_UNUSED, "this comment silences nothing: remove it"))
    return kept


def _about(suppression: Suppression, rule: Rule, message: str) -> Finding:
    finding = Finding(rule, suppression.file, suppression.line, message, level=rule.level)
    finding.confidence = Confidence.HIGH
    finding.steps = [Step(suppression.file, suppression.line, message)]
    finding.subject = "suppression"
    return finding
