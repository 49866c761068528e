"""What the engine lets pass in what a rule says outright: times, patterns, formats, and lists of several types."""

import json
import math
import re
from collections.abc import Callable
from typing import Any, Final

import re2

from fairlead.server.schema.cel.checks.error_messages import Problem
from fairlead.server.schema.cel.syntax_tree import Call, Entries, Expression, Items, Literal, fields, positions
from fairlead.server.schema.cel.syntax_tree import expression as read
from fairlead.server.schema.cel.values import as_time
from fairlead.server.schema.patterns import compile_pattern

_PRIMITIVES: Final = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN: Final = {1: "any", 2: "timestamp", 3: "duration"}
_READ: Final[dict[str, Callable[[str], Any]]] = {  # texts that must be right, by the function that reads them
    "timestamp": lambda text: as_time(text, "TIMESTAMP"),
    "duration": lambda text: as_time(text, "DURATION"),
    "matches": compile_pattern,
}
_CONVERSIONS: Final = ("bool", "double", "int", "uint")
_CLAUSE: Final = re.compile(r"%(?:%|(?:\.\d*)?(.?))", re.DOTALL)
_OBJECT: Final = re.compile(r"(?!list\(|map\(|type\().*[.(_].*")  # an object, or what Kubernetes' functions make
_SHOWN: Final = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
_INTEGERS: Final = ("int", "uint")
_HEX: Final = ((*_INTEGERS, "string", "bytes"), "only integers, byte buffers, and strings can be formatted as hex")
_FITTING: Final[dict[str, tuple[tuple[str, ...], str]]] = {  # by clause: the types, and what is told of others
    "d": (_INTEGERS, "decimal clause can only be used on integers"),
    "f": (("double",), "fixed-point clause can only be used on doubles"),
    "e": (("double",), "scientific clause can only be used on doubles"),
    "b": ((*_INTEGERS, "bool"), "only integers and bools can be formatted as binary"),
    "x": _HEX,
    "X": _HEX,
    "o": (_INTEGERS, "octal clause can only be used on integers"),
}


class Literals:
    """What is wrong with the literals of a rule, and which of them it converts."""

    def __init__(self, program: Any) -> None:
        parts = list(fields(dict(fields(program.serialize()))[2]))  # a CheckedExpr
        types = [dict(fields(value)) for number, value in parts if number == 3]
        self._types = {entry[1]: _named(entry[2]) for entry in types}
        places = positions(dict(parts)[5])
        self.conversions: list[str] = []
        self._formatting = False
        self._found: list[tuple[Expression, str]] = []
        self._walk(read(dict(parts)[4]))
        self.problems = sorted(Problem(places.get(one.id, 0), told) for one, told in self._found)

    def _walk(self, one: Expression) -> None:
        match one:
            case Literal("double", value) if math.isinf(value):
                self._found.append((one, "invalid double literal"))
            case Call():
                self._call(one)
            case Items():
                self._alike(one.items, one.optional)
            case Entries():
                if self._type(one).startswith("map("):  # not a message
                    self._alike([key for key, _ in one.entries], frozenset())
                    self._alike([value for _, value in one.entries], one.optional)
        outside = self._formatting
        self._formatting = outside or (isinstance(one, Call) and one.function == "format")
        for part in one.parts:
            self._walk(part)
        self._formatting = outside

    def _call(self, call: Call) -> None:
        match call:
            case Call(function, None, [Literal(value=value)]) if function in _CONVERSIONS and value != math.inf:
                self.conversions.append(f"{function}({json.dumps(value)})")
            case Call(function, _, [Literal("string", text) as given]) if function in _READ and not _fit(
                function, text
            ):
                self._found.append((given, f"invalid {function} argument"))
            case Call("format", Literal("string", text), [Items(items)]):
                if (wrong := self._format(text, items)) is not None:
                    at, told = wrong
                    self._found.append((call if at is None else items[at], told))

    def _alike(self, items: list[Expression], optional: frozenset[int]) -> None:
        """All of one type, except in what is formatted. What is optional is of the type that it may be."""
        types = [self._type(item) for item in items]
        types = [of[len("optional_type(") : -1] if n in optional else of for n, of in enumerate(types)]
        other = next((n for n, of in enumerate(types) if of != types[0]), None)
        if other is not None and not self._formatting:
            self._found.append((items[other], f"expected type '{types[0]}' but found '{types[other]}'"))

    def _format(self, text: str, items: list[Expression]) -> tuple[int | None, str] | None:
        """The first that is wrong with a format: at which argument, if at one."""
        at = 0
        for clause in _CLAUSE.finditer(text):
            letter = clause[1]
            if letter is None:
                continue
            if letter == "":
                return None, "unexpected end of string"
            if at >= len(items):
                return None, f"index {at} out of range"
            if letter not in (*_FITTING, "s"):
                return None, f'could not parse formatting clause: unrecognized formatting clause "{letter}"'
            if told := _misfit(letter, self._type(items[at])):
                return at, f"error during formatting: {told}"
            at += 1
        if at < len(items):
            return None, f"too many arguments supplied to string.format (expected {at}, got {len(items)})"
        return None

    def _type(self, item: Expression) -> str:
        return self._types.get(item.id, "dyn")


def _misfit(letter: str, of: str) -> str:
    of, whole = of.partition("(")[0], of
    if letter == "s":
        return f"string clause can only be used on {_SHOWN}, was given {of}" if _OBJECT.fullmatch(whole) else ""
    fitting, told = _FITTING[letter]
    return "" if of in (*fitting, "dyn") else f"{told}, was given {of}"


def _fit(function: str, text: str) -> bool:
    try:
        _READ[function](text)
    except (ValueError, re2.error):
        return False
    return True


def _named(data: bytes) -> str:
    """A type as it is told."""
    match list(fields(data)):
        case [(2, _)]:
            return "null"
        case [(3, value)]:
            return _PRIMITIVES[value]
        case [(5, value)]:
            return _WELL_KNOWN[value]
        case [(6, value)]:
            return f"list({_inside(value)})"
        case [(7, value)]:
            return f"map({_inside(value)})"
        case [(9, value)]:
            return str(value.decode())
        case [(11, value)]:
            return f"type({_named(value)})"
        case [(14, value)]:
            (_, name), *of = fields(value)
            inner = ", ".join(_named(one) for _, one in of)
            return f"{name.decode()}({inner})" if inner else str(name.decode())
    return "dyn"


def _inside(data: bytes) -> str:
    return ", ".join(_named(one) for _, one in fields(data))
