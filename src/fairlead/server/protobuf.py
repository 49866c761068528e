"""Kubernetes' protobuf, read only: typed Go clients (`kubectl create` among them) send built-in objects that way.

A body is four magic bytes and a runtime.Unknown, whose raw part is the object's own message. Answers stay JSON, which
those clients accept too.
"""

import base64
import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from fairlead.api.times import rfc3339, rfc3339_micro
from fairlead.server import encoding
from fairlead.server.encoding import BadJSON
from fairlead.server.schema import builtin

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
MAX_DEPTH = 100  # of messages in messages; no built-in type comes near
Field = tuple[int, int, Any]  # number, wire type, value


def decode(body: bytes) -> Any:
    """A body as the JSON value that it stands for. Raises BadJSON for what is not one."""
    if not body.startswith(MAGIC):
        raise BadJSON("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    api_version = kind = ""
    raw = b""
    for number, _, value in _fields(body[len(MAGIC) :]):
        if number == 1:
            names = {n: v.decode("utf-8", "replace") for n, _, v in _fields(_bytes(value))}
            api_version, kind = names.get(1, ""), names.get(2, "")
        elif number == 2:
            raw = _bytes(value)
    named = builtin.table()["roots"].get(f"{api_version}/{kind}")
    if named is None:
        named = _META.get(kind)
    if named is None:
        raise BadJSON(f'no kind "{kind}" is registered for version "{api_version}"')
    return {"apiVersion": api_version, "kind": kind, **_message(named, raw, 0)}


_META = {"DeleteOptions": "meta.v1.DeleteOptions"}


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise BadJSON("proto: wrong wireType")
    return value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise BadJSON("unexpected EOF")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return result, at
        shift += 7


def _fields(data: bytes) -> Iterator[Field]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        value: Any
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
            if at > len(data):
                raise BadJSON("unexpected EOF")
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at : at + size], at + size
            if len(value) != size:
                raise BadJSON("unexpected EOF")
        else:
            raise BadJSON(f"proto: illegal wireType {wire}")
        yield number, wire, value


@cache
def _numbers(name: str) -> dict[int, tuple[str, str]]:
    """Field number -> (JSON name, type) of a message; an embedded message has no name of its own in JSON."""
    facts = builtin.table()["types"][name]["f"]
    return {int(f["p"].partition(",")[2]): (f.get("n", ""), f["t"]) for f in facts if "p" in f}


def _plain(kind: str) -> str:
    """A type of the table without its marks: pointer, default and name."""
    return kind.lstrip("*").partition("=")[0].partition(":")[0]


def _message(name: str, data: bytes, depth: int) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise BadJSON("exceeded max depth")
    numbers = _numbers(name)
    made: dict[str, Any] = {}
    for number, _, raw in _fields(data):
        known = numbers.get(number)
        if known is None:
            continue
        key, kind = known[0], known[1].lstrip("*")
        if not key:
            made.update(_message(_plain(kind), _bytes(raw), depth + 1))
        elif kind.startswith("[]"):
            made.setdefault(key, []).append(_value(kind[2:], raw, depth))
        elif kind.startswith("{}"):
            entry = _parts(raw)
            shown = _value(kind[2:], entry.get(2, b""), depth)
            made.setdefault(key, {})[_bytes(entry.get(1, b"")).decode("utf-8", "replace")] = shown
        else:
            made[key] = _value(kind, raw, depth)
    return made


def _value(kind: str, raw: Any, depth: int) -> Any:
    kind = _plain(kind)
    if kind in builtin.table()["types"]:
        return _message(kind, _bytes(raw), depth + 1)
    simple = _SIMPLE.get(kind)
    if simple is not None:
        return simple(raw)
    raise BadJSON(f"{kind} is not read from protobuf here: send JSON")


def _signed(raw: Any) -> int:
    if not isinstance(raw, int):
        return 0
    return raw - 2**64 if raw >= 2**63 else raw


def _parts(raw: Any) -> dict[int, Any]:
    return {number: value for number, _, value in _fields(_bytes(raw))}


def _time(raw: Any) -> str | None:
    return rfc3339(_signed(parts.get(1, 0))) if (parts := _parts(raw)) else None


def _micro_time(raw: Any) -> str | None:
    parts = _parts(raw)
    return rfc3339_micro(_signed(parts.get(1, 0)) + parts.get(2, 0) / 1e9) if parts else None


def _int_or_string(raw: Any) -> Any:
    parts = _parts(raw)
    return _bytes(parts.get(3, b"")).decode() if parts.get(1) else _signed(parts.get(2, 0))


def _embedded(raw: Any) -> Any:
    text = _parts(raw).get(1, b"")
    return encoding.decode(text)[0] if text else None


_SIMPLE: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "string": lambda raw: _bytes(raw).decode("utf-8", "replace"),
    "int32": _signed,
    "int64": _signed,
    "bytes": lambda raw: base64.b64encode(_bytes(raw)).decode(),
    "float64": lambda raw: struct.unpack("<d", raw)[0],
    "Time": _time,
    "MicroTime": _micro_time,
    "Quantity": lambda raw: _bytes(_parts(raw).get(1, b"0")).decode(),
    "Duration": lambda raw: f"{_signed(_parts(raw).get(1, 0)) / 1e9:g}s",
    "IntOrString": _int_or_string,
    "Raw": _embedded,
    "FieldsV1": _embedded,
    "JSON": _embedded,
}
