"""Events: the loose rules of the core group, and the strict ones of events.k8s.io on top."""

from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry import events
from fairlead.server.registry.validation.vocabulary import Object, at, qualified, unchanged

_LIMITS: Final = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}
_FIXED: Final = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason", "type",
    "eventTime", "action", "related", "reportingController", "reportingInstance",
)  # fmt: skip


def event(new: Object, old: Object | None) -> list[FieldError]:
    return _loose(new, "reportingComponent")


def strict_event(new: Object, old: Object | None) -> list[FieldError]:
    """An Event of events.k8s.io, told of by the names that the core group has for its fields."""
    made, was = (None if one is None else _internal(one) for one in (new, old))
    assert made is not None
    found = _loose(made, "reportingController")
    if was is not None:
        series = [] if made.get("series") == was.get("series") else _series(made)
        return found + series + unchanged(made, was, *_FIXED)
    found += _series(made)
    if not made.get("eventTime"):
        found.append(field_errors.required("eventTime"))
    if made.get("type") not in ("Normal", "Warning"):
        found.append(field_errors.invalid("type", "", f"has invalid value: {made.get('type') or ''}"))
    given = [key for key in ("firstTimestamp", "lastTimestamp", "count") if made.get(key)]
    given += ["source"] if any((made.get("source") or {}).values()) else []
    return found + [field_errors.invalid(key, "", "needs to be unset") for key in given]


def _internal(obj: Object) -> Object:
    core = events.to_core(obj)
    return {**core, "reportingController": core.get("reportingComponent")}


def _loose(new: Object, controller: str) -> list[FieldError]:
    namespace, regarded = new["metadata"].get("namespace") or "", at(new, "involvedObject.namespace") or ""
    timed = bool(new.get("eventTime"))
    if regarded:
        agree = timed or namespace == regarded
    else:
        agree = namespace in (("default", "kube-system") if timed else ("", "default"))
    found = (
        [] if agree else [field_errors.invalid("involvedObject.namespace", regarded, "does not match event.namespace")]
    )
    if not timed:
        return found
    found += [] if new.get(controller) else [field_errors.required(controller)]
    found += qualified(controller, new.get(controller) or "")
    for key, most in _LIMITS.items():
        text = new.get(key) or ""
        if not text and key != "message":
            found.append(field_errors.required(key))
        if len(text.encode()) > most:
            found.append(field_errors.invalid(key, "", f"can have at most {most} characters"))
    return found


def _series(new: Object) -> list[FieldError]:
    series = new.get("series")
    if series is None:
        return []
    found = (
        [] if (series.get("count") or 0) >= 2 else [field_errors.invalid("series.count", "", "should be at least 2")]
    )
    return found if series.get("lastObservedTime") else [*found, field_errors.required("series.lastObservedTime")]
