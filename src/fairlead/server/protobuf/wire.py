"""The wire format: varints, spans, and how an unknown field is stepped over."""

from collections.abc import Iterator
from typing import Any, Final

OVERFLOW: Final = "proto: integer overflow"
NEGATIVE: Final = "proto: negative length found during unmarshaling"
CUT: Final = "unexpected EOF"
END_OF_GROUP: Final = "proto: unexpected end of group"

VARINT, FIXED64, SPAN, START_GROUP, END_GROUP, FIXED32 = range(6)
_MASK = 2**64 - 1


class ProtoError(ValueError):
    """Not the message it should be. The message is worded as Go's decoders word it."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The unsigned 64-bit number at a place, and the place after it."""
    value = shift = 0
    end = len(data)
    while True:
        if shift >= 64:
            raise ProtoError(OVERFLOW)
        if at >= end:
            raise ProtoError(CUT)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, at
        shift += 7


def varints(data: bytes) -> Iterator[int]:
    """The numbers of a packed field."""
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value


def signed(value: int, bits: int = 64) -> int:
    """A number as Go keeps it in so many bits: cut off, with a sign."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def span(data: bytes, at: int) -> tuple[int, int]:
    """Where the bytes that follow their own length begin and end."""
    size, at = varint(data, at)
    if size >= 2**63 or at + size >= 2**63:
        raise ProtoError(NEGATIVE)
    if at + size > len(data):
        raise ProtoError(CUT)
    return at, at + size


def tag(data: bytes, at: int, message: str) -> tuple[int, int, int]:
    """The next field's number and wire type, and the place after them."""
    whole, at = varint(data, at)
    number, wire = signed(whole >> 3, 32), whole & 7
    if wire == END_GROUP:
        raise ProtoError(f"proto: {message}: wiretype end group for non-group")
    if number <= 0:
        raise ProtoError(f"proto: {message}: illegal tag {number} (wire type {whole})")
    return number, wire, at


def skip(data: bytes, at: int, end: int) -> int:
    """The place after the field at `at`, groups and all."""
    depth = 0
    size = len(data)
    while at < size:
        whole, at = varint(data, at)
        wire = whole & 7
        if wire == VARINT:
            _, at = varint(data, at)
        elif wire == FIXED64:
            at += 8
        elif wire == SPAN:
            length, at = varint(data, at)
            if length >= 2**63 or at + length >= 2**63:
                raise ProtoError(NEGATIVE)
            at += length
        elif wire == START_GROUP:
            depth += 1
        elif wire == END_GROUP:
            if not depth:
                raise ProtoError(END_OF_GROUP)
            depth -= 1
        elif wire == FIXED32:
            at += 4
        else:
            raise ProtoError(f"proto: illegal wireType {wire}")
        if not depth:
            if at > end:
                raise ProtoError(CUT)
            return at
    raise ProtoError(CUT)


def fields(data: bytes, message: str) -> Iterator[tuple[int, int, Any]]:
    """Each field's number, wire type and value, a number or bytes; of messages without groups and 32-bit numbers."""
    at = 0
    while at < len(data):
        number, kind, at = tag(data, at, message)
        if kind == VARINT:
            value, at = varint(data, at)
            yield number, kind, value
        else:
            start, at = span(data, at) if kind == SPAN else (at, at + 8)
            yield number, kind, data[start:at]
