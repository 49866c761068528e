"""Equality of JSON values: as structured-merge-diff compares them, and as they are written."""

from typing import Any


def equal(a: Any, b: Any) -> bool:
    """Compare as structured-merge-diff: 1 and 1.0 are equal, 1 and true are not, lists are ordered."""
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
    """Return whether two values have the same JSON: equal, and 1 differs from 1.0."""
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
