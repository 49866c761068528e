"""The rules for Python. Their codes are those of the rules for Go."""

from __future__ import annotations

from fairlead.hazards import Severity
from fairlead.tools.lint.findings import Level, Rule

CORRUPTS, STALLS, NOISE = Severity.CORRUPTS, Severity.STALLS, Severity.NOISE
WARN, INFO = Level.WARN, Level.INFO
VERSION = "Add metadata.resourceVersion of the object that was read to the patch"


def _rule(code: str, name: str, title: str, severity: Severity, level: Level, hazard: str, fix: str) -> Rule:
    return Rule(code, f"py-{name}", title, severity, level, hazard, fix, is_default=code != "W701", language="python")


PYTHON_RULES: dict[str, Rule] = {
    rule.code: rule
    for rule in (
        _rule("W101", "create-exists-blind-update", "After AlreadyExists the object is replaced without a version",
              CORRUPTS, WARN, "put-without-resource-version",
              "Read the existing object and change it, or use server-side apply: ctx.apply in fairlead."),
        _rule("W103", "replace-without-version", "A replace sends an object without a resourceVersion",
              CORRUPTS, INFO, "put-without-resource-version", "Replace the object that was read, or apply."),
        _rule("W104", "create-or-update", "A child is read, changed and replaced",
              STALLS, INFO, "update-from-stale-copy", "Use server-side apply: ctx.apply in fairlead."),
        _rule("W105", "exists-then-create", "Create, and skip if the object exists",
              NOISE, INFO, "create-over-terminating-object", "Check its owner: ctx.create in fairlead."),
        _rule("W201", "finalizers-merge-patch", "Finalizers are replaced by a merge patch without a resourceVersion",
              CORRUPTS, WARN, "finalizer-merge-patch-unlocked", f"{VERSION}, or use fairlead's finalizers."),
        _rule("W203", "list-merge-patch", "A list that was read is replaced by a merge patch without a resourceVersion",
              CORRUPTS, WARN, "conditions-merge-patch-unlocked", f"{VERSION}, or use ctx.decide in fairlead."),
        _rule("W204", "status-unlocked-and-decides", "A status that decides is written without a resourceVersion",
              CORRUPTS, WARN, "patch-without-precondition", f"{VERSION}, or use ctx.decide in fairlead."),
        _rule("W205", "status-replace", "The status of a cached copy is replaced",
              STALLS, INFO, "update-from-stale-copy", "Apply the status: ctx.status in fairlead."),
        _rule("W206", "finalizer-replace", "A finalizer is written by a replace of a cached copy",
              STALLS, INFO, "update-from-stale-copy", "Patch with a resourceVersion, or use fairlead."),
        _rule("W501", "any-error-as-absent", "Any error of a read is taken for absence",
              CORRUPTS, WARN, "failed-read-taken-for-absence", "Check for 404, and raise every other error."),
        _rule("W502", "status-error-swallowed", "The error of a status write is swallowed",
              STALLS, INFO, "update-from-stale-copy", "Raise the error, so that the write is retried."),
        _rule("W701", "delete-without-precondition", "A delete has no precondition",
              CORRUPTS, INFO, "delete-without-uid", "Send preconditions with the uid: ctx.delete in fairlead."),
    )
}  # fmt: skip
