"""Events are served by two groups and kept once: events.k8s.io has other names for what the core group has."""

from typing import Any, Final

Object = dict[str, Any]

_NAMES: Final = {  # core -> events.k8s.io
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_BACK: Final = {new: old for old, new in _NAMES.items()}


def to_events(obj: Object) -> Object:
    return {_NAMES.get(key, key): value for key, value in obj.items()} | {"apiVersion": "events.k8s.io/v1"}


def to_core(obj: Object) -> Object:
    return {_BACK.get(key, key): value for key, value in obj.items()} | {"apiVersion": "v1"}
