"""When two JSON values are the same, in two senses: to Go's merge library, and to the letter."""

from typing import Any


def equal(a: Any, b: Any) -> bool:
    """As a typed merge compares: 1 and 1.0 are equal, 1 and true are not, maps by key, lists by position."""
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
    """Whether the two are written alike: equal, and 1 is not 1.0."""
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
