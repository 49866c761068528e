"""Messages of the built-in kinds, read by the field numbers in `builtin.json` into the JSON that Go makes of them.

Go's own oddities are kept where they can be seen: a message given twice is merged, numbers are cut to their size,
numbers in a list may be packed or not, and the entries of a map are not held to their own length.
"""

import base64
import codecs
import math
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from fairlead.server.protobuf.leaves import FIELDS, LEAVES
from fairlead.server.protobuf.wire import CUT, FIXED64, SPAN, VARINT, ProtoError, signed, skip, span, tag, varint
from fairlead.server.schema import builtin
from fairlead.server.schema.nodes import Node

Object = dict[str, Any]
# Schemas in schemas are the only recursion; a definition that a client can use is far below.
MAX_DEPTH = 100


def decode(name: str, data: bytes) -> Object:
    """The message of a type as JSON values, before Go's own view of them (codec.py). Raises ProtoError."""
    made: Object = {}
    _message(name, data, made, 0)
    return made


class _Field:
    """One field of a message: where it goes, what it is, and how it is read."""

    __slots__ = ("key", "name", "node", "read")

    def __init__(self, key: str, name: str, node: Node) -> None:
        self.key = key  # empty for an embedded struct, whose fields are the holder's in JSON
        self.name = name  # Go's, for errors
        self.node = node
        self.read: _Read = _READERS.get(node.go.kind, _single)


_Read = Callable[[_Field, bytes, int, int, Object, int], int]


@cache
def _fields(name: str) -> dict[int, _Field]:
    found = {}
    for fact in FIELDS[name] if name in FIELDS else builtin.table()["types"][name]["f"]:
        if "p" in fact:
            key = fact.get("n", "")
            node = _node(fact["t"])
            go = fact.get("g") or key[:1].upper() + key[1:] or node.go.struct
            found[int(fact["p"].partition(",")[2])] = _Field(key, go, node)
    return found


def _node(name: str) -> Node:
    if name not in FIELDS:
        return builtin.schema_of_type(name)
    go = builtin.Go("struct", name)
    go.name = name
    return Node("object", go=go)


def _message(name: str, data: bytes, made: Object, depth: int) -> None:
    """Read a message into `made`, which may hold what an earlier part of it said."""
    if depth > MAX_DEPTH:
        raise ProtoError("exceeded max depth")
    fields = _fields(name)
    shown = name.rpartition(".")[2]
    at, end = 0, len(data)
    while at < end:
        start = at
        number, wire, at = tag(data, at, shown)
        field = fields.get(number)
        at = skip(data, start, end) if field is None else field.read(field, data, at, wire, made, depth)


def _expect(field: _Field, wire: int, wanted: int) -> None:
    if wire != wanted:
        raise ProtoError(f"proto: wrong wireType = {wire} for field {field.name}")


def _number(field: _Field, data: bytes, at: int, wire: int, made: Object, depth: int) -> int:
    _expect(field, wire, VARINT)
    value, at = varint(data, at)
    made[field.key] = _NUMBERS[field.node.go.kind](value)
    return at


def _double(field: _Field, data: bytes, at: int, wire: int, made: Object, depth: int) -> int:
    _expect(field, wire, FIXED64)
    if at + 8 > len(data):
        raise ProtoError(CUT)
    (value,) = struct.unpack_from("<d", data, at)
    if not math.isfinite(value):
        raise ProtoError(f"json: unsupported value: {value}")
    made[field.key] = value
    return at + 8


def _struct(field: _Field, data: bytes, at: int, wire: int, made: Object, depth: int) -> int:
    _expect(field, wire, SPAN)
    start, end = span(data, at)
    _message(field.node.go.name, data[start:end], made.setdefault(field.key, {}) if field.key else made, depth + 1)
    return end


def _single(field: _Field, data: bytes, at: int, wire: int, made: Object, depth: int) -> int:
    _expect(field, wire, SPAN)
    start, end = span(data, at)
    made[field.key] = _value(field.node, data[start:end], depth)
    return end


def _list(field: _Field, data: bytes, at: int, wire: int, made: Object, depth: int) -> int:
    items = field.node.items
    assert items is not None
    number = _NUMBERS.get(items.go.kind)
    if number is not None and wire == VARINT:
        value, at = varint(data, at)
        made.setdefault(field.key, []).append(number(value))
        return at
    _expect(field, wire, SPAN)
    at, end = span(data, at)
    if number is None:
        made.setdefault(field.key, []).append(_value(items, data[at:end], depth))
        return end
    while at < end:  # packed
        value, at = varint(data, at)
        made.setdefault(field.key, []).append(number(value))
    return at


def _map(field: _Field, data: bytes, at: int, wire: int, made: Object, depth: int) -> int:
    _expect(field, wire, SPAN)
    at, end = span(data, at)
    values = field.node.values
    assert values is not None
    key, value = "", _value(values, b"", depth)
    while at < end:
        start = at
        whole, at = varint(data, at)
        number = signed(whole >> 3, 32)
        if number == 1:
            begin, at = span(data, at)
            key = _text(data[begin:at])
        elif number == 2:
            begin, at = span(data, at)
            value = _value(values, data[begin:at], depth)
        else:
            at = skip(data, start, end)
    made.setdefault(field.key, {})[key] = value
    return end


def _value(node: Node, data: bytes, depth: int) -> Any:
    """What a span holds."""
    kind = node.go.kind
    if kind == "string":
        return _text(data)
    if kind == "bytes":
        return base64.b64encode(data).decode()
    made: Object = {}
    if kind == "struct":
        _message(node.go.name, data, made, depth + 1)
        return made
    name, shown = LEAVES[kind]
    _message(name, data, made, depth + 1)
    return None if not data and name == "meta.v1.Timestamp" else shown(made)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "go-replace")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Go replaces each byte that is not UTF-8 when it writes JSON; Python would replace several by one."""
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("go-replace", _replaced)
_NUMBERS: dict[str, Callable[[int], Any]] = {
    "bool": bool,
    "int32": lambda value: signed(value, 32),
    "int64": signed,
}
_READERS: dict[str, _Read] = {
    "bool": _number, "int32": _number, "int64": _number, "float64": _double,
    "struct": _struct, "list": _list, "map": _map,
}  # fmt: skip
