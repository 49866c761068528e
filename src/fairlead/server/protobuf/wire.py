"""The protobuf wire format: varints, length-delimited values, tags and unknown fields."""

from collections.abc import Iterator
from typing import Any, Final

INTEGER_OVERFLOW: Final = "proto: integer overflow"
NEGATIVE_LENGTH: Final = "proto: negative length found during unmarshaling"
UNEXPECTED_EOF: Final = "unexpected EOF"
UNEXPECTED_END_OF_GROUP: Final = "proto: unexpected end of group"

VARINT, FIXED64, LENGTH_DELIMITED, START_GROUP, END_GROUP, FIXED32 = range(6)
_MASK = 2**64 - 1


class ProtoError(ValueError):
    """Raised for bytes that are not the expected message. The error text is that of Go's decoders."""


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the unsigned 64-bit number at an offset, and the offset after it."""
    value = shift = 0
    end = len(data)
    while True:
        if shift >= 64:
            raise ProtoError(INTEGER_OVERFLOW)
        if at >= end:
            raise ProtoError(UNEXPECTED_EOF)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, at
        shift += 7


def read_packed_varints(data: bytes) -> Iterator[int]:
    """Yield the numbers of a packed repeated field."""
    at = 0
    while at < len(data):
        value, at = read_varint(data, at)
        yield value


def to_signed(value: int, bits: int = 64) -> int:
    """Return a number as Go stores it in a signed integer of `bits` bits: truncated."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def read_length(data: bytes, at: int) -> tuple[int, int]:
    """Return the start and end offsets of the length-delimited value at `at`."""
    size, at = read_varint(data, at)
    if size >= 2**63 or at + size >= 2**63:
        raise ProtoError(NEGATIVE_LENGTH)
    if at + size > len(data):
        raise ProtoError(UNEXPECTED_EOF)
    return at, at + size


def read_tag(data: bytes, at: int, message: str) -> tuple[int, int, int]:
    """Return the number and wire type of the field at `at`, and the offset after the tag."""
    tag, at = read_varint(data, at)
    number, wire_type = to_signed(tag >> 3, 32), tag & 7
    if wire_type == END_GROUP:
        raise ProtoError(f"proto: {message}: wiretype end group for non-group")
    if number <= 0:
        raise ProtoError(f"proto: {message}: illegal tag {number} (wire type {tag})")
    return number, wire_type, at


def skip_field(data: bytes, at: int, end: int) -> int:
    """Return the offset after the unknown field at `at`, which may be a group."""
    depth = 0
    size = len(data)
    while at < size:
        tag, at = read_varint(data, at)
        wire_type = tag & 7
        if wire_type == VARINT:
            _, at = read_varint(data, at)
        elif wire_type == FIXED64:
            at += 8
        elif wire_type == LENGTH_DELIMITED:
            length, at = read_varint(data, at)
            if length >= 2**63 or at + length >= 2**63:
                raise ProtoError(NEGATIVE_LENGTH)
            at += length
        elif wire_type == START_GROUP:
            depth += 1
        elif wire_type == END_GROUP:
            if not depth:
                raise ProtoError(UNEXPECTED_END_OF_GROUP)
            depth -= 1
        elif wire_type == FIXED32:
            at += 4
        else:
            raise ProtoError(f"proto: illegal wireType {wire_type}")
        if not depth:
            if at > end:
                raise ProtoError(UNEXPECTED_EOF)
            return at
    raise ProtoError(UNEXPECTED_EOF)


def read_fields(data: bytes, message: str) -> Iterator[tuple[int, int, Any]]:
    """Yield the number, wire type and value (a number or bytes) of each field of an encoded message.

    Groups and 32-bit numbers are not supported.
    """
    at = 0
    while at < len(data):
        number, kind, at = read_tag(data, at, message)
        if kind == VARINT:
            value, at = read_varint(data, at)
            yield number, kind, value
        else:
            start, at = read_length(data, at) if kind == LENGTH_DELIMITED else (at, at + 8)
            yield number, kind, data[start:at]
