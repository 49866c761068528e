"""Conversion of Events: the core group and events.k8s.io use different names for the same fields."""

from typing import Any, Final

Object = dict[str, Any]

_EVENTS_NAMES: Final = {  # core -> events.k8s.io
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_NAMES: Final = {new: old for old, new in _EVENTS_NAMES.items()}


def to_events(obj: Object) -> Object:
    return {_EVENTS_NAMES.get(key, key): value for key, value in obj.items()} | {"apiVersion": "events.k8s.io/v1"}


def to_core(obj: Object) -> Object:
    return {_CORE_NAMES.get(key, key): value for key, value in obj.items()} | {"apiVersion": "v1"}
