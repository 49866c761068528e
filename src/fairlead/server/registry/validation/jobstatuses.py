"""What the status of a Job may become: an end is told with all that belongs to it, and is not taken back.

As on a real server a rule is held where what it is about changes.
"""

from typing import Any, Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.jobpolicies import counted
from fairlead.server.registry.validation.rules import at_least
from fairlead.server.registry.validation.vocabulary import IMMUTABLE, Object

_COUNTS: Final = ("active", "succeeded", "failed", "ready", "terminating")
_ENDS: Final = ("Complete", "Failed")


def job(new: Object, old: Object | None) -> list[FieldError]:
    status, spec = new.get("status") or {}, new.get("spec") or {}
    before = (old or {}).get("status") or {}
    found = at_least(0, *_COUNTS)(status, None, "status") + _uncounted(status)
    now, was = _true(status), _true(before)
    found += _ended(status, before, now, was, spec)
    found += _indexes(status, before, spec)
    ready = status.get("ready")
    if _changed(status, before, "ready", "active") and ready is not None and ready > (status.get("active") or 0):
        found.append(field_errors.invalid("status.ready", ready, "cannot set more ready pods than active"))
    if "SuccessCriteriaMet" in now:
        against = [one for one in ("Failed", "FailureTarget") if one in now]
        found += [_together(f"cannot set SuccessCriteriaMet=True and {one}=true conditions") for one in against]
    elif spec.get("successPolicy") is not None and "Complete" in now:
        found.append(_together("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"))
    return found + _kept(status, before, now, was, spec)


def _true(status: Object) -> set[Any]:
    return {one.get("type") for one in status.get("conditions") or () if one.get("status") == "True"}


def _changed(status: Object, before: Object, *keys: str) -> bool:
    return any((status.get(key) or None) != (before.get(key) or None) for key in keys)


def _together(told: str) -> FieldError:
    return FieldError("FieldValueInvalid", "status.conditions", f"Invalid value: {told}")


def _uncounted(status: Object) -> list[FieldError]:
    """Pods that ended and are not counted yet, each once."""
    found: list[FieldError] = []
    seen: set[str] = set()
    for key in ("succeeded", "failed"):
        for index, uid in enumerate((status.get("uncountedTerminatedPods") or {}).get(key) or ()):
            field = f"status.uncountedTerminatedPods.{key}[{index}]"
            if not uid:
                found.append(field_errors.invalid(field, uid, "must not be empty"))
            elif uid in seen:
                found.append(field_errors.duplicate(field, uid))
            seen.add(uid)
    return found


def _ended(status: Object, before: Object, now: set[Any], was: set[Any], spec: Object) -> list[FieldError]:
    """A Job that ends says why, when it began and when it was done, and has no Pods left."""
    found: list[FieldError] = []
    moved = {kind: (kind in now) != (kind in was) for kind in (*_ENDS, "FailureTarget", "SuccessCriteriaMet")}
    over, turned = bool(now & set(_ENDS)), bool(now & set(_ENDS)) != bool(was & set(_ENDS))
    start, end = status.get("startTime"), status.get("completionTime")
    timed = moved["Complete"] or _changed(status, before, "completionTime")
    if (moved["Complete"] or moved["Failed"]) and now >= set(_ENDS):
        found.append(_together("cannot set Complete=True and Failed=true conditions"))
    if (moved["Complete"] or moved["FailureTarget"]) and now >= {"Complete", "FailureTarget"}:
        found.append(_together("cannot set Complete=True and FailureTarget=true conditions"))
    if timed and end is not None and "Complete" not in now:
        told = "cannot set completionTime when there is no Complete=True condition"
        found.append(field_errors.invalid("status.completionTime", end, told))
    if timed and end is None and "Complete" in now:
        found.append(field_errors.required("status.completionTime", "completionTime is required for Complete jobs"))
    if _changed(status, before, "startTime", "completionTime") and start and end and end < start:
        found.append(field_errors.invalid("status.completionTime", end, "must be equal to or after `startTime`"))
    if (
        (moved["Failed"] or _changed(status, before, "failedIndexes"))
        and "Failed" in now
        and "FailureTarget" not in now
    ):
        found.append(_together("cannot set Failed=True condition without the FailureTarget=true condition"))
    met = moved["Complete"] or moved["SuccessCriteriaMet"]
    if met and "Complete" in now and "SuccessCriteriaMet" not in now:
        found.append(_together("cannot set Complete=True condition without the SuccessCriteriaMet=true condition"))
    if not over:
        return found
    if (turned or _changed(status, before, "active")) and (status.get("active") or 0) > 0:
        found.append(field_errors.invalid("status.active", status["active"], "active>0 is invalid for finished job"))
    nothing = bool(spec.get("suspend")) and spec.get("completions") == 0
    if (turned or _changed(status, before, "startTime")) and start is None and not nothing:
        found.append(field_errors.required("status.startTime", "startTime is required for finished job"))
    left = status.get("uncountedTerminatedPods") or {}
    if (turned or _changed(status, before, "uncountedTerminatedPods")) and any(left.values()):
        found.append(field_errors.invalid("status.uncountedTerminatedPods", left, "must be empty for finished job"))
    return found


