"""The syntax tree of a rule, decoded from the engine's parser. Macros are already expanded to comprehensions.

The classes correspond to the variants of CEL's Expr message.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from fairlead.server.protobuf import wire
from fairlead.server.schema.cel import rewriting
from fairlead.server.schema.cel.functions.named_formats import FORMATS

_DOTTED_NAMES: Final = frozenset(  # Functions that the parser takes for methods of a variable.
    (
        "ip.isCanonical", "lists.range", "optional.none", "optional.of", "optional.ofNonZeroValue", "sets.contains",
        "sets.equivalent", "sets.intersects", "strings.quote", "format.named", *(f"format.{name}" for name in FORMATS),
    )
)  # fmt: skip
_SORTED: Final = "@sorted"


class Expression:
    """A node of the syntax tree. Nodes are compared by identity."""

    id = 0  # The engine refers to the expression by this number.

    @property
    def children(self) -> "list[Expression]":
        return []


@dataclass(eq=False)
class Literal(Expression):
    type: str
    value: Any


@dataclass(eq=False)
class Identifier(Expression):
    name: str


@dataclass(eq=False)
class Select(Expression):
    operand: Expression
    field: str
    is_presence_test: bool  # True for has(operand.field).

    @property
    def children(self) -> list[Expression]:
        return [self.operand]


@dataclass(eq=False)
class Call(Expression):
    function: str
    target: Expression | None
    arguments: list[Expression]

    @property
    def children(self) -> list[Expression]:
        return [*([self.target] if self.target is not None else []), *self.arguments]


@dataclass(eq=False)
class ListLiteral(Expression):
    items: list[Expression]
    optional: frozenset[int] = frozenset()  # The indices of the optional items.

    @property
    def children(self) -> list[Expression]:
        return self.items


@dataclass(eq=False)
class MapLiteral(Expression):
    """A map literal, or a message literal with field names as keys."""

    entries: list[tuple[Expression, Expression]]
    optional: frozenset[int] = frozenset()

    @property
    def children(self) -> list[Expression]:
        return [expression for entry in self.entries for expression in entry]


@dataclass(eq=False)
class Comprehension(Expression):
    """A loop over a list or map. A comprehension that never runs binds a value to a name, as in optMap()."""

    variable: str
    second_variable: str  # The value next to a key or an index, or "".
    iter_range: Expression
    accumulator: str
    start: Expression
    condition: Expression
    step: Expression
    result: Expression

    @property
    def children(self) -> list[Expression]:
        return [self.iter_range, self.start, self.condition, self.step, self.result]

    @property
    def is_binding(self) -> bool:
        """Whether the comprehension only binds its start value to the accumulator's name."""
        is_empty = isinstance(self.iter_range, ListLiteral) and not self.iter_range.items
        return is_empty and isinstance(self.condition, Literal) and self.condition.value is False


class SyntaxTree(NamedTuple):
    """The root expression, and the offset of each expression in the rule's text by expression id."""

    root: Expression
    positions: dict[int, int]

    def expressions(self) -> Iterator[Expression]:
        """Yield each expression of the tree, parents before their children."""
        remaining = [self.root]
        while remaining:
            expression = remaining.pop()
            yield expression
            remaining += expression.children


def parse(environment: Any, rule: str) -> Expression:
    """Return the syntax tree of a rule, which must compile."""
    return parse_with_positions(environment, rule).root


def parse_with_positions(environment: Any, rule: str) -> SyntaxTree:
    """Return the syntax tree of a rule, which must compile, with the positions of its expressions."""
    serialized = environment.compile(rewriting.rename_exists_one(rule), disable_check=True).serialize()
    parsed = dict(message_fields(dict(message_fields(serialized))[2]))
    return SyntaxTree(decode_expression(parsed[2]), decode_positions(parsed[3]))


