"""A small language for the checks of a kind: a table of rules, told in the order of a real server.

A rule looks at an object, or at one inside it, next to what it was before the update (None on create).
"""

from collections.abc import Callable, Sequence
from typing import Any

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.vocabulary import IMMUTABLE, Object, at
from fairlead.server.schema import quantity

Rule = Callable[[Object, Object | None, str], list[FieldError]]
Check = Callable[[Object, Object | None], list[FieldError]]


def joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def checks(*rules: Rule) -> Check:
    """The rules of a kind as the registry asks for them."""
    return lambda new, old: [cause for rule in rules for cause in rule(new, old, "")]


def inside(key: str, *rules: Rule, always: bool = False) -> Rule:
    """Rules for the object at a key, where there is one; `always`: an absent one is checked as an empty one."""

    def rule(new: Object, old: Object | None, path: str) -> list[FieldError]:
        value = at(new, key)
        if value is None and not always:
            return []
        before = None if old is None else at(old, key) or {}
        return [cause for one in rules for cause in one(value or {}, before, joined(path, key))]

    return rule


def each(key: str, *rules: Rule) -> Rule:
    """Rules for every item of a list; items have no past."""

    def rule(new: Object, old: Object | None, path: str) -> list[FieldError]:
        items = enumerate(at(new, key) or ())
        return [c for i, item in items for one in rules for c in one(item, None, f"{joined(path, key)}[{i}]")]

    return rule


def on_update(*rules: Rule) -> Rule:
    return lambda new, old, path: [] if old is None else [c for rule in rules for c in rule(new, old, path)]


def on_create(*rules: Rule) -> Rule:
    return lambda new, old, path: [] if old is not None else [c for rule in rules for c in rule(new, None, path)]


def value(key: str, check: Callable[[str, Any], list[FieldError]]) -> Rule:
    """A check of the value at a key, where there is one."""
    return lambda new, old, path: [] if at(new, key) is None else check(joined(path, key), at(new, key))


def needed(*keys: str, told: str = "") -> Rule:
    """Fields that must not be empty."""
    return lambda new, old, path: [field_errors.required(joined(path, key), told) for key in keys if not at(new, key)]


def choice(key: str, allowed: Sequence[str], *, always: bool = False) -> Rule:
    """One of these words; an absent one is let pass unless told `always`."""

    def rule(new: Object, old: Object | None, path: str) -> list[FieldError]:
        given = at(new, key)
        if given in allowed or (given is None and not always):
            return []
        return [field_errors.not_supported(joined(path, key), given or "", allowed)]

    return rule


def at_least(lowest: int, *keys: str, told: str = "") -> Rule:
    """Numbers with a lower bound, where they are given."""
    told = told or f"must be greater than or equal to {lowest}"

    def rule(new: Object, old: Object | None, path: str) -> list[FieldError]:
        given = [(key, at(new, key)) for key in keys]
        return [field_errors.invalid(joined(path, key), n, told) for key, n in given if n is not None and n < lowest]

    return rule


def at_most(highest: int, key: str, told: str = "") -> Rule:
    told = told or f"must be less than or equal to {highest}"
    return value(key, lambda field, n: [field_errors.invalid(field, n, told)] if n > highest else [])


def positive_quantity(key: str, told: str) -> Rule:
    return value(key, lambda f, n: [] if quantity.parse(n)[0] > 0 else [field_errors.invalid(f, n, told)])


def fixed(*keys: str, named: str = "", empty: Any = None) -> Rule:
    """Fields that no update may change; `named`: what a real server calls the field instead."""

    def rule(new: Object, old: Object | None, path: str) -> list[FieldError]:
        changed = [key for key in keys if old is not None and at(new, key) != at(old, key)]
        shown = [(key, empty if at(new, key) is None else at(new, key)) for key in changed]
        return [field_errors.invalid(joined(path, named or key), given, IMMUTABLE) for key, given in shown]

    return rule


def words(key: str, told: Callable[[str], list[str]]) -> Rule:
    """A name's own rules, where it is given."""
    return lambda new, old, path: [
        field_errors.invalid(joined(path, key), at(new, key), one)
        for one in (told(at(new, key)) if at(new, key) else ())
    ]
