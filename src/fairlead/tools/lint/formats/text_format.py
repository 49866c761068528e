"""Findings as text for a terminal: one line each, and their steps."""

from fairlead.api.text import printable
from fairlead.tools.lint.engine import Report
from fairlead.tools.lint.findings import Level


def to_text(report: Report) -> str:
    """Return the findings with their steps and fixes. Source text is untrusted, so it is made printable."""
    lines: list[str] = []
    for finding in report.findings:
        severity = finding.severity or finding.rule.severity
        head = (
            f"{finding.file}:{finding.line}: {finding.level}: {finding.rule.id} ({severity}, {finding.confidence} "
            "confidence)"
        )
        lines += [printable(head), f"  {printable(finding.message)}"]
        lines += [f"    {printable(f'{step.file}:{step.line}: {step.text}')}" for step in finding.steps]
        lines += [f"  fix: {printable(finding.fix or finding.rule.fix)}", ""]
    lines += [f"note: {printable(note)}" for note in report.notes]
    warnings = sum(finding.level is Level.WARN for finding in report.findings)
    counts = ((warnings, "warning"), (len(report.findings) - warnings, "info"), (report.files, "file"))
    lines.append(", ".join(f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in (*counts, (report.lines, "line"))))
    return "\n".join(lines)
