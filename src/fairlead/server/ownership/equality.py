"""Equality of JSON values: `equal` as structured-merge-diff compares them, `identical` by their JSON text."""

from typing import Any


def equal(a: Any, b: Any) -> bool:
    """Return whether structured-merge-diff treats two values as equal: 1 equals 1.0 but not true; lists are ordered."""
    if a is b:
        return True
    if a != b:
        return False
    kind = type(a)
    if kind is str:
        return True
    if kind is dict:
        return all(equal(value, b[key]) for key, value in a.items())
    if kind is list:
        return all(equal(x, y) for x, y in zip(a, b, strict=True))
    return (kind is bool) == (type(b) is bool)


def identical(a: Any, b: Any) -> bool:
    """Return whether two values have the same JSON text: unlike for `equal`, 1 differs from 1.0."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b) or a != b:
        return False
    if kind is dict:
        return all(identical(value, b[key]) for key, value in a.items())
    if kind is list:
        return all(identical(x, y) for x, y in zip(a, b, strict=True))
    return True
