"""How many findings of each rule there are."""

import collections

from fairlead.tools.lint.engine import Report
from fairlead.tools.lint.python_rules.table import PYTHON_RULES
from fairlead.tools.lint.rules.table import RULES


def to_statistics(report: Report) -> str:
    """Return a table: rule, warnings, infos; and what was read."""
    counts = collections.Counter((finding.rule.id, str(finding.level)) for finding in report.findings)
    lines = [f"{'rule':45}{'warn':>6}{'info':>6}"]
    for rule in (*RULES, *PYTHON_RULES.values()):
        warnings, infos = counts[rule.id, "warn"], counts[rule.id, "info"]
        if warnings or infos:
            lines.append(f"{rule.id:45}{warnings:6}{infos:6}")
    lines.append(f"{report.files} files, {report.lines} lines, {report.functions} functions with requests")
    return "\n".join(lines)
