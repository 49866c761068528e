"""Lists by the order of their items. What is of different types (an int-or-string) is neither before nor behind."""

from datetime import timedelta
from itertools import pairwise
from typing import Any


def before(one: Any, other: Any) -> bool:
    comparable = type(one) is type(other) or (_number(one) and _number(other))
    return bool(comparable and one < other)


def is_sorted(items: list[Any]) -> bool:
    return not any(before(after, one) for one, after in pairwise(items))


def least(items: list[Any]) -> Any:
    return _first(items, before, "min")


def most(items: list[Any]) -> Any:
    return _first(items, lambda one, other: before(other, one), "max")


def in_order(items: list[Any]) -> list[Any]:
    return by_keys(items, items)


def by_keys(keys: list[Any], items: list[Any]) -> list[Any]:
    """The items in the order of their keys."""
    if any(type(key) is not type(keys[0]) for key in keys):
        raise ValueError("list elements must have the same type")
    return [items[at] for at in sorted(range(len(keys)), key=keys.__getitem__)]


def total(items: list[Any]) -> Any:
    if not items:
        return 0
    if not _number(items[0]) and not isinstance(items[0], timedelta):
        raise ValueError("no such overload: sum(list)")
    if any(type(item) is not type(items[0]) for item in items):
        raise ValueError("no such overload")
    return sum(items[1:], items[0])


def _first(items: list[Any], earlier: Any, name: str) -> Any:
    if not items:
        raise ValueError(f"{name} called on empty list")
    found = items[0]
    for item in items[1:]:
        if earlier(item, found):
            found = item
    return found


def _number(one: Any) -> bool:
    return isinstance(one, int | float) and not isinstance(one, bool)
