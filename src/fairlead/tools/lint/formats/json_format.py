"""Findings as one JSON document."""

import json

from fairlead.tools.lint.engine import Report


def to_json(report: Report) -> str:
    """Return `{"findings": […], "notes": […]}`. Paths are relative to the linted folder."""
    findings = [finding.to_json() for finding in report.findings]
    return json.dumps({"findings": findings, "notes": report.notes}, indent=2)
