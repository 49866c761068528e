"""A rule as a tree, read from what the engine's parser makes of it: loops stand for the macros that they came from."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from fairlead.server.protobuf import wire
from fairlead.server.schema.cel import rewriting
from fairlead.server.schema.cel.functions.named_formats import FORMATS

_DOTTED: Final = frozenset(  # functions whose names look like calls on a variable
    (
        "ip.isCanonical", "lists.range", "optional.none", "optional.of", "optional.ofNonZeroValue", "sets.contains",
        "sets.equivalent", "sets.intersects", "strings.quote", "format.named", *(f"format.{name}" for name in FORMATS),
    )
)  # fmt: skip
_SORTED: Final = "@sorted"


class Expression:
    """One part of a rule. Two parts are never equal: each stands at its own place."""

    id = 0  # by which the engine says more about it

    @property
    def parts(self) -> "list[Expression]":
        return []


@dataclass(eq=False)
class Literal(Expression):
    type: str
    value: Any


@dataclass(eq=False)
class Name(Expression):
    name: str


@dataclass(eq=False)
class Select(Expression):
    operand: Expression
    field: str
    test: bool  # whether it is there: has()

    @property
    def parts(self) -> list[Expression]:
        return [self.operand]


@dataclass(eq=False)
class Call(Expression):
    function: str
    target: Expression | None
    arguments: list[Expression]

    @property
    def parts(self) -> list[Expression]:
        return [*([self.target] if self.target is not None else []), *self.arguments]


@dataclass(eq=False)
class Items(Expression):
    """A list that is written out."""

    items: list[Expression]
    optional: frozenset[int] = frozenset()  # which of them are there only if they have a value

    @property
    def parts(self) -> list[Expression]:
        return self.items


@dataclass(eq=False)
class Entries(Expression):
    """A map that is written out."""

    entries: list[tuple[Expression, Expression]]
    optional: frozenset[int] = frozenset()

    @property
    def parts(self) -> list[Expression]:
        return [part for entry in self.entries for part in entry]


@dataclass(eq=False)
class Loop(Expression):
    """A step for each item of a range. Over nothing, and never run, it gives a value a name (optMap)."""

    variable: str
    second: str  # the value beside a key or an index, or ""
    over: Expression
    result_name: str
    start: Expression
    condition: Expression
    step: Expression
    result: Expression

    @property
    def parts(self) -> list[Expression]:
        return [self.over, self.start, self.condition, self.step, self.result]

    @property
    def names_only(self) -> bool:
        empty = isinstance(self.over, Items) and not self.over.items
        return empty and isinstance(self.condition, Literal) and self.condition.value is False


class Parsed(NamedTuple):
    """A rule's tree, and where in its text each part stands."""

    tree: Expression
    positions: dict[int, int]

    def expressions(self) -> Iterator[Expression]:
        """Each part, outermost first."""
        waiting = [self.tree]
        while waiting:
            one = waiting.pop()
            yield one
            waiting += one.parts


def parse(environment: Any, text: str) -> Expression:
    """The tree of a rule that compiles."""
    return parsed(environment, text).tree


def parsed(environment: Any, text: str) -> Parsed:
    made = environment.compile(rewriting.two_variables(text), disable_check=True).serialize()
    of = dict(fields(dict(fields(made))[2]))
    return Parsed(expression(of[2]), positions(of[3]))


def positions(source: bytes) -> dict[int, int]:
    """Where each part stands, from a SourceInfo."""
    found = [dict(fields(value)) for number, value in fields(source) if number == 4]
    return {entry[1]: entry.get(2, 0) for entry in found}


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    return ((number, value) for number, _, value in wire.read_fields(data, "Expr"))


def expression(data: bytes) -> Expression:
    """The tree of an Expr."""
    parts = dict(fields(data))
    label = parts.pop(2, 0)
    [(number, value)] = parts.items()
    made = _READERS[number](value)
    made.id = label
    return made


def _literal(data: bytes) -> Expression:
    number, value = next(fields(data), (1, 0))
    kind, read = _LITERALS[number]
    return Literal(kind, read(value))


def _select(data: bytes) -> Expression:
    of = dict(fields(data))
    return Select(expression(of[1]), of.get(2, b"").decode(), bool(of.get(3)))


def _call(data: bytes) -> Expression:
    of = dict(fields(data))
    function = of[2].decode()
    target = expression(of[1]) if 1 in of else None
    arguments = [expression(value) for number, value in fields(data) if number == 3]
    if isinstance(target, Name) and f"{target.name}.{function}" in _DOTTED:
        return Call(f"{target.name}.{function}", None, arguments)
    if function == "sortBy" and target is not None and len(arguments) == 2 and isinstance(arguments[0], Name):
        return _sort_by(target, arguments[0].name, arguments[1])
    return Call(function, target, arguments)


def _sort_by(target: Expression, variable: str, key: Expression) -> Expression:
    """The list under a name, sorted by a list of keys that is made of it."""
    accumulated = Call("_+_", None, [Name("@result"), Items([key])])
    keys = Loop(
        variable, "", Name(_SORTED), "@result", Items([]), Literal("bool", True), accumulated, Name("@result")
    )  # fmt: skip
    by_keys = Call("@sortByAssociatedKeys", Name(_SORTED), [keys])
    return Loop("#unused", "", Items([]), _SORTED, target, Literal("bool", False), Name(_SORTED), by_keys)


def _items(data: bytes) -> Expression:
    optional = [at for number, packed in fields(data) if number == 2 for at in wire.read_packed_varints(packed)]
    return Items([expression(value) for number, value in fields(data) if number == 1], frozenset(optional))


def _entries(data: bytes) -> Expression:
    entries = [dict(fields(value)) for number, value in fields(data) if number == 2]
    optional = frozenset(n for n, entry in enumerate(entries) if entry.get(5))
    return Entries([(_key(entry), expression(entry[4])) for entry in entries], optional)


def _key(entry: dict[int, Any]) -> Expression:
    """A map's key, or the name of a message's field."""
    return expression(entry[3]) if 3 in entry else Literal("string", entry[2].decode())


def _loop(data: bytes) -> Expression:
    of = dict(fields(data))
    return Loop(
        of[1].decode(),
        of.get(8, b"").decode(),
        expression(of[2]),
        of[3].decode(),
        *(expression(of[n]) for n in (4, 5, 6, 7)),
    )


_LITERALS: Final[dict[int, tuple[str, Callable[[Any], Any]]]] = {
    1: ("null", lambda value: None),
    2: ("bool", bool),
    3: ("int", wire.to_signed),
    4: ("uint", int),
    5: ("double", lambda value: struct.unpack("<d", value)[0]),
    6: ("string", bytes.decode),
    7: ("bytes", bytes),
}
_READERS: Final = {
    3: _literal,
    4: lambda data: Name(dict(fields(data))[1].decode()),
    5: _select,
    6: _call,
    7: _items,
    8: _entries,
    9: _loop,
}
