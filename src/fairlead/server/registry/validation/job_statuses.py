"""Validation of the status of a Job: a Job ends once, with all fields of its end, and never starts again.

As on a real server, most rules apply only if an update changes the fields that they check.
"""

from typing import Any, Final

from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.job_policies import count_indexes
from fairlead.server.registry.validation.rules import IMMUTABLE, Errors, Object, Scope, field

_ENDS: Final = frozenset({"Complete", "Failed"})
_COUNTS: Final = field("active", "succeeded", "failed", "ready", "terminating").at_least(0)


class _Change:
    """The status of a Job before and after an update."""

    def __init__(self, job: Scope) -> None:
        self.spec = job.inside("spec")
        self.status = job.inside("status")
        self.old: Object = self.status.old or {}
        self.true = _list_true_conditions(self.status.value)
        self.was_true = _list_true_conditions(self.old)
        self.is_finished = bool(self.true & _ENDS)
        self.finishes = self.is_finished != bool(self.was_true & _ENDS)

    def changes(self, *keys: str) -> bool:
        return any((self.status.get(key) or None) != (self.old.get(key) or None) for key in keys)

    def changes_condition(self, *kinds: str) -> bool:
        return any((kind in self.true) != (kind in self.was_true) for kind in kinds)

    def condition_error(self, message: str) -> FieldError:
        return FieldError("FieldValueInvalid", self.status.path("conditions"), f"Invalid value: {message}")


def _list_true_conditions(status: Object) -> set[Any]:
    return {item.get("type") for item in status.get("conditions") or () if item.get("status") == "True"}


def validate_job(new: Object, old: Object | None) -> list[FieldError]:
    change = _Change(Scope(new, old or {}))
    rules = (
        _check_uncounted_pods,
        _check_end,
        _check_finished,
        _check_indexes,
        _check_ready_pods,
        _check_success_criteria,
        _check_irreversible_changes,
    )
    return [*_COUNTS(change.status), *(error for rule in rules for error in rule(change))]


def _check_uncounted_pods(change: _Change) -> Errors:
    """Reject empty and duplicate uids of Pods in uncountedTerminatedPods."""
    seen_uids: set[str] = set()
    for key in ("uncountedTerminatedPods.succeeded", "uncountedTerminatedPods.failed"):
        for index, uid in enumerate(change.status.items(key)):
            if not uid:
                yield change.status.invalid(f"{key}[{index}]", "must not be empty", uid)
            elif uid in seen_uids:
                yield change.status.duplicate(f"{key}[{index}]", uid)
            seen_uids.add(uid)


def _check_end(change: _Change) -> Errors:
    """Check the conditions and times of a Job that completes or fails."""
    status, true = change.status, change.true
    start, end = status.get("startTime"), status.get("completionTime")
    changes_end = change.changes_condition("Complete") or change.changes("completionTime")
    if change.changes_condition("Complete", "Failed") and true >= _ENDS:
        yield change.condition_error("cannot set Complete=True and Failed=true conditions")
    if change.changes_condition("Complete", "FailureTarget") and true >= {"Complete", "FailureTarget"}:
        yield change.condition_error("cannot set Complete=True and FailureTarget=true conditions")
    if changes_end and end is not None and "Complete" not in true:
        yield status.invalid("completionTime", "cannot set completionTime when there is no Complete=True condition")
    if changes_end and end is None and "Complete" in true:
        yield status.required("completionTime", "completionTime is required for Complete jobs")
    if change.changes("startTime", "completionTime") and start and end and end < start:
        yield status.invalid("completionTime", "must be equal to or after `startTime`")
    changes_failure = change.changes_condition("Failed") or change.changes("failedIndexes")
    if changes_failure and "Failed" in true and "FailureTarget" not in true:
        yield change.condition_error("cannot set Failed=True condition without the FailureTarget=true condition")
    changes_success = change.changes_condition("Complete", "SuccessCriteriaMet")
    if changes_success and "Complete" in true and "SuccessCriteriaMet" not in true:
        yield change.condition_error("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")


