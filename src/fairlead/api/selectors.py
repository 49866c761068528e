"""Parse label and field selectors as a real server does, and match them against plain dicts."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_SPECIAL = "()=!<>,"
_TOKENS = frozenset(("(", ")", ",", "!", "=", "==", "!=", "<", ">", "in", "notin"))
_OPERATORS = ("in", "notin", "=", "==", "!=", "gt", "lt")
_INTEGER = re.compile(r"[+-]?[0-9]{1,64}\Z")
_END = ""


class SelectorError(ValueError):
    """The error for a selector that cannot be parsed. The message is the message of a real API server."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition of a label selector, such as `tier in (web,api)`.

    `operator` is one of: = != in notin exists ! < >
    """

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        if self.operator in ("=", "in"):
            return value is not None and value in self.values
        if self.operator in ("!=", "notin"):
            return value is None or value not in self.values
        if self.operator == "exists":
            return value is not None
        if self.operator == "!":
            return value is None
        if value is None or not _is_int64(value):
            return False
        (bound,) = self.values
        return int(value) > int(bound) if self.operator == ">" else int(value) < int(bound)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A parsed label selector. It matches labels that meet every requirement."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        label_values = labels or {}
        return all(requirement.matches(label_values) for requirement in self.requirements)

    def __bool__(self) -> bool:
        return bool(self.requirements)


@dataclass(frozen=True, slots=True)
class FieldCondition:
    """One condition of a field selector: the field equals a value, or does not equal it."""

    path: str
    value: str
    is_equality: bool = True


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """A parsed field selector. It matches objects that meet every condition.

    `matches` takes a function that returns the value of a field path, such as `metadata.name`, as text.
    """

    conditions: tuple[FieldCondition, ...] = ()

    def matches(self, values: Callable[[str], str]) -> bool:
        return all((values(c.path) == c.value) is c.is_equality for c in self.conditions)

    def __bool__(self) -> bool:
        return bool(self.conditions)


def parse_labels(text: str, check: Callable[[str, str | None], str | None] = lambda key, value: None) -> LabelSelector:
    """Parse a label selector such as `app=web,tier in (a,b)`.

    `check` validates the labels. The parser calls `check(key, None)` for each key and `check(key, value)` for each
    value. `check` returns an error message, or None if the label is valid.

    Raises SelectorError.
    """
    return LabelSelector(tuple(_Parser(text, check).parse()))


def parse_fields(text: str) -> FieldSelector:
    """Parse a field selector: `path=value`, `path==value` or `path!=value`, joined by commas.

    A backslash escapes a comma, an equals sign and a backslash.

    Raises SelectorError.
    """
    conditions = []
    for term in _split(text):
        if not term:
            continue
        match = re.match(r"((?:[^=!\\]|\\.|!(?!=))*)(!=|==|=)(.*)\Z", term, re.DOTALL)
        if match is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        path, operator, value = match.groups()
        if not path and not value:
            continue  # a real server ignores an empty condition
        conditions.append(FieldCondition(path, _unescape(value), operator != "!="))
    return FieldSelector(tuple(conditions))


def _is_int64(text: str) -> bool:
    return bool(_INTEGER.match(text)) and -(1 << 63) <= int(text) < 1 << 63


def _split(text: str) -> list[str]:
    terms, current, is_escaped = [], "", False
    for ch in text:
        if is_escaped:
            current += ch
            is_escaped = False
        elif ch == "\\":
            current += ch
            is_escaped = True
        elif ch == ",":
            terms.append(current)
            current = ""
        else:
            current += ch
    return [*terms, current]


def _unescape(value: str) -> str:
    unescaped, is_escaped = "", False
    for ch in value:
        if is_escaped:
            if ch not in ",=\\":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{ch}")
            unescaped += ch
            is_escaped = False
        elif ch == "\\":
            is_escaped = True
        elif ch in ",=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {ch}")
        else:
            unescaped += ch
    if is_escaped:
        raise SelectorError("invalid field selector: invalid escape sequence: \\")
    return unescaped


def _lex(text: str) -> list[tuple[str, str]]:
    """Return the tokens of a label selector as (symbol, literal) pairs: ("id", "app"), ("=", "="), …, ("end", "")."""
    items, at = [], 0
    while at < len(text):
        ch = text[at]
        if ch in " \t\r\n":
            at += 1
        elif ch in _SPECIAL:
            end = at + 1
            while end < len(text) and text[at : end + 1] in _TOKENS:
                end += 1
            items.append((text[at:end], text[at:end]))
            at = end
        else:
            end = at
            while end < len(text) and text[end] not in _SPECIAL and text[end] not in " \t\r\n":
                end += 1
            token_text = text[at:end]
            items.append((token_text if token_text in ("in", "notin") else "id", token_text))
            at = end
    return [*items, ("end", _END)]


class _Parser:
    def __init__(self, text: str, check: Callable[[str, str | None], str | None]) -> None:
        self._items = _lex(text)
        self._at = 0
        self._check = check

    def _peek(self, expects_values: bool = True) -> tuple[str, str]:
        symbol, literal = self._items[min(self._at, len(self._items) - 1)]
        return ("id", literal) if expects_values and symbol in ("in", "notin") else (symbol, literal)

    def _take(self, expects_values: bool = True) -> tuple[str, str]:
        item = self._peek(expects_values)
        self._at += 1
        return item

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            symbol, literal = self._peek()
            if symbol == "end":
                return requirements
            if symbol not in ("id", "!"):
                raise SelectorError(f"found '{literal}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._parse_requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            symbol, literal = self._take()
            if symbol == "end":
                return requirements
            if symbol != ",":
                raise SelectorError(f"found '{literal}', expected: ',' or 'end of string'")
            symbol, literal = self._peek()
            if symbol not in ("id", "!"):
                raise SelectorError(f"found '{literal}', expected: identifier after ','")

    def _parse_requirement(self) -> Requirement:
        symbol, key = self._take()
        is_negated = symbol == "!"
        if is_negated:
            symbol, key = self._take()
        if symbol != "id":
            raise SelectorError(f"found '{key}', expected: identifier")
        if problem := self._check(key, None):
            raise SelectorError(problem)
        if is_negated:
            return Requirement(key, "!")
        if self._peek()[0] in ("end", ","):
            return Requirement(key, "exists")
        symbol, literal = self._take(expects_values=False)
        if symbol in ("in", "notin"):
            values = self._parse_values()
            operator = symbol
        elif symbol in ("=", "==", "!=", "<", ">"):
            values = {self._parse_value()}
            operator = "=" if symbol == "==" else symbol
        else:
            raise SelectorError(f"found '{literal}', expected: {', '.join(_OPERATORS)}")
        if operator in "<>" and not all(_is_int64(v) for v in values):
            (bound,) = values
            raise SelectorError(
                f"values[0]: Invalid value: \"{bound}\": for 'Gt', 'Lt' operators, the value must be an integer"
            )
        for value in sorted(values):
            if problem := self._check(key, value):
                raise SelectorError(problem)
        return Requirement(key, operator, frozenset(values))

    def _parse_value(self) -> str:
        if self._peek()[0] in ("end", ","):
            return ""
        symbol, literal = self._take()
        if symbol != "id":
            raise SelectorError(f"found '{literal}', expected: identifier")
        return literal

    def _parse_values(self) -> set[str]:
        symbol, literal = self._take()
        if symbol != "(":
            raise SelectorError(f"found '{literal}' expected: '('")
        symbol, literal = self._peek()
        if symbol == ")":
            self._take()
            return {""}
        if symbol not in ("id", ","):
            raise SelectorError(f"found '{literal}', expected: ',', ')' or identifier")
        values = self._parse_identifiers()
        symbol, literal = self._take()
        if symbol != ")":
            raise SelectorError(f"found '{literal}', expected: ')'")
        return values

    def _parse_identifiers(self) -> set[str]:
        values: set[str] = set()
        while True:
            symbol, literal = self._take()
            if symbol == "id":
                values.add(literal)
                symbol, literal = self._peek()
                if symbol == ")":
                    return values
                if symbol != ",":
                    raise SelectorError(f"found '{literal}', expected: ',' or ')'")
            elif symbol == ",":
                if not values:
                    values.add("")
                symbol, _ = self._peek()
                if symbol == ")":
                    values.add("")
                    return values
                if symbol == ",":
                    self._take()
                    values.add("")
            else:
                raise SelectorError(f"found '{literal}', expected: ',', or identifier")
