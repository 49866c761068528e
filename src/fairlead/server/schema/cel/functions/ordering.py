"""Lists by the order of their items. What is of different types (an int-or-string) is neither before nor behind."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

_ORDERED: Final = (bool, int, float, str, bytes, datetime, timedelta)


def is_sorted(items: list[Any]) -> bool:
    for at, item in enumerate(items):
        _expect_order(item, at, "isSorted")
        if at and before(item, items[at - 1]):
            return False
    return True


def least(items: list[Any]) -> Any:
    return _first(items, before, "min")


def most(items: list[Any]) -> Any:
    return _first(items, lambda one, other: before(other, one), "max")


def in_order(items: list[Any]) -> list[Any]:
    return by_keys(items, items)


def by_keys(keys: list[Any], items: list[Any]) -> list[Any]:
    """The items in the order of their keys."""
    if keys and not isinstance(keys[0], _ORDERED):
        raise ValueError("list elements must be comparable")
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


def before(one: Any, other: Any) -> bool:
    comparable = type(one) is type(other) or (_number(one) and _number(other))
    return bool(comparable and one < other)


def _first(items: list[Any], earlier: Callable[[Any, Any], bool], name: str) -> Any:
    if not items:
        raise ValueError(f"{name} called on empty list")
    found = items[0]
    for at, item in enumerate(items):
        _expect_order(item, at, name)
        if earlier(item, found):
            found = item
    return found


def _expect_order(item: Any, at: int, name: str) -> None:
    if not isinstance(item, _ORDERED):  # null
        raise ValueError("no such overload" if at else f"no such overload: {name}(list)")


def _number(one: Any) -> bool:
    return isinstance(one, int | float) and not isinstance(one, bool)
