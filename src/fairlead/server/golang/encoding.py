"""JSON encoding and decoding with the results of Go's encoding/json."""

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
_decode_fast = msgspec.json.Decoder().decode

# Every body is searched for unusual numbers. With all digits mapped to 0, a substring search is enough for that.
_DIGITS_TO_ZERO = bytes.maketrans(b"123456789eE", b"000000000..")
_LONG_NUMBER = b"0" * 19  # A number with this many digits may not fit an integer.
_EXPONENT = re.compile(rb"[\[:,]-?[0-9][0-9.]*e")
MAX_BODY = 3 * 1024 * 1024


class BadJSON(ValueError):
    """Raised for a body that is not JSON. The message is that of Go's decoder."""


class NumberTooLarge(BadJSON):
    """Raised for JSON with a number that is too large for a float."""


def write_go_numbers(obj: Any, encoded: bytes) -> bytes:
    """Return the JSON of `obj` with floats as Go writes them: exponents only below 1e-6 and from 1e21 on.

    `encoded` is the JSON that msgspec wrote for `obj`. It is returned unchanged if it has no such floats.
    """
    return encode(gojson.with_go_floats(obj)) if has_fractions(encoded) and _EXPONENT.search(encoded) else encoded


def decode(body: bytes) -> tuple[Any, list[str]]:
    """Return the value of a JSON text and the paths of its duplicate keys. The last value of a duplicate key wins.

    A number is an int if it is written as one and fits in 64 bits, else a float. So 1.0 stays a float, which CEL rules
    and typed fields distinguish from an integer. `normalize_numbers` converts such floats to integers before encoding.
    """
    try:
        value = _decode_fast(body)
        # Most clients write JSON as msgspec does. Then the body has neither duplicate keys nor unusual numbers.
        if encode(value) == body and _LONG_NUMBER not in body.translate(_DIGITS_TO_ZERO):
            return value, []
    except (ValueError, RecursionError):
        pass  # The slow decoder below reports the error.
    text = replace_invalid_characters(body)
    has_duplicates = False

    def collect_pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_duplicates
        result = dict(items)
        if len(result) != len(items):
            has_duplicates = True
        return result

    try:
        value = json.loads(
            text,
            object_pairs_hook=collect_pairs,
            parse_int=_parse_integer,
            parse_float=_parse_float,
            parse_constant=_reject_constant,
        )
    except RecursionError:
        raise BadJSON("exceeded max depth") from None
    except json.JSONDecodeError:
        raise BadJSON(json_syntax.syntax_error(body)) from None
    return value, _find_duplicates(text) if has_duplicates else []


_SURROGATES = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL)


def replace_invalid_characters(body: bytes) -> str:
    """Decode the bytes of a JSON text, with U+FFFD in place of invalid UTF-8 and of unpaired surrogates."""
    text = body.decode("utf-8", "replace")
    if "\\ud" in text or "\\uD" in text:
        text = _SURROGATES.sub(lambda match: "\\ufffd" if match[1] else match[0], text)
    return text


def json_type_name(value: Any) -> str:
    """Return the JSON type of a value as Go's error messages name it: object, array, string, bool or number."""
    return {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(value), "number")


def _parse_integer(digits: str) -> int | float:
    if len(digits) < 19:
        return int(digits)
    if len(digits) <= 20 and -(2**63) <= (value := int(digits)) < 2**64:
        return value  # From 2^63 on it is a float, which `normalize_numbers` makes of it.
    return _parse_float(digits)


def _parse_float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise NumberTooLarge(f"json: cannot unmarshal number {digits} into Go value of type float64")
    return value


def normalize_float(value: float) -> int | float:
    """Return a float as Go writes and reads it again: 1.0 and 1e3 become the integers 1 and 1000."""
    return int(Decimal(repr(value))) if value.is_integer() and abs(value) < 2**64 else value


