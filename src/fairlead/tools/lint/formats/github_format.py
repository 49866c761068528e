"""Findings as workflow commands, which GitHub shows beside the changed lines."""

from fairlead.tools.lint.engine import Report
from fairlead.tools.lint.findings import Level

MAX_ANNOTATIONS = 10
"""GitHub shows at most ten annotations of each level per step. The rest is counted."""


def to_github(report: Report) -> str:
    """Return one command per finding, and how many were left out."""
    lines: list[str] = []
    for level, command in ((Level.WARN, "warning"), (Level.INFO, "notice")):
        findings = [finding for finding in report.findings if finding.level is level]
        for finding in findings[:MAX_ANNOTATIONS]:
            place = f"file={_property(finding.file)},line={finding.line},title={_property(finding.rule.id)}"
            lines.append(f"::{command} {place}::{_data(f'{finding.message}. {finding.fix or finding.rule.fix}')}")
        if len(findings) > MAX_ANNOTATIONS:
            lines.append(
                f"::notice::{len(findings) - MAX_ANNOTATIONS} more findings of the level {level} are not shown"
            )
    lines += [f"::debug::{_data(note)}" for note in report.notes]
    return "\n".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
