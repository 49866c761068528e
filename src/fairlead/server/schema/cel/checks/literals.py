"""Checks of the literals in a rule that the engine does not do: times, patterns, formats, lists of mixed types."""

import json
import math
import re
from collections.abc import Callable
from typing import Any, Final

import re2

from fairlead.server.schema.cel.checks.error_messages import Problem
from fairlead.server.schema.cel.syntax_tree import (
    Call,
    Expression,
    ListLiteral,
    Literal,
    MapLiteral,
    decode_expression,
    decode_positions,
    message_fields,
)
from fairlead.server.schema.cel.values import parse_time
from fairlead.server.schema.patterns import compile_pattern

_PRIMITIVES: Final = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN: Final = {1: "any", 2: "timestamp", 3: "duration"}
_PARSERS: Final[dict[str, Callable[[str], Any]]] = {  # Functions whose literal argument must be valid.
    "timestamp": lambda text: parse_time(text, "TIMESTAMP"),
    "duration": lambda text: parse_time(text, "DURATION"),
    "matches": compile_pattern,
}
_CONVERSIONS: Final = ("bool", "double", "int", "uint")
_CLAUSE: Final = re.compile(r"%(?:%|(?:\.\d*)?(.?))", re.DOTALL)
_OBJECT: Final = re.compile(r"(?!list\(|map\(|type\().*[.(_].*")  # An object, or a type of Kubernetes' functions.
_PRINTABLE: Final = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
_INTEGERS: Final = ("int", "uint")
_HEX: Final = ((*_INTEGERS, "string", "bytes"), "only integers, byte buffers, and strings can be formatted as hex")
_CLAUSE_TYPES: Final[
    dict[str, tuple[tuple[str, ...], str]]
] = {  # For each clause: its types, and the error for others.
    "d": (_INTEGERS, "decimal clause can only be used on integers"),
    "f": (("double",), "fixed-point clause can only be used on doubles"),
    "e": (("double",), "scientific clause can only be used on doubles"),
    "b": ((*_INTEGERS, "bool"), "only integers and bools can be formatted as binary"),
    "x": _HEX,
    "X": _HEX,
    "o": (_INTEGERS, "octal clause can only be used on integers"),
}


class LiteralCheck:
    """Checks the literals of a type-checked rule.

    `problems` are the errors. `conversions` are calls such as `int("1")`, which the caller must evaluate to find more
    errors.
    """

    def __init__(self, program: Any) -> None:
        checked = list(message_fields(dict(message_fields(program.serialize()))[2]))  # A CheckedExpr message.
        types = [dict(message_fields(value)) for number, value in checked if number == 3]
        self._types = {entry[1]: _get_type_name(entry[2]) for entry in types}
        positions = decode_positions(dict(checked)[5])
        self.conversions: list[str] = []
        self._in_format = False
        self._found: list[tuple[Expression, str]] = []
        self._check(decode_expression(dict(checked)[4]))
        self.problems = sorted(Problem(positions.get(expression.id, 0), message) for expression, message in self._found)

    def _check(self, expression: Expression) -> None:
        match expression:
            case Literal("double", value) if math.isinf(value):
                self._found.append((expression, "invalid double literal"))
            case Call():
                self._check_call(expression)
            case ListLiteral():
                self._expect_one_type(expression.items, expression.optional)
            case MapLiteral():
                if self._type(expression).startswith("map("):  # The other struct literals are messages.
                    self._expect_one_type([key for key, _ in expression.entries], frozenset())
                    self._expect_one_type([value for _, value in expression.entries], expression.optional)
        outer = self._in_format
        self._in_format = outer or (isinstance(expression, Call) and expression.function == "format")
        for child in expression.children:
            self._check(child)
        self._in_format = outer

    def _check_call(self, call: Call) -> None:
        match call:
            case Call(function, None, [Literal(value=value)]) if function in _CONVERSIONS and value != math.inf:
                self.conversions.append(f"{function}({json.dumps(value)})")
            case Call(function, _, [Literal("string", text) as argument]) if function in _PARSERS and not _can_parse(
                function, text
            ):
                self._found.append((argument, f"invalid {function} argument"))
            case Call("format", Literal("string", text), [ListLiteral(items)]):
                if (problem := self._check_format(text, items)) is not None:
                    index, message = problem
                    self._found.append((call if index is None else items[index], message))

    def _expect_one_type(self, items: list[Expression], optional: frozenset[int]) -> None:
        """Record a problem for the first item whose type differs. The arguments of `format` may have several types."""
        types = [self._type(item) for item in items]
        types = [name[len("optional_type(") : -1] if n in optional else name for n, name in enumerate(types)]
        other = next((n for n, name in enumerate(types) if name != types[0]), None)
        if other is not None and not self._in_format:
            self._found.append((items[other], f"expected type '{types[0]}' but found '{types[other]}'"))

    def _check_format(self, format_string: str, items: list[Expression]) -> tuple[int | None, str] | None:
        """Return (argument index or None, message) for the first problem of a format string, or None if it is valid."""
        at = 0
        for clause in _CLAUSE.finditer(format_string):
            letter = clause[1]
            if letter is None:
                continue
            if letter == "":
                return None, "unexpected end of string"
            if at >= len(items):
                return None, f"index {at} out of range"
            if letter not in (*_CLAUSE_TYPES, "s"):
                return None, f'could not parse formatting clause: unrecognized formatting clause "{letter}"'
            if message := _format_clause_error(letter, self._type(items[at])):
                return at, f"error during formatting: {message}"
            at += 1
        if at < len(items):
            return None, f"too many arguments supplied to string.format (expected {at}, got {len(items)})"
        return None

    def _type(self, item: Expression) -> str:
        return self._types.get(item.id, "dyn")


def _format_clause_error(letter: str, type_name: str) -> str:
    base = type_name.partition("(")[0]
    if letter == "s":
        is_object = _OBJECT.fullmatch(type_name)
        return f"string clause can only be used on {_PRINTABLE}, was given {base}" if is_object else ""
    allowed, message = _CLAUSE_TYPES[letter]
    return "" if base in (*allowed, "dyn") else f"{message}, was given {base}"


def _can_parse(function: str, text: str) -> bool:
    try:
        _PARSERS[function](text)
    except (ValueError, re2.error):
        return False
    return True


def _get_type_name(type_message: bytes) -> str:
    """Return the name that error messages use for a serialized Type message."""
    match list(message_fields(type_message)):
        case [(2, _)]:
            return "null"
        case [(3, value)]:
            return _PRIMITIVES[value]
        case [(5, value)]:
            return _WELL_KNOWN[value]
        case [(6, value)]:
            return f"list({_format_parameters(value)})"
        case [(7, value)]:
            return f"map({_format_parameters(value)})"
        case [(9, value)]:
            return str(value.decode())
        case [(11, value)]:
            return f"type({_get_type_name(value)})"
        case [(14, value)]:
            (_, name), *parameters = message_fields(value)
            inner = ", ".join(_get_type_name(parameter) for _, parameter in parameters)
            return f"{name.decode()}({inner})" if inner else str(name.decode())
    return "dyn"


def _format_parameters(type_messages: bytes) -> str:
    return ", ".join(_get_type_name(parameter) for _, parameter in message_fields(type_messages))