def normalize_numbers(value: Any) -> Any:
    """Return `value` with every number as it is read from storage, or `value` itself if no number changes."""
    kind = type(value)
    if kind is float or (kind is int and not -(2**63) <= value < 2**63):
        return normalize_float(float(value))
    if kind is dict:
        changed_values = {
            key: new
            for key, inner in value.items()
            if type(inner) in _NUMERIC and (new := normalize_numbers(inner)) is not inner
        }
        return {**value, **changed_values} if changed_values else value
    if kind is list:
        items = [normalize_numbers(item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


_NUMERIC = frozenset({float, int, dict, list})
# What can precede a number: a space, or a colon after a key (not the colon of nginx:1.25).
_BEFORE_NUMBERS = (b" ", b"\t", b"\n", b"\r", b",", b"[", b'":', b"':", b" :", b"\t:", b"\n:", b"\r:")


def has_fractions(body: bytes) -> bool:
    """Return whether a JSON text may contain a number that `normalize_numbers` changes.

    Such a number has a fraction or an exponent, or may have too many digits for an integer.
    """
    zeros = body.translate(_DIGITS_TO_ZERO)
    if b"0." not in zeros:
        return _LONG_NUMBER in zeros
    before = [digits.rstrip(b"0").removesuffix(b"-") for digits in zeros.split(b"0.")[:-1]]
    return _LONG_NUMBER in zeros or any(digits.endswith(_BEFORE_NUMBERS) for digits in before)


def _reject_constant(name: str) -> Any:
    raise json.JSONDecodeError("constant", name, 0)


def _find_duplicates(text: str) -> list[str]:
    """Return the paths of the duplicate keys of a JSON text.

    Slow, because the text is decoded again: call this function only if there are duplicates.
    """
    paths: list[str] = []
    _collect_duplicates(_decode_pairs(text), "", paths)
    return list(dict.fromkeys(paths))


def field_positions(body: bytes) -> dict[str, int]:
    """Return the position of each field in a JSON text, keyed by the message that reports the field.

    Callers sort the messages about unknown and duplicate fields by position.
    """
    positions: dict[str, int] = {}

    def walk(value: Any, path: str) -> None:
        for index, item in enumerate(value) if isinstance(value, list) else ():
            walk(item, f"{path}[{index}]")
        seen_keys: set[str] = set()
        for key, item in value.items if isinstance(value, _Pairs) else ():
            at = f"{path}.{key}" if path else key
            message = f'duplicate field "{at}"' if key in seen_keys else f'unknown field "{at}"'
            positions.setdefault(message, len(positions))
            seen_keys.add(key)
            walk(item, at)

    walk(_decode_pairs(replace_invalid_characters(body)), "")
    return positions


def find_unexpected_fields(body: bytes, fields: frozenset[str]) -> list[str]:
    """Return a message for each unknown and each duplicate field in a JSON list of maps, in document order."""
    messages: list[str] = []
    for index, entry in enumerate(_decode_pairs(replace_invalid_characters(body)) or ()):
        seen_keys: set[str] = set()
        for key, item in entry.items if entry is not None else ():
            at = f"[{index}].{key}"
            if key not in fields:
                messages.append(f'unknown field "{at}"')
                continue
            duplicates = [at] if key in seen_keys else []
            seen_keys.add(key)
            _collect_duplicates(item, at, duplicates)
            messages += [f'duplicate field "{path}"' for path in duplicates]
    return list(dict.fromkeys(messages))


def _collect_duplicates(value: Any, path: str, paths: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen_keys: set[str] = set()
        for key, item in value.items:
            at = f"{path}.{key}" if path else key
            if key in seen_keys:
                paths.append(at)
            seen_keys.add(key)
            _collect_duplicates(item, at, paths)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _collect_duplicates(item, f"{path}[{index}]", paths)


def _decode_pairs(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_Pairs, parse_int=str, parse_float=str)


class _Pairs:
    """A JSON object as a list of (key, value) pairs, with duplicate keys."""

    __slots__ = ("items",)

    def __init__(self, items: list[tuple[str, Any]]) -> None:
        self.items = items


_sorted_encoder = msgspec.json.Encoder(order="deterministic")


def exactly_equal(a: Any, b: Any) -> bool:
    """Return whether two values have the same JSON. Unlike ==, True differs from 1, and 1 from 1.0."""
    return a is b or bool(a == b and _sorted_encoder.encode(a) == _sorted_encoder.encode(b))
