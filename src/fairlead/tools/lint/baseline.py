"""Known findings, by fingerprints that survive moved lines, and findings on lines that changed since a revision."""

from __future__ import annotations

import collections
import hashlib
import json
import re
import subprocess
from pathlib import Path

from fairlead.api.errors import UserError
from fairlead.tools.lint.findings import Finding

HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def fingerprints(findings: list[Finding]) -> list[str]:
    """Return one fingerprint per finding: rule, package, function and expression, numbered if they repeat.

    Lines are not part of it, so that a finding stays known when code above it changes.
    """
    seen: collections.Counter[tuple[str, ...]] = collections.Counter()
    found = []
    for finding in findings:
        package = finding.file.rpartition("/")[0]
        key = (finding.rule.code, package, finding.function, finding.subject or finding.message)
        seen[key] += 1
        text = "\0".join((*key, str(seen[key])))
        found.append(hashlib.sha256(text.encode()).hexdigest()[:20])
    return found


def write_baseline(path: Path, findings: list[Finding]) -> None:
    """Write the findings of today, so that later runs report only others."""
    known = {
        mark: f"{finding.rule.id} {finding.file} {finding.function}".strip()
        for mark, finding in zip(fingerprints(findings), findings, strict=True)
    }
    path.write_text(json.dumps({"version": 1, "findings": known}, indent=1) + "\n", encoding="utf-8")


def without_known(findings: list[Finding], path: Path) -> list[Finding]:
    """Return the findings that are not in the baseline. Raise UserError if it cannot be read."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))["findings"]
    except FileNotFoundError:
        raise UserError(f"there is no baseline {path}: create it with --write-baseline {path}") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{path} is not a baseline of fairlead lint: create it with --write-baseline {path}") from None
    return [f for mark, f in zip(fingerprints(findings), findings, strict=True) if mark not in known]


def only_changed(findings: list[Finding], root: Path, revision: str) -> list[Finding]:
    """Return the findings on lines that changed since a revision, or whose steps did. Raise UserError without git."""
    changed = changed_lines(root, revision)

    def is_changed(finding: Finding) -> bool:
        places = [(finding.file, finding.line), *((step.file, step.line) for step in finding.steps)]
        return any(line in changed.get(file, ()) for file, line in places)

    return [finding for finding in findings if is_changed(finding)]


def changed_lines(root: Path, revision: str) -> dict[str, set[int]]:
    """Return the lines of each file that are new or different since a revision."""
    if revision.startswith("-"):
        raise UserError(f"{revision!r} is not a git revision")
    command = ["git", "diff", "--unified=0", "--no-color", "--relative", "--no-ext-diff", revision, "--", "."]
    try:
        run = subprocess.run(command, cwd=root, capture_output=True, text=True, errors="replace")  # noqa: S603
    except FileNotFoundError:
        raise UserError("--new-only needs git") from None
    if run.returncode:
        raise UserError(f"git diff {revision} failed: {' '.join(run.stderr.split())}")
    changed: dict[str, set[int]] = {}
    lines: set[int] = set()
    for line in run.stdout.splitlines():
        if line.startswith("+++ "):
            lines = changed.setdefault(line[4:].removeprefix("b/"), set())
        elif match := HUNK.match(line):
            start, count = int(match[1]), int(match[2] or 1)
            lines.update(range(start, start + count))
    return changed
