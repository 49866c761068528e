"""Decode the protobuf messages of built-in kinds into JSON values, by the field numbers in `builtin.json`.

The decoder imitates Go's visible behaviour: a message that occurs twice is merged, numbers are truncated to their size,
numbers in a list may be packed or not, and the entries of a map may be longer than their own length says.
"""

import base64
import codecs
import math
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from fairlead.server.protobuf.special_messages import FIELDS, SPECIAL_MESSAGES
from fairlead.server.protobuf.wire import (
    FIXED64,
    LENGTH_DELIMITED,
    UNEXPECTED_EOF,
    VARINT,
    ProtoError,
    read_length,
    read_tag,
    read_varint,
    skip_field,
    to_signed,
)
from fairlead.server.schema import builtin
from fairlead.server.schema.nodes import Node

Object = dict[str, Any]
# Only schemas nest in themselves. A usable CustomResourceDefinition is far below this depth.
MAX_DEPTH = 100


def decode(name: str, data: bytes) -> Object:
    """Decode a message of the type `name` into JSON values, which codec.py then converts to Go's types.

    Raises ProtoError.
    """
    message: Object = {}
    _read_message(name, data, message, 0)
    return message


class _Field:
    """One field of a message type: its JSON name, its Go name, its schema, and the function that reads it."""

    __slots__ = ("key", "name", "node", "read")

    def __init__(self, key: str, name: str, node: Node) -> None:
        self.key = key  # Empty for an embedded struct: JSON inlines its fields.
        self.name = name  # The Go name, for error messages.
        self.node = node
        self.read: _Read = _READERS.get(node.go.kind, _read_value)


_Read = Callable[[_Field, bytes, int, int, Object, int], int]


@cache
def _get_fields(name: str) -> dict[int, _Field]:
    fields = {}
    for fact in FIELDS[name] if name in FIELDS else builtin.table()["types"][name]["f"]:
        if "p" in fact:
            key = fact.get("n", "")
            node = _get_node_of_type(fact["t"])
            go_name = fact.get("g") or key[:1].upper() + key[1:] or node.go.struct
            fields[int(fact["p"].partition(",")[2])] = _Field(key, go_name, node)
    return fields


def _get_node_of_type(name: str) -> Node:
    if name not in FIELDS:
        return builtin.schema_of_type(name)
    go_type = builtin.Go("struct", name)
    go_type.name = name
    return Node("object", go=go_type)


def _read_message(name: str, data: bytes, message: Object, depth: int) -> None:
    """Add the fields of an encoded message to `message`, which may have the fields of an earlier occurrence."""
    if depth > MAX_DEPTH:
        raise ProtoError("exceeded max depth")
    fields = _get_fields(name)
    short_name = name.rpartition(".")[2]
    at, end = 0, len(data)
    while at < end:
        start = at
        number, wire_type, at = read_tag(data, at, short_name)
        field = fields.get(number)
        at = skip_field(data, start, end) if field is None else field.read(field, data, at, wire_type, message, depth)


def _expect_wire_type(field: _Field, wire_type: int, expected: int) -> None:
    if wire_type != expected:
        raise ProtoError(f"proto: wrong wireType = {wire_type} for field {field.name}")


def _read_number(field: _Field, data: bytes, at: int, wire_type: int, message: Object, depth: int) -> int:
    _expect_wire_type(field, wire_type, VARINT)
    value, at = read_varint(data, at)
    message[field.key] = _NUMBERS[field.node.go.kind](value)
    return at


def _read_double(field: _Field, data: bytes, at: int, wire_type: int, message: Object, depth: int) -> int:
    _expect_wire_type(field, wire_type, FIXED64)
    if at + 8 > len(data):
        raise ProtoError(UNEXPECTED_EOF)
    (value,) = struct.unpack_from("<d", data, at)
    if not math.isfinite(value):
        raise ProtoError(f"json: unsupported value: {value}")
    message[field.key] = value
    return at + 8


def _read_struct(field: _Field, data: bytes, at: int, wire_type: int, message: Object, depth: int) -> int:
    _expect_wire_type(field, wire_type, LENGTH_DELIMITED)
    start, end = read_length(data, at)
    _read_message(
        field.node.go.name, data[start:end], message.setdefault(field.key, {}) if field.key else message, depth + 1
    )
    return end


def _read_value(field: _Field, data: bytes, at: int, wire_type: int, message: Object, depth: int) -> int:
    _expect_wire_type(field, wire_type, LENGTH_DELIMITED)
    start, end = read_length(data, at)
    message[field.key] = _decode_value(field.node, data[start:end], depth)
    return end


def _read_list(field: _Field, data: bytes, at: int, wire_type: int, message: Object, depth: int) -> int:
    items = field.node.items
    assert items is not None
    number = _NUMBERS.get(items.go.kind)
    if number is not None and wire_type == VARINT:
        value, at = read_varint(data, at)
        message.setdefault(field.key, []).append(number(value))
        return at
    _expect_wire_type(field, wire_type, LENGTH_DELIMITED)
    at, end = read_length(data, at)
    if number is None:
        message.setdefault(field.key, []).append(_decode_value(items, data[at:end], depth))
        return end
    while at < end:  # packed
        value, at = read_varint(data, at)
        message.setdefault(field.key, []).append(number(value))
    return at


def _read_map(field: _Field, data: bytes, at: int, wire_type: int, message: Object, depth: int) -> int:
    _expect_wire_type(field, wire_type, LENGTH_DELIMITED)
    at, end = read_length(data, at)
    values = field.node.values
    assert values is not None
    key, value = "", _decode_value(values, b"", depth)
    while at < end:
        start = at
        tag, at = read_varint(data, at)
        number = to_signed(tag >> 3, 32)
        if number == 1:
            begin, at = read_length(data, at)
            key = _decode_text(data[begin:at])
        elif number == 2:
            begin, at = read_length(data, at)
            value = _decode_value(values, data[begin:at], depth)
        else:
            at = skip_field(data, start, end)
    message.setdefault(field.key, {})[key] = value
    return end


def _decode_value(node: Node, data: bytes, depth: int) -> Any:
    """Decode a length-delimited value (a string, bytes or message) by its schema node."""
    kind = node.go.kind
    if kind == "string":
        return _decode_text(data)
    if kind == "bytes":
        return base64.b64encode(data).decode()
    message: Object = {}
    if kind == "struct":
        _read_message(node.go.name, data, message, depth + 1)
        return message
    name, to_json = SPECIAL_MESSAGES[kind]
    _read_message(name, data, message, depth + 1)
    return None if not data and name == "meta.v1.Timestamp" else to_json(message)


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "go-replace")


def _replace_like_go(error: UnicodeError) -> tuple[str, int]:
    """Replace each invalid byte by U+FFFD, as Go does. Python would replace several bytes by one character."""
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("go-replace", _replace_like_go)
_NUMBERS: dict[str, Callable[[int], Any]] = {
    "bool": bool,
    "int32": lambda value: to_signed(value, 32),
    "int64": to_signed,
}
_READERS: dict[str, _Read] = {
    "bool": _read_number, "int32": _read_number, "int64": _read_number, "float64": _read_double,
    "struct": _read_struct, "list": _read_list, "map": _read_map,
}  # fmt: skip