def _indexes(status: Object, before: Object, spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    done, failed, total = status.get("completedIndexes") or "", status.get("failedIndexes"), spec.get("completions")
    each = spec.get("backoffLimitPerIndex") is not None
    new_done, new_failed = (_changed(status, before, key) for key in ("completedIndexes", "failedIndexes"))
    if new_done and total is not None and (wrong := counted(done, total)[1]):
        found.append(field_errors.invalid("status.completedIndexes", done, f"error parsing completedIndexes: {wrong}"))
    if new_failed and total is not None and each and failed is not None and (wrong := counted(failed, total)[1]):
        found.append(field_errors.invalid("status.failedIndexes", failed, f"error parsing failedIndexes: {wrong}"))
    if new_done and done and spec.get("completionMode") != "Indexed":
        told = "cannot set non-empty completedIndexes when non-indexed completion mode"
        found.append(field_errors.invalid("status.completedIndexes", done, told))
    if new_failed and not each and failed is not None:
        told = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        found.append(field_errors.invalid("status.failedIndexes", failed, told))
    over = bool(_true(status) & set(_ENDS))
    turned = over != bool(_true(before) & set(_ENDS))
    if over and (turned or _changed(status, before, "terminating")) and (status.get("terminating") or 0) > 0:
        told = "terminating>0 is invalid for finished job"
        found.append(field_errors.invalid("status.terminating", status["terminating"], told))
    return found


def _kept(status: Object, before: Object, now: set[Any], was: set[Any], spec: Object) -> list[FieldError]:
    """What is counted only grows, and an end, a beginning and when they were stay."""
    gone = [kind for kind in ("Failed", "Complete", "FailureTarget") if kind in was and kind not in now]
    found = [_together(f"cannot disable the terminal {kind}=True condition") for kind in gone]
    scaled = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for key in ("failed",) if scaled else ("failed", "succeeded"):
        if (status.get(key) or 0) < (before.get(key) or 0):
            told = f"cannot decrease the {key} counter"
            found.append(field_errors.invalid(f"status.{key}", status.get(key) or 0, told))
    end, ended = status.get("completionTime"), before.get("completionTime")
    if end is not None and ended is not None and end != ended:
        found.append(field_errors.invalid("status.completionTime", end, IMMUTABLE))
    start, started = status.get("startTime"), before.get("startTime")
    running = any(c.get("type") == "Suspended" and c.get("status") == "False" for c in status.get("conditions") or ())
    resuming = "Suspended" in was and running
    if started is not None and start != started and not spec.get("suspend") and not resuming:
        told = f"{IMMUTABLE} for unsuspended job once set"
        found.append(field_errors.invalid("status.startTime", start, told))
    if "SuccessCriteriaMet" in was - now:
        found.append(_together("cannot disable the SuccessCriteriaMet=True condition"))
    if "Complete" in was and "SuccessCriteriaMet" in now - was:
        told = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        found.append(_together(told))
    return found
