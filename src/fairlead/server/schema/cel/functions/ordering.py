"""List functions that depend on the order of items, such as sort() and min().

Items of different types (an int-or-string) have no order.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

_ORDERED: Final = (bool, int, float, str, bytes, datetime, timedelta)


def is_sorted(items: list[Any]) -> bool:
    for index, item in enumerate(items):
        _expect_ordered(item, index, "isSorted")
        if index and is_less(item, items[index - 1]):
            return False
    return True


def minimum(items: list[Any]) -> Any:
    return _find_first(items, is_less, "min")


def maximum(items: list[Any]) -> Any:
    return _find_first(items, lambda a, b: is_less(b, a), "max")


def sort(items: list[Any]) -> list[Any]:
    return sort_by_keys(items, items)


def sort_by_keys(keys: list[Any], items: list[Any]) -> list[Any]:
    """Return the items in the order of their keys."""
    if keys and not isinstance(keys[0], _ORDERED):
        raise ValueError("list elements must be comparable")
    if any(type(key) is not type(keys[0]) for key in keys):
        raise ValueError("list elements must have the same type")
    return [items[index] for index in sorted(range(len(keys)), key=keys.__getitem__)]


def total(items: list[Any]) -> Any:
    if not items:
        return 0
    if not _is_number(items[0]) and not isinstance(items[0], timedelta):
        raise ValueError("no such overload: sum(list)")
    if any(type(item) is not type(items[0]) for item in items):
        raise ValueError("no such overload")
    return sum(items[1:], items[0])


def is_less(a: Any, b: Any) -> bool:
    comparable = type(a) is type(b) or (_is_number(a) and _is_number(b))
    return bool(comparable and a < b)


def _find_first(items: list[Any], is_before: Callable[[Any, Any], bool], function: str) -> Any:
    if not items:
        raise ValueError(f"{function} called on empty list")
    first = items[0]
    for index, item in enumerate(items):
        _expect_ordered(item, index, function)
        if is_before(item, first):
            first = item
    return first


def _expect_ordered(item: Any, index: int, function: str) -> None:
    if not isinstance(item, _ORDERED):  # Only null reaches this.
        raise ValueError("no such overload" if index else f"no such overload: {function}(list)")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
