"""The rule language of validation.

A kind is a table of rules, in the order in which a real server reports their errors:

    lease = build_validator(
        inside("spec", field("leaseDurationSeconds", "leaseTransitions").at_least(0)),
        field("spec.holderIdentity").immutable(),
    )

A rule takes a Scope and returns field errors. A check takes one value and returns messages that say what is wrong. A
condition of a rule is a function of a Scope, or a map of fields to the values that they must have. A rule that this
language cannot express is a function that takes a Scope and yields its errors.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from fairlead.api.gojson import quote_go
from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.schema import names, quantity

Object = dict[str, Any]
Errors = Iterable[FieldError]
Check = Callable[[Any], Iterable[str]]
Validator = Callable[[Object, Object | None], list[FieldError]]
IMMUTABLE: Final = "field is immutable"
_VALUE_OF_KEY: Final[Any] = object()  # an error shows the value that the object holds at the key


class Scope:
    """The object to validate, or an object inside it, with its value, its value before the update, and its path.

    `old` is None on create and for items of lists. The items of a list share the dict `notes`, in which a rule keeps
    what it needs for later items.
    """

    __slots__ = ("_index", "_name", "notes", "old", "parent", "value")

    def __init__(
        self,
        value: Object,
        old: Object | None = None,
        parent: "Scope | None" = None,
        name: str = "",
        notes: Object | None = None,
        index: int | None = None,
    ) -> None:
        self.value = value
        self.old = old
        self.parent: Any = parent  # a Scope, or None at the root
        self.notes: Any = notes
        self._name = name
        self._index = index  # of an item of a list

    def get(self, key: str) -> Any:
        """Return the value at a key or dotted path, or None if it is absent."""
        value = self.value.get(key)
        return lookup(self.value, key) if value is None and "." in key else value

    def text(self, key: str) -> str:
        """Return the string at a key, or "" if it is absent."""
        return self.get(key) or ""

    def number(self, key: str) -> int:
        """Return the number at a key, or 0 if it is absent."""
        return self.get(key) or 0

    def items(self, key: str) -> Any:
        """Return the list at a key, or an empty one if it is absent."""
        return self.get(key) or ()

    def map(self, key: str) -> Object:
        """Return the map at a key, or an empty one if it is absent."""
        return self.get(key) or {}

    def old_value(self, key: str) -> Any:
        """Return the value at a key or dotted path before the update, or None if it was absent."""
        return lookup(self.old, key)

    def inside(self, key: str, name: str = "") -> "Scope":
        """Return the scope of the object at a key, which is empty if it is absent.

        Errors name it `name`, or else the key.
        """
        old = None if self.old is None else lookup(self.old, key) or {}
        return Scope(self.get(key) or {}, old, self, name or key)

    def each(self, key: str, name: str = "") -> "Sequence[Scope]":
        """Return a scope for each item of a list of objects. Errors name the list `name`, or else the key."""
        items = self.get(key)
        if not items:
            return ()
        notes: Object = {}
        return [Scope(item, None, self, name or key, notes, index) for index, item in enumerate(items)]

    def path(self, key: str = "") -> str:
        """Return the path of this object, or of its field `key`, as error messages show it: spec.ports[0].name."""
        name = self._name if self._index is None else f"{self._name}[{self._index}]"
        own_path: str = name if self.parent is None else self.parent.path(name)
        return f"{own_path}.{key}" if own_path and key and key[0] != "[" else own_path + key

    def required(self, key: str = "", detail: str = "") -> FieldError:
        return field_errors.required(self.path(key), detail)

    def invalid(self, key: str, message: str, value: Any = _VALUE_OF_KEY) -> FieldError:
        reported_value = (self.get(key) if key else self.value) if value is _VALUE_OF_KEY else value
        return field_errors.invalid(self.path(key), reported_value, message)

    def forbidden(self, key: str, detail: str) -> FieldError:
        return field_errors.forbidden(self.path(key), detail)

    def not_supported(self, key: str, allowed: Iterable[str], value: Any = _VALUE_OF_KEY) -> FieldError:
        reported_value = self.text(key) if value is _VALUE_OF_KEY else value
        return field_errors.not_supported(self.path(key), reported_value, allowed)

    def duplicate(self, key: str, value: Any = _VALUE_OF_KEY) -> FieldError:
        return field_errors.duplicate(self.path(key), self.text(key) if value is _VALUE_OF_KEY else value)

    def not_found(self, key: str, detail: str = "", value: Any = _VALUE_OF_KEY) -> FieldError:
        name = quote_go(self.text(key) if value is _VALUE_OF_KEY else value)
        message = f"Not found: {name}: {detail}" if detail else f"Not found: {name}"
        return FieldError("FieldValueNotFound", self.path(key), message)

    def too_long(self, key: str, limit: int) -> FieldError:
        return field_errors.too_long(self.path(key), limit)

    def too_many(self, key: str, actual: int, limit: int) -> FieldError:
        return field_errors.too_many(self.path(key), actual, limit)

    def check(self, key: str, check: Check, value: Any = _VALUE_OF_KEY) -> list[FieldError]:
        """Apply a check to the value at a key, and return an error for each of its messages."""
        checked = self.get(key) if value is _VALUE_OF_KEY else value
        return [field_errors.invalid(self.path(key), checked, message) for message in check(checked)]

    def check_values(self, key: str, check: Check) -> list[FieldError]:
        """Apply a check to every value of the list at a key, and return an error for each of its messages."""
        values = enumerate(self.get(key) or ())
        return [error for index, value in values for error in self.check(f"{key}[{index}]", check, value)]


Rule = Callable[[Scope], Errors]
_FieldRule = Callable[[Scope, str], Sequence[FieldError]]
Condition = Callable[[Scope], Any] | Mapping[str, Any]
SET: Final = object()  # in a condition: the field has a value, which may be empty
UNSET: Final = object()
EMPTY: Final = object()  # in a condition: the field is absent, empty or zero
NOT_EMPTY: Final = object()


class Not(tuple[Any, ...]):
    """The values that a field must not have, in a condition: `{"type": Not(("A", "B"))}`."""


def _to_predicate(condition: Condition) -> Callable[[Scope], Any]:
    if not isinstance(condition, Mapping):
        return condition
    expected = tuple(condition.items())

    def holds(scope: Scope) -> bool:
        for key, wanted in expected:
            value = scope.get(key)
            if wanted is SET or wanted is UNSET:
                matches = (value is None) == (wanted is UNSET)
            elif wanted is EMPTY or wanted is NOT_EMPTY:
                matches = bool(value) == (wanted is NOT_EMPTY)
            elif isinstance(wanted, tuple):
                matches = (value in wanted) != isinstance(wanted, Not)
            else:
                matches = value == wanted
            if not matches:
                return False
        return True

    return holds


def lookup(obj: Any, path: str) -> Any:
    """Return the value at a dotted path of an object, or None if it is absent."""
    for key in path.split("."):
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj


def go_struct(fields: Object) -> str:
    """Format a value as field errors show a Go struct: with the names and the order of its Go fields."""
    return "{" + ",".join(f'"{key}":{field_errors.format_value(value)}' for key, value in fields.items()) + "}"


def build_validator(*rules: Rule) -> Validator:
    """Return a function that applies the rules of a kind to an object. The registry calls it."""

    def validate(new: Object, old: Object | None) -> list[FieldError]:
        scope = Scope(new, old)
        return [error for rule in rules for error in rule(scope)]

    return validate


def apply(rules: Iterable[Rule], scope: Scope) -> list[FieldError]:
    """Return the errors of several rules for one object."""
    return [error for rule in rules for error in rule(scope)]


# Where rules apply.


def inside(key: str, *rules: Rule, always: bool = False) -> Rule:
    """Return a rule that applies rules to the object at a key, if it is set. `always`: or else to an empty object."""

    def rule(scope: Scope) -> Errors:
        return apply(rules, scope.inside(key)) if always or scope.get(key) is not None else ()

    return rule


def each(key: str, *rules: Rule, name: str = "") -> Rule:
    """Return a rule that applies rules to every item of a list of objects."""

    def rule(scope: Scope) -> Errors:
        return [error for item in scope.each(key, name) for rule in rules for error in rule(item)]

    return rule


def when(condition: Condition, *rules: Rule) -> Rule:
    """Return a rule that applies rules if a condition holds."""
    holds = _to_predicate(condition)
    return lambda scope: apply(rules, scope) if holds(scope) else ()


def on_create(*rules: Rule) -> Rule:
    """Return a rule that applies rules only to new objects."""
    return when(lambda scope: scope.old is None, *rules)


def on_update(*rules: Rule) -> Rule:
    """Return a rule that applies rules only to updates."""
    return when(lambda scope: scope.old is not None, *rules)


def first_error(*rules: Rule) -> Rule:
    """Return a rule that applies rules in order until one reports errors."""

    def rule(scope: Scope) -> Errors:
        for rule in rules:
            if errors := list(rule(scope)):
                return errors
        return ()

    return rule


# What a field must hold.


class field:  # noqa: N801 - the tables read as sentences: field("replicas").at_least(0)
    """Rules for the fields `keys` of an object. Every method adds a rule for each of these fields."""

    __slots__ = ("_keys", "_rules")

    def __init__(self, *keys: str) -> None:
        self._keys = keys
        self._rules: list[tuple[_FieldRule, str]] = []

    def __call__(self, scope: Scope) -> Errors:
        errors: Sequence[FieldError] = ()
        for rule, key in self._rules:
            if rule_errors := rule(scope, key):
                errors = [*errors, *rule_errors]
        return errors

    def _for_each(self, rule: _FieldRule) -> "field":
        self._rules += [(rule, key) for key in self._keys]
        return self

    def required(self, check: Check | None = None, *, detail: str = "", allow_empty: bool = False) -> "field":
        """Require a value that is not empty, and apply `check` to it.

        `allow_empty`: require only that the field is set.
        """

        def rule(scope: Scope, key: str) -> Sequence[FieldError]:
            value = scope.get(key)
            if value is None or not (value or allow_empty):
                return (scope.required(key, detail),)
            return () if check is None else scope.check(key, check)

        return self._for_each(rule)

    def optional(self, check: Check) -> "field":
        """Apply a check to the value unless it is absent or empty."""
        return self._for_each(lambda scope, key: scope.check(key, check) if scope.get(key) else ())

    def check(self, check: Check, *, zero: Any = None) -> "field":
        """Apply a check to the value, even if it is empty.

        An absent value is treated as `zero`, or skipped if that is None.
        """

        def rule(scope: Scope, key: str) -> Sequence[FieldError]:
            value = scope.get(key)
            value = zero if value is None else value
            return () if value is None else scope.check(key, check, value)

        return self._for_each(rule)

    def enum(self, *allowed: str, always: bool = False) -> "field":
        """Allow only these values. `always`: reject an absent field too."""

        def rule(scope: Scope, key: str) -> Sequence[FieldError]:
            value = scope.get(key)
            is_accepted = value in allowed or (value is None and not always)
            return () if is_accepted else (scope.not_supported(key, allowed),)

        return self._for_each(rule)

    def required_enum(self, *allowed: str, detail: str = "") -> "field":
        """Reject an absent or empty field, and allow only these values."""

        def rule(scope: Scope, key: str) -> Sequence[FieldError]:
            if not scope.get(key):
                return (scope.required(key, detail),)
            return () if scope.get(key) in allowed else (scope.not_supported(key, allowed),)

        return self._for_each(rule)

    def between(
        self, lowest: int | None, highest: int | None, message: str = "", *, zero: int | None = None
    ) -> "field":
        """Reject a number outside the bounds. An absent number is treated as `zero`, or skipped if that is None."""
        message = message or f"must be between {lowest} and {highest}, inclusive"

        def rule(scope: Scope, key: str) -> Sequence[FieldError]:
            number = scope.get(key)
            number = zero if number is None else number
            if number is None or ((lowest is None or number >= lowest) and (highest is None or number <= highest)):
                return ()
            return (scope.invalid(key, message, number),)

        return self._for_each(rule)

    def at_least(self, lowest: int, message: str = "", *, zero: int | None = None) -> "field":
        return self.between(lowest, None, message or f"must be greater than or equal to {lowest}", zero=zero)

    def at_most(self, highest: int, message: str = "") -> "field":
        return self.between(None, highest, message or f"must be less than or equal to {highest}")

    def positive_quantity(self, message: str) -> "field":
        return self.check(lambda amount: () if quantity.parse(amount)[0] > 0 else (message,))

    def max_length(self, limit: int) -> "field":
        return self._for_each(lambda scope, key: (scope.too_long(key, limit),) if len(scope.text(key)) > limit else ())

    def domain_prefixed_path(self) -> "field":
        """Require a DNS subdomain, a slash and a path, such as example.com/name."""

        def rule(scope: Scope, key: str) -> Sequence[FieldError]:
            host, _, path = scope.text(key).partition("/")
            if not scope.get(key):
                return (scope.required(key),)
            if not host or not path:
                return (scope.invalid(key, 'must be a domain-prefixed path (such as "acme.io/foo")'),)
            return scope.check(key, names.subdomain, host)

        return self._for_each(rule)

    def immutable(self, *, name: str = "", zero: Any = None) -> "field":
        """Reject an update that changes the value.

        Errors name the field `name`, or else the key, and show an absent value as `zero`.
        """

        def rule(scope: Scope, key: str) -> Sequence[FieldError]:
            if scope.old is None or (value := scope.get(key)) == lookup(scope.old, key):
                return ()
            return (scope.invalid(name or key, IMMUTABLE, zero if value is None else value),)

        return self._for_each(rule)

    # Lists.

    def values(self, check: Check) -> "field":
        """Apply a check to every value of a list."""
        return self._for_each(lambda scope, key: scope.check_values(key, check))

    def enum_values(self, *allowed: str) -> "field":
        """Allow only these values in a list."""
        return self._for_each(
            lambda scope, key: [
                scope.not_supported(f"{key}[{index}]", allowed, value)
                for index, value in enumerate(scope.items(key))
                if value not in allowed
            ]
        )

    def unique_values(self) -> "field":
        """Reject a value of a list that occurs earlier in the same list."""

        def rule(scope: Scope, key: str) -> Sequence[FieldError]:
            items = scope.items(key)
            return [scope.duplicate(f"{key}[{i}]", value) for i, value in enumerate(items) if value in items[:i]]

        return self._for_each(rule)

    def max_items(self, limit: int) -> "field":
        def rule(scope: Scope, key: str) -> Sequence[FieldError]:
            count = len(scope.items(key))
            return (scope.too_many(key, count, limit),) if count > limit else ()

        return self._for_each(rule)

    def unique(self, *, on_item: bool = False, skip_empty: bool = False) -> "field":
        """Reject an item of a list whose field has the value of an earlier item.

        `on_item`: report the item, not its field.
        """

        def rule(item: Scope, key: str) -> Sequence[FieldError]:
            value, seen_values = item.text(key), item.notes.setdefault(key, set())
            if value in seen_values and (value or not skip_empty):
                return (item.duplicate("" if on_item else key, value),)
            seen_values.add(value)
            return ()

        return self._for_each(rule)

    # Fields that depend on other fields.

    def required_if(self, condition: Condition, detail: str = "") -> "field":
        holds = _to_predicate(condition)
        return self._for_each(lambda scope, key: (scope.required(key, detail),) if holds(scope) else ())

    def invalid_if(self, condition: Condition, message: str) -> "field":
        holds = _to_predicate(condition)
        return self._for_each(lambda scope, key: (scope.invalid(key, message),) if holds(scope) else ())

    def forbidden_if(self, condition: Condition, detail: str) -> "field":
        holds = _to_predicate(condition)
        return self._for_each(lambda scope, key: (scope.forbidden(key, detail),) if holds(scope) else ())
