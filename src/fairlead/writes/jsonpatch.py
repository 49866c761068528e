"""JSON patch as a server evaluates it: pointers, and whether its tests hold on a copy."""

import copy
from collections.abc import Iterable
from typing import Any

Path = tuple[str | int, ...]
Op = dict[str, Any]


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


_LONG = 2**63
MISSING: Any = _Missing()  # Any: it stands wherever a value may be absent


def pointer(path: Path) -> str:
    """The path as an RFC 6901 pointer."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def parse(text: str) -> Path:
    """A pointer as a path; list indexes stay text."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])


def named(field: str) -> Path:
    """A field as people name it: `spec.replicas`, or a pointer where a key has dots in it."""
    return parse(field) if field.startswith("/") else tuple(field.removeprefix(".").split("."))


def at(value: Any, path: Iterable[str | int]) -> Any:
    """The value at that path, or MISSING."""
    for part in path:
        if isinstance(value, dict):
            value = value.get(part, MISSING)
        elif isinstance(value, list) and str(part).isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return MISSING
    return value


def same(left: Any, right: Any) -> bool:
    """Equal as JSON: 1 equals 1.0 but not true; maps regardless of order."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    if isinstance(left, int | float) and isinstance(right, int | float):
        # no integer of a server's is longer than 64 bits: a longer one has become a float
        return bool(left == right) or (max(abs(left), abs(right)) >= _LONG and float(left) == float(right))
    return bool(left == right)


def holds(obj: Any, op: Op) -> bool:
    """Whether a server that has `obj` passes this test.

    Absent equals null, but only in a map that is there: a test below something missing fails, so does an index past
    the end of a list.
    """
    path = parse(op["path"])
    parent, value = at(obj, path[:-1]), at(obj, path)
    if value is MISSING:
        return op["value"] is None and isinstance(parent, dict)
    return same(value, op["value"])


def tests_hold(obj: Any, patch: Iterable[Op]) -> bool:
    """Whether each test of the patch holds when its turn comes."""
    obj = copy.deepcopy(obj)
    for op in patch:
        if op["op"] != "test":
            _do(obj, op)
        elif not holds(obj, op):
            return False
    return True


def _do(obj: Any, op: Op) -> None:
    """Make the change of an operation, where it fits."""
    *parents, last = parse(op["path"])
    into = at(obj, parents)
    if isinstance(into, dict):
        into.pop(last, None)
        if op["op"] != "remove":
            into[last] = op["value"]
    elif isinstance(into, list) and last == "-":
        into.append(op["value"])
    elif isinstance(into, list) and str(last).isdecimal():
        into[int(last) : int(last) + 1] = [] if op["op"] == "remove" else [op["value"]]