def decode_positions(source_info: bytes) -> dict[int, int]:
    """Return the offset of each expression by its id, from a serialized SourceInfo message."""
    entries = [dict(message_fields(value)) for number, value in message_fields(source_info) if number == 4]
    return {entry[1]: entry.get(2, 0) for entry in entries}


def message_fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each field of a serialized message."""
    return ((number, value) for number, _, value in wire.read_fields(message, "Expr"))


def decode_expression(encoded: bytes) -> Expression:
    """Return the syntax tree of a serialized Expr message."""
    message = dict(message_fields(encoded))
    expression_id = message.pop(2, 0)
    [(number, value)] = message.items()
    expression = _DECODERS[number](value)
    expression.id = expression_id
    return expression


def _decode_literal(encoded: bytes) -> Expression:
    number, value = next(message_fields(encoded), (1, 0))
    kind, convert = _LITERALS[number]
    return Literal(kind, convert(value))


def _decode_select(encoded: bytes) -> Expression:
    message = dict(message_fields(encoded))
    return Select(decode_expression(message[1]), message.get(2, b"").decode(), bool(message.get(3)))


def _decode_call(encoded: bytes) -> Expression:
    message = dict(message_fields(encoded))
    function = message[2].decode()
    target = decode_expression(message[1]) if 1 in message else None
    arguments = [decode_expression(value) for number, value in message_fields(encoded) if number == 3]
    if isinstance(target, Identifier) and f"{target.name}.{function}" in _DOTTED_NAMES:
        return Call(f"{target.name}.{function}", None, arguments)
    if function == "sortBy" and target is not None and len(arguments) == 2 and isinstance(arguments[0], Identifier):
        return _sort_by(target, arguments[0].name, arguments[1])
    return Call(function, target, arguments)


def _sort_by(target: Expression, variable: str, key: Expression) -> Expression:
    """Return the expansion of sortBy(): bind the list to a name, and sort it by the list of its keys."""
    result = "@result"
    append = Call("_+_", None, [Identifier(result), ListLiteral([key])])
    keys = Comprehension(
        variable, "", Identifier(_SORTED), result, ListLiteral([]), Literal("bool", True), append, Identifier(result)
    )  # fmt: skip
    by_keys = Call("@sortByAssociatedKeys", Identifier(_SORTED), [keys])
    never = Literal("bool", False)
    return Comprehension("#unused", "", ListLiteral([]), _SORTED, target, never, Identifier(_SORTED), by_keys)


def _decode_list_literal(encoded: bytes) -> Expression:
    packed = [value for number, value in message_fields(encoded) if number == 2]
    optional = frozenset(index for value in packed for index in wire.read_packed_varints(value))
    return ListLiteral([decode_expression(value) for number, value in message_fields(encoded) if number == 1], optional)


def _decode_map_literal(encoded: bytes) -> Expression:
    entries = [dict(message_fields(value)) for number, value in message_fields(encoded) if number == 2]
    optional = frozenset(n for n, entry in enumerate(entries) if entry.get(5))
    return MapLiteral([(_get_entry_key(entry), decode_expression(entry[4])) for entry in entries], optional)


def _get_entry_key(entry: dict[int, Any]) -> Expression:
    """Return the key of a map entry, or the field name of a message entry as a literal."""
    return decode_expression(entry[3]) if 3 in entry else Literal("string", entry[2].decode())


def _decode_comprehension(encoded: bytes) -> Expression:
    message = dict(message_fields(encoded))
    return Comprehension(
        message[1].decode(),
        message.get(8, b"").decode(),
        decode_expression(message[2]),
        message[3].decode(),
        *(decode_expression(message[n]) for n in (4, 5, 6, 7)),
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
_DECODERS: Final = {
    3: _decode_literal,
    4: lambda data: Identifier(dict(message_fields(data))[1].decode()),
    5: _decode_select,
    6: _decode_call,
    7: _decode_list_literal,
    8: _decode_map_literal,
    9: _decode_comprehension,
}
