"""Validation of Events: the rules of the core group, and the stricter rules of events.k8s.io."""

from typing import Final

from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry import events
from fairlead.server.registry.validation.formats import qualified_name
from fairlead.server.registry.validation.rules import Errors, Object, Scope, apply, build_validator, field, on_create

_MAX_LENGTHS: Final = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}


def _check_namespace(event: Scope) -> Errors:
    """Require that an Event without eventTime is in the namespace of its involvedObject.

    An Event about a cluster-scoped object must be in default, or with an eventTime in default or kube-system.
    """
    namespace, other = event.text("metadata.namespace"), event.text("involvedObject.namespace")
    has_time = bool(event.get("eventTime"))
    if other:
        is_valid = has_time or namespace == other
    else:
        is_valid = namespace in (("default", "kube-system") if has_time else ("", "default"))
    if not is_valid:
        yield event.invalid("involvedObject.namespace", "does not match event.namespace", other)


def _check_new_style(event: Scope, controller: str) -> Errors:
    """Check an Event that has an eventTime. `controller` is the name of the field for the reporting controller."""
    if not event.get("eventTime"):
        return
    if not event.get(controller):
        yield event.required(controller)
    yield from event.check(controller, qualified_name, event.text(controller))
    for key, limit in _MAX_LENGTHS.items():
        if not event.get(key) and key != "message":
            yield event.required(key)
        if len(event.text(key).encode()) > limit:
            yield event.invalid(key, f"can have at most {limit} characters", "")


event: Final = build_validator(_check_namespace, lambda event: _check_new_style(event, "reportingComponent"))


def _check_series(event: Scope) -> Errors:
    series = event.get("series")
    if series is None or (event.old is not None and series == event.old_value("series")):
        return
    if (series.get("count") or 0) < 2:
        yield event.invalid("series.count", "should be at least 2", "")
    if not series.get("lastObservedTime"):
        yield event.required("series.lastObservedTime")


def _check_new_event(event: Scope) -> Errors:
    if not event.get("eventTime"):
        yield event.required("eventTime")
    if event.get("type") not in ("Normal", "Warning"):
        yield event.invalid("type", f"has invalid value: {event.text('type')}", "")
    for key in ("firstTimestamp", "lastTimestamp", "count"):
        if event.get(key):
            yield event.invalid(key, "needs to be unset", "")
    if any(event.map("source").values()):
        yield event.invalid("source", "needs to be unset", "")


_STRICT: Final = (
    _check_namespace,
    lambda event: _check_new_style(event, "reportingController"),
    _check_series,
    on_create(_check_new_event),
    field(
        "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason", "type",
        "eventTime", "action", "related", "reportingController", "reportingInstance",
    ).immutable(),
)  # fmt: skip


def validate_strict_event(new: Object, old: Object | None) -> list[FieldError]:
    """Return the errors of an events.k8s.io Event. As on a real server, they use the field names of the core group."""
    return apply(_STRICT, Scope(_use_core_names(new), None if old is None else _use_core_names(old)))


def _use_core_names(event: Object) -> Object:
    core = events.to_core(event)
    return {**core, "reportingController": core.get("reportingComponent")}
