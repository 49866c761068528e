"""JSON out and JSON in, as Go's decoder reads it."""

import json
import math
import re
from decimal import Decimal
from typing import Any

import msgspec

from fairlead.api import gojson
from fairlead.server.golang import json_syntax

_encoder = msgspec.json.Encoder()
encode = _encoder.encode
_plain = msgspec.json.Decoder().decode

# Every body is looked at for numbers: with all digits alike, that takes no regular expression where there are none.
_ALIKE = bytes.maketrans(b"123456789eE", b"000000000..")
_LONG = b"0" * 19  # a number that may be too long for an integer
_EXPONENT = re.compile(rb"[\[:,]-?[0-9][0-9.]*e")
MAX_BODY = 3 * 1024 * 1024


class BadJSON(ValueError):
    """Not JSON. The message is worded as Go's decoder words it."""


class TooGreat(BadJSON):
    """JSON with a number that no float holds."""


def in_go_form(obj: Any, encoded: bytes) -> bytes:
    """An encoded object with its numbers as Go writes them: with an exponent below 1e-6 and from 1e21 on alone."""
    return encode(gojson.in_go_form(obj)) if has_fractions(encoded) and _EXPONENT.search(encoded) else encoded


def decode(body: bytes) -> tuple[Any, list[str]]:
    """A JSON text as plain values, and the paths of duplicate keys (of which the last one won).

    Numbers are as the API machinery keeps them until it encodes them (`settled`): an integer where one is spelled and
    fits in 64 bits, else a float. 1.0 is no integer to a rule or a typed field.
    """
    try:
        plain = _plain(body)
        # As most clients write it: then nothing was doubled, nor spelled in another way.
        if encode(plain) == body and _LONG not in body.translate(_ALIKE):
            return plain, []
    except (ValueError, RecursionError):
        pass  # what is wrong is told below
    text = whole(body)
    seen: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        if len(made) != len(items):
            seen.append("")
        return made

    try:
        value = json.loads(
            text, object_pairs_hook=pairs, parse_int=_integer, parse_float=_number, parse_constant=_constant
        )
    except RecursionError:
        raise BadJSON("exceeded max depth") from None
    except json.JSONDecodeError:
        raise BadJSON(json_syntax.complaint(body)) from None
    return value, _duplicates(text) if seen else []


_HALVES = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL)


def whole(body: bytes) -> str:
    """A JSON text with U+FFFD for what is no character: bytes that are not UTF-8, and halves of surrogate pairs."""
    text = body.decode("utf-8", "replace")
    if "\\ud" in text or "\\uD" in text:
        text = _HALVES.sub(lambda found: "\\ufffd" if found[1] else found[0], text)
    return text


def word(value: Any) -> str:
    """What Go calls a JSON value."""
    return {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(value), "number")


def _integer(digits: str) -> int | float:
    if len(digits) < 19:
        return int(digits)
    if len(digits) <= 20 and -(2**63) <= (value := int(digits)) < 2**64:
        return value  # from 2^63 on it is a float, which `settled` makes of it
    return _number(digits)


def _number(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise TooGreat(f"json: cannot unmarshal number {digits} into Go value of type float64")
    return value


def written(value: float) -> int | float:
    """A float as it is read after Go wrote it: 1.0 and 1e3 as the integers 1 and 1000."""
    return int(Decimal(repr(value))) if value.is_integer() and abs(value) < 2**64 else value


def settled(value: Any) -> Any:
    """`value` with each float as it is read after it was stored; the very value where nothing changes."""
    kind = type(value)
    if kind is float or (kind is int and not -(2**63) <= value < 2**63):
        return written(float(value))
    if kind is dict:
        changed = {
            key: new for key, below in value.items() if type(below) in _NUMERIC and (new := settled(below)) is not below
        }
        return {**value, **changed} if changed else value
    if kind is list:
        items = [settled(item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


_NUMERIC = frozenset({float, int, dict, list})
# What can stand before a number: a space, or a colon that ends a key (not nginx:1.25).
_BEFORE_NUMBERS = (b" ", b"\t", b"\n", b"\r", b",", b"[", b'":', b"':", b" :", b"\t:", b"\n:", b"\r:")


def has_fractions(body: bytes) -> bool:
    """Whether there may be a number with a fraction or an exponent, or too long for an integer, for `settled`."""
    alike = body.translate(_ALIKE)
    if b"0." not in alike:
        return _LONG in alike
    before = [text.rstrip(b"0").removesuffix(b"-") for text in alike.split(b"0.")[:-1]]
    return _LONG in alike or any(text.endswith(_BEFORE_NUMBERS) for text in before)


def _constant(name: str) -> Any:
    raise json.JSONDecodeError("constant", name, 0)


def _duplicates(text: str) -> list[str]:
    """The slow way, only where there is a duplicate: decode again, keeping pairs, and walk."""
    found: list[str] = []
    _walk(_pairs(text), "", found)
    return list(dict.fromkeys(found))


def places(body: bytes) -> dict[str, int]:
    """Where in a text a decoder meets each field that it may not know, and each that is there again."""
    found: dict[str, int] = {}

    def walk(value: Any, path: str) -> None:
        for index, item in enumerate(value) if isinstance(value, list) else ():
            walk(item, f"{path}[{index}]")
        seen: set[str] = set()
        for key, item in value.items if isinstance(value, _Pairs) else ():
            at = f"{path}.{key}" if path else key
            found.setdefault(f'duplicate field "{at}"' if key in seen else f'unknown field "{at}"', len(found))
            seen.add(key)
            walk(item, at)

    walk(_pairs(whole(body)), "")
    return found


def oddities(body: bytes, fields: frozenset[str]) -> list[str]:
    """Of a list of maps with these fields: which others there are and which are doubled, as they come."""
    found: list[str] = []
    for index, each in enumerate(_pairs(whole(body)) or ()):
        seen: set[str] = set()
        for key, item in each.items if each is not None else ():
            at = f"[{index}].{key}"
            if key not in fields:
                found.append(f'unknown field "{at}"')
                continue
            doubled = [at] if key in seen else []
            seen.add(key)
            _walk(item, at, doubled)
            found += [f'duplicate field "{path}"' for path in doubled]
    return list(dict.fromkeys(found))


def _walk(value: Any, path: str, doubled: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, item in value.items:
            at = f"{path}.{key}" if path else key
            if key in seen:
                doubled.append(at)
            seen.add(key)
            _walk(item, at, doubled)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _walk(item, f"{path}[{index}]", doubled)


def _pairs(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_Pairs, parse_int=str, parse_float=str)


class _Pairs:
    __slots__ = ("items",)

    def __init__(self, items: list[tuple[str, Any]]) -> None:
        self.items = items


_sorted = msgspec.json.Encoder(order="deterministic")


def exactly_equal(a: Any, b: Any) -> bool:
    """Whether two values are the same JSON. Python alone would take true for 1 and 1 for 1.0."""
    return a is b or bool(a == b and _sorted.encode(a) == _sorted.encode(b))
