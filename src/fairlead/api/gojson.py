"""JSON, numbers and quoted strings as Go writes them, byte for byte.

An API server compares the value of a JSON patch's `test` with its own encoding of the stored value, as bytes. Without
Go's encoding the test would fail for values that Python writes differently, such as `&` in a URL, 1.0 or 1e-07.
"""

import math
import re
from typing import Any

import msgspec

# In JSON these characters occur only in strings, so they can be replaced in the encoded document.
ESCAPED = (
    (b"&", rb"\u0026"),
    (b"<", rb"\u003c"),
    (b">", rb"\u003e"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)
# Characters that a YAML parser rejects or changes: the UTF-8 of U+007F to U+009F, U+FEFF, U+FFFE, U+FFFF.
INVALID_IN_YAML = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xef\xbb\xbf|\xef\xbf[\xbe\xbf]")
_PLAIN = frozenset({str, int, bool, type(None), msgspec.Raw})


def dumps(value: Any) -> bytes:
    """Return the JSON of `value` as Go encodes it: keys sorted, `&<>`, U+2028 and U+2029 escaped, floats in Go's form.

    Accepts JSON values, dataclasses, msgspec structs and dates. Raises ValueError for values that JSON cannot express:
    NaN, infinities, lone surrogates, keys that are not strings.
    """
    try:
        encoded = msgspec.json.encode(value if _is_plain(value) else with_go_floats(value), order="deterministic")
    except (TypeError, UnicodeEncodeError) as error:
        raise ValueError(f"not JSON: {error}") from error
    return escape(encoded)


def escape(encoded: bytes) -> bytes:
    """Escape the characters that Go escapes in JSON."""
    for character, escaped in ESCAPED:
        encoded = encoded.replace(character, escaped)
    return encoded


def yaml_dumps(value: Any) -> bytes:
    """Return `dumps(value)` with escapes for the characters that YAML 1.1 does not allow. An apply is parsed as YAML.

    Without the escapes, U+0085 would become a space, and DEL, the other C1 controls and U+FFFE would be rejected.
    """
    return INVALID_IN_YAML.sub(lambda match: rf"\u{ord(match[0].decode()):04x}".encode(), dumps(value))


def format_number(value: float, *, is_padded: bool = False) -> str:
    """Format a float as Go's JSON encoder does: with an exponent if it is below 1e-6 or at least 1e21.

    `is_padded` writes exponents with two digits: 1e-07 instead of 1e-7.
    """
    if not math.isfinite(value):
        raise ValueError(f"not JSON: {value!r} is not a number that JSON can hold")
    return _format(value, -6, 21, "+03d" if is_padded else "+d")


def format_percent_v(value: float) -> str:
    """Format a float as Go's %v does: with an exponent of two or more digits if it is below 1e-4 or at least 1e6."""
    return _format(value, -4, 6, "+03d")


def quote_go(text: str) -> str:
    """Quote a string as Go's %q does: control characters become escapes such as `\\n`, `\\x00` or `\\u200b`."""
    return '"' + "".join([_GO_ESCAPES.get(c) or (c if c.isprintable() else _escape_character(c)) for c in text]) + '"'


_ESCAPE_LETTERS = dict(zip("\a\b\f\n\r\t\v", "abfnrtv", strict=True))
_GO_ESCAPES = {'"': '\\"', "\\": "\\\\", **{char: f"\\{letter}" for char, letter in _ESCAPE_LETTERS.items()}}


def _escape_character(char: str) -> str:
    point = ord(char)
    return f"\\x{point:02x}" if point < 0x80 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def _format(value: float, lowest_point: int, highest_point: int, exponent_format: str) -> str:
    """Format a float, with an exponent if its decimal point is not at a position in (`lowest_point`, `highest_point`].

    `exponent_format` is the Python format of the exponent, such as "+03d".
    """
    sign, digits, point = _find_shortest_digits(value)
    if not digits:
        return f"{sign}0"
    if lowest_point < point <= highest_point:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        if point >= len(digits):
            return sign + digits + "0" * (point - len(digits))
        return f"{sign}{digits[:point]}.{digits[point:]}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{point - 1:{exponent_format}}"


def _find_shortest_digits(value: float) -> tuple[str, str, int]:
    """Return (sign, digits, point) of the shortest text for `value`: ("-", "125", 1) means -0.125 × 10^1, so -1.25."""
    text = repr(value)
    sign = "-" if text[0] == "-" else ""
    mantissa, _, exponent = text.removeprefix("-").partition("e")
    integer_digits, _, fraction = mantissa.partition(".")
    digits = (integer_digits + fraction).lstrip("0")
    point = len(digits) - len(fraction) + int(exponent or 0)
    return sign, digits.rstrip("0"), point


def _is_plain(value: Any) -> bool:
    """Return whether `value` has only JSON types and no floats, so that msgspec and Go encode it equally.

    The escapes, which differ, are added later. Nearly every value is plain, and this check is several times faster than
    a conversion of each leaf.
    """
    if not isinstance(value, dict | list):
        return False
    containers: list[Any] = [value]
    for container in containers:
        for item in container.values() if isinstance(container, dict) else container:
            cls = type(item)
            if cls is str:
                continue
            if cls is dict or cls is list:
                containers.append(item)
            elif cls not in _PLAIN:
                return False
    return True


def with_go_floats(value: Any) -> Any:
    """Return a copy of `value` with each float in Go's encoding, or `value` itself if it contains no float."""
    cls = type(value)
    if cls in _PLAIN:
        return value
    if isinstance(value, float):
        return msgspec.Raw(format_number(value).encode())
    if isinstance(value, dict):
        changed_values = {k: new for k, old in value.items() if (new := with_go_floats(old)) is not old}
        return {**value, **changed_values} if changed_values else value
    if isinstance(value, list | tuple):
        items = [with_go_floats(old) for old in value]
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    if isinstance(value, str | int):
        return value
    return with_go_floats(msgspec.to_builtins(value, str_keys=True))
