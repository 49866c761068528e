"""Findings as SARIF 2.1.0, for code scanning."""

import json
from importlib import metadata
from typing import Any

from fairlead.hazards import find_hazard
from fairlead.tools.lint.baseline import fingerprints
from fairlead.tools.lint.engine import Report
from fairlead.tools.lint.findings import Confidence, Finding, Level, Rule

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
PRECISION = {Confidence.HIGH: "high", Confidence.MEDIUM: "medium", Confidence.LOW: "low"}


def to_sarif(report: Report) -> str:
    """Return a SARIF log with one run: rules with help, code flows, fingerprints and replacement texts."""
    rules = sorted({finding.rule for finding in report.findings}, key=lambda rule: rule.id)
    numbers = {rule.id: number for number, rule in enumerate(rules)}
    marks = fingerprints(report.findings)
    results = [_result(f, numbers[f.rule.id], mark) for f, mark in zip(report.findings, marks, strict=True)]
    notes = [{"level": "note", "message": {"text": note}} for note in report.notes]
    run = {
        "tool": {
            "driver": {
                "name": "fairlead lint",
                "version": metadata.version("fairlead"),
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "columnKind": "utf16CodeUnits",
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(rule: Rule) -> dict[str, Any]:
    text = rule.fix
    if rule.hazard:
        hazard = find_hazard(rule.hazard)
        text = f"{hazard.story}\n\n{hazard.server}\n\nFix: {rule.fix}\n\n{hazard.fix.go}"
    return {
        "id": rule.id,
        "name": "".join(part.capitalize() for part in rule.name.split("-")),
        "shortDescription": {"text": rule.title},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": _level(rule.level)},
        "properties": {"severity": str(rule.severity)},
    }


def _level(level: Level) -> str:
    return "warning" if level is Level.WARN else "note"


def _location(file: str, line: int, text: str = "") -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": file, "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": max(line, 1)},
        }
    }
    if text:
        location["message"] = {"text": text}
    return location


def _result(finding: Finding, number: int, mark: str) -> dict[str, Any]:
    steps = [{"location": _location(step.file, step.line, step.text)} for step in finding.steps]
    result: dict[str, Any] = {
        "ruleId": finding.rule.id,
        "ruleIndex": number,
        "level": _level(finding.level),
        "message": {"text": f"{finding.message}. {finding.fix or finding.rule.fix}"},
        "locations": [_location(finding.file, finding.line)],
        "partialFingerprints": {"fairlead/v1": mark},
        "properties": {
            "confidence": PRECISION[finding.confidence],
            "severity": str(finding.severity or finding.rule.severity),
        },
    }
    if steps:
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    replacement = finding.replacement
    if replacement is not None:
        region: dict[str, Any] = {"startLine": replacement.line, "startColumn": replacement.column}
        region |= {"endLine": replacement.line, "endColumn": replacement.column + len(replacement.old)}
        change = {
            "artifactLocation": {"uri": replacement.file, "uriBaseId": "%SRCROOT%"},
            "replacements": [{"deletedRegion": region, "insertedContent": {"text": replacement.new}}],
        }
        result["fixes"] = [{"description": {"text": "Add the optimistic lock"}, "artifactChanges": [change]}]
    return result
