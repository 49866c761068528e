"""The difference of two versions of an object, as a list of changed fields."""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from fairlead.api.history import FieldChange
from fairlead.api.redaction import REDACTED, redact_field

# These change with every write, or identify the object.
_IGNORED_METADATA = frozenset(
    {"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "name", "namespace", "selfLink"}
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# Lists of maps are compared item by item if one of these keys identifies each item.
_ITEM_KEYS = ("name", "type", "uid", "containerPort", "port")
_ABSENT: Any = object()


def find_changes(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> tuple[FieldChange, ...]:
    """Return the changed fields, with paths like `spec.containers[name=app].image`.

    Metadata that changes with every write is left out. `old` is None for a new object: then the fields that it has are
    returned, each as a whole. The values of Secrets are redacted, and belong to the caller.
    """
    is_secret = new.get("kind") == "Secret"
    changes = []
    before = old if old is not None else {"metadata": {}}
    for key in {**before, **new}:
        if key in ("apiVersion", "kind"):
            continue
        for path, was, value in _compare(key, before.get(key, _ABSENT), new.get(key, _ABSENT)):
            if is_secret and key in ("data", "stringData"):
                was, value = _hide(path, was), _hide(path, value)
            elif is_secret and key == "metadata" and "annotations" in path:
                was, value = _hide_last_applied(path, was), _hide_last_applied(path, value)
            changes.append(FieldChange(path, _own(was), _own(value)))
    return tuple(changes)


def select_sent(changes: Iterable[FieldChange], body: Any) -> tuple[FieldChange, ...]:
    """Return the changes that a request with this body may have made: an object, or the operations of a JSON patch.

    The first two levels of a path decide. A removed field is always returned, because an apply removes what it omits.
    """
    if isinstance(body, list):
        pointers = [str(item.get("path", "")) for item in body if item.get("op") != "test"]
        keys = [[part.replace("~1", "/").replace("~0", "~") for part in each.split("/")[1:3]] for each in pointers]
    elif isinstance(body, Mapping):
        keys = [[key, *rest] for key, value in body.items() for rest in _second_level(value)]
    else:
        return tuple(changes)
    sent = {first + "".join(map(format_key, rest)) for first, *rest in keys}
    return tuple(
        change for change in changes if change.new is None or any(paths_overlap(change.path, path) for path in sent)
    )


def _second_level(value: Any) -> list[list[str]]:
    return [[key] for key in value] if isinstance(value, Mapping) and value else [[]]


def paths_overlap(one: str, other: str) -> bool:
    """Return whether the paths are equal, or one contains the other."""
    short, long = sorted((one, other), key=len)
    return long.startswith(short) and long[len(short) : len(short) + 1] in ("", ".", "[")


def _compare(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in {**old, **new}:
            if path == "metadata" and key in _IGNORED_METADATA:
                continue
            yield from _compare(f"{path}{format_key(key)}", old.get(key, _ABSENT), new.get(key, _ABSENT))
    elif isinstance(old, list) and isinstance(new, list) and old != new:
        key = _find_item_key(old, new)
        if key is not None:
            before, after = ({item[key]: item for item in items} for items in (old, new))
            changes = [
                change
                for name in {**before, **after}
                for change in _compare(f"{path}[{key}={name}]", before.get(name, _ABSENT), after.get(name, _ABSENT))
            ]
            yield from changes or [(path, old, new)]  # Only the order has changed.
        elif len(old) == len(new):
            for index, (was, value) in enumerate(zip(old, new, strict=True)):
                yield from _compare(f"{path}[{index}]", was, value)
        else:
            yield path, old, new
    elif old is not new and (type(old) is not type(new) or old != new):
        yield path, old, new


def format_key(key: str) -> str:
    """Return the path element of a field or a map key."""
    return f".{key}" if "." not in key and "/" not in key else f"[{key}]"


def format_item(item: Mapping[str, Any]) -> str | None:
    """Return the path element of an item in a list of maps, or None if no key identifies it."""
    return next((f"[{key}={item[key]}]" for key in _ITEM_KEYS if key in item), None)


def _find_item_key(old: list[Any], new: list[Any]) -> str | None:
    """Return a key that identifies every item of both lists, or None."""
    items = old + new
    if not all(isinstance(item, Mapping) for item in items):
        return None
    for key in _ITEM_KEYS:
        if all(isinstance(item.get(key), str | int) for item in items) and all(
            len({item[key] for item in side}) == len(side) for side in (old, new)
        ):
            return key
    return None


def _own(value: Any) -> Any:
    if value is _ABSENT:
        return None
    return deepcopy(value) if isinstance(value, dict | list) else value


def _hide(path: str, value: Any) -> Any:
    if value is _ABSENT:
        return value
    return redact_field(path, value) if path in ("data", "stringData") else REDACTED


def _hide_last_applied(path: str, value: Any) -> Any:
    if value is _ABSENT:
        return value
    if path == "metadata.annotations":
        return redact_field("metadata", {"annotations": value})["annotations"]
    return REDACTED if _LAST_APPLIED in path else value