def _check_finished(change: _Change) -> Errors:
    """Require a finished Job to have a start time, and no Pods that are active or not yet counted."""
    status, spec = change.status, change.spec
    if not change.is_finished:
        return
    if (change.finishes or change.changes("active")) and status.number("active") > 0:
        yield status.invalid("active", "active>0 is invalid for finished job")
    never_started = bool(spec.get("suspend")) and spec.get("completions") == 0
    if (change.finishes or change.changes("startTime")) and status.get("startTime") is None and not never_started:
        yield status.required("startTime", "startTime is required for finished job")
    has_uncounted = any(status.map("uncountedTerminatedPods").values())
    if (change.finishes or change.changes("uncountedTerminatedPods")) and has_uncounted:
        yield status.invalid("uncountedTerminatedPods", "must be empty for finished job")


def _check_indexes(change: _Change) -> Errors:
    status, spec = change.status, change.spec
    completed, failed_indexes, completions = (
        status.text("completedIndexes"),
        status.get("failedIndexes"),
        spec.get("completions"),
    )
    has_limit = spec.get("backoffLimitPerIndex") is not None
    changes_completed, changes_failed = change.changes("completedIndexes"), change.changes("failedIndexes")
    if changes_completed and completions is not None and (problem := count_indexes(completed, completions)[1]):
        yield status.invalid("completedIndexes", f"error parsing completedIndexes: {problem}")
    is_parsed = changes_failed and completions is not None and has_limit and failed_indexes is not None
    if is_parsed and (problem := count_indexes(failed_indexes, completions)[1]):
        yield status.invalid("failedIndexes", f"error parsing failedIndexes: {problem}")
    if changes_completed and completed and spec.get("completionMode") != "Indexed":
        message = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield status.invalid("completedIndexes", message)
    if changes_failed and not has_limit and failed_indexes is not None:
        yield status.invalid("failedIndexes", "cannot set non-null failedIndexes when backoffLimitPerIndex is null")
    if change.is_finished and (change.finishes or change.changes("terminating")) and status.number("terminating") > 0:
        yield status.invalid("terminating", "terminating>0 is invalid for finished job")


def _check_ready_pods(change: _Change) -> Errors:
    ready_count = change.status.get("ready")
    if change.changes("ready", "active") and ready_count is not None and ready_count > change.status.number("active"):
        yield change.status.invalid("ready", "cannot set more ready pods than active")


def _check_success_criteria(change: _Change) -> Errors:
    if "SuccessCriteriaMet" in change.true:
        for kind in ("Failed", "FailureTarget"):
            if kind in change.true:
                yield change.condition_error(f"cannot set SuccessCriteriaMet=True and {kind}=true conditions")
    elif change.spec.get("successPolicy") is not None and "Complete" in change.true:
        message = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        yield change.condition_error(message)


def _check_irreversible_changes(change: _Change) -> Errors:
    """Reject counters that decrease, final conditions that disappear, and start times that change."""
    status, old, spec = change.status, change.old, change.spec
    for kind in ("Failed", "Complete", "FailureTarget"):
        if kind in change.was_true - change.true:
            yield change.condition_error(f"cannot disable the terminal {kind}=True condition")
    is_elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for key in ("failed",) if is_elastic else ("failed", "succeeded"):
        if status.number(key) < (old.get(key) or 0):
            yield status.invalid(key, f"cannot decrease the {key} counter", status.number(key))
    end, old_end = status.get("completionTime"), old.get("completionTime")
    if end is not None and old_end is not None and end != old_end:
        yield status.invalid("completionTime", IMMUTABLE)
    is_running = any(c.get("type") == "Suspended" and c.get("status") == "False" for c in status.items("conditions"))
    resumes = "Suspended" in change.was_true and is_running
    has_other_start = old.get("startTime") is not None and status.get("startTime") != old["startTime"]
    if has_other_start and not spec.get("suspend") and not resumes:
        yield status.invalid("startTime", f"{IMMUTABLE} for unsuspended job once set")
    if "SuccessCriteriaMet" in change.was_true - change.true:
        yield change.condition_error("cannot disable the SuccessCriteriaMet=True condition")
    if "Complete" in change.was_true and "SuccessCriteriaMet" in change.true - change.was_true:
        message = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        yield change.condition_error(message)
