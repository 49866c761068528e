"""JSON patches: convert JSON pointers, and evaluate the tests of a patch as an API server does."""

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


_INT64_LIMIT = 2**63
MISSING: Any = _Missing()  # Typed as Any because it may replace any value.


def to_pointer(path: Path) -> str:
    """Return the path as a JSON pointer: `/spec/ports/0` for ("spec", "ports", 0)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def parse_pointer(pointer: str) -> Path:
    """Return the path of a JSON pointer: ("spec", "ports", "0") for `/spec/ports/0`. List indexes stay strings."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])


def parse_field(field: str) -> Path:
    """Return the path of a field such as `spec.replicas`, or of a JSON pointer, which is needed for keys with dots."""
    return parse_pointer(field) if field.startswith("/") else tuple(field.removeprefix(".").split("."))


def value_at(value: Any, path: Iterable[str | int]) -> Any:
    """Return the part of `value` at `path`, or MISSING."""
    for part in path:
        if isinstance(value, dict):
            value = value.get(part, MISSING)
        elif isinstance(value, list) and str(part).isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return MISSING
    return value


def json_equal(left: Any, right: Any) -> bool:
    """Return whether two values are equal as JSON: 1 equals 1.0 but not true, and the order of keys is irrelevant."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(json_equal(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(json_equal, left, right))
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    if isinstance(left, int | float) and isinstance(right, int | float):
        # A server's integers have at most 64 bits. It stores a larger integer as a float.
        return bool(left == right) or (max(abs(left), abs(right)) >= _INT64_LIMIT and float(left) == float(right))
    return bool(left == right)


def passes_test(obj: Any, op: Op) -> bool:
    """Return whether a JSON patch `test` passes on a server that stores `obj`.

    A missing key of an existing map equals null. A test below a missing map fails. A test of an index past the end of a
    list fails.
    """
    path = parse_pointer(op["path"])
    parent, value = value_at(obj, path[:-1]), value_at(obj, path)
    if value is MISSING:
        return op["value"] is None and isinstance(parent, dict)
    return json_equal(value, op["value"])


def passes_all_tests(obj: Any, patch: Iterable[Op]) -> bool:
    """Return whether every test of the patch passes on `obj`. The patch is carried out in order on a copy."""
    obj = copy.deepcopy(obj)
    for op in patch:
        if op["op"] != "test":
            _apply_operation(obj, op)
        elif not passes_test(obj, op):
            return False
    return True


def _apply_operation(obj: Any, op: Op) -> None:
    """Change `obj` by one patch operation. Ignore an operation that does not fit the object."""
    *parents, last = parse_pointer(op["path"])
    container = value_at(obj, parents)
    if isinstance(container, dict):
        container.pop(last, None)
        if op["op"] != "remove":
            container[last] = op["value"]
    elif isinstance(container, list) and last == "-":
        container.append(op["value"])
    elif isinstance(container, list) and str(last).isdecimal():
        container[int(last) : int(last) + 1] = [] if op["op"] == "remove" else [op["value"]]
