"""CEL's string functions, with cel-go's results and error messages. Functions with long results count their work."""

import datetime
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from fairlead.api.gojson import quote_go
from fairlead.server.schema.cel.costs.runtime import METER

_CLAUSE: Final = re.compile(r"%(%|(?:\.(\d+))?([a-zA-Z]))?")
_BYTES: Final = (bytes, bytearray)  # The engine passes bytearrays.
_PRINTABLE: Final = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"


def _expect_index(text: str, index: int) -> int:
    if not 0 <= index <= len(text):
        raise ValueError(f"index out of range: {index}")
    return index


def char_at(text: str, index: int) -> str:
    return text[_expect_index(text, index) : index + 1]


def index_of(text: str, substring: str, start: int = 0) -> int:
    if not substring:
        return start
    if start < 0:
        raise ValueError(f"index out of range: {start}")
    return text.find(substring, start)


def last_index_of(text: str, substring: str, start: int | None = None) -> int:
    if not substring:
        return len(text) if start is None else start
    if start is None:
        return text.rfind(substring)
    if start < 0:
        raise ValueError(f"index out of range: {start}")
    return -1 if start >= len(text) else text.rfind(substring, 0, start + len(substring))


def join(items: list[Any], separator: str = "") -> str:
    invalid = next((item for item in items if not isinstance(item, str)), None)
    if invalid is not None:
        raise ValueError(f"join: invalid input: {to_text(invalid)}")
    METER.spend(sum(map(len, items)) + len(separator) * len(items))
    return separator.join(items)


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    occurrences = text.count(old) if count < 0 else min(count, text.count(old))
    METER.spend(len(text) + occurrences * max(0, len(new) - len(old)))
    return text.replace(old, new, count)


def split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if not separator:
        return list(text) if count < 0 else [*text[: count - 1], *([text[count - 1 :]] if text[count - 1 :] else [])]
    return text.split(separator, count - 1 if count > 0 else -1)


def substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        return text[_expect_index(text, start) :]
    if start > end:
        raise ValueError(f"invalid substring range. start: {start}, end: {end}")
    return text[_expect_index(text, start) : _expect_index(text, end)]


def ascii_only(change: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function that applies `change`, such as str.upper, to ASCII letters only."""
    return lambda text: re.sub(r"[A-Za-z]+", lambda match: change(match[0]), text)


def quote(text: str) -> str:
    escapes = {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v", "\\": "\\", '"': '"'}
    return '"' + "".join(f"\\{escapes[ch]}" if ch in escapes else ch for ch in text) + '"'


def format_text(format_string: str, values: list[Any]) -> str:
    """Return the result of CEL's `format` function, which resembles Go's fmt."""
    parts, used, copied_end = [], 0, 0
    for clause in _CLAUSE.finditer(format_string):
        parts.append(format_string[copied_end : clause.start()])
        copied_end = clause.end()
        if clause[1] == "%":
            parts.append("%")
            continue
        if not clause[3]:
            raise ValueError("unexpected end of string")
        if used == len(values):
            raise ValueError(f"index {used} out of range")
        parts.append(_format_clause(clause[3], None if clause[2] is None else int(clause[2]), values[used]))
        used += 1
    return "".join([*parts, format_string[copied_end:]])


def _format_clause(verb: str, precision: int | None, value: Any) -> str:
    kind = type(value)
    if verb == "s":
        return to_text(value)
    if verb == "d" and kind is int:
        return str(value)
    if verb in "fe" and kind in (float, int):
        if not math.isfinite(value):
            return _format_double(value)
        digits = 6 if precision is None else min(precision, 1000)
        return f"{value:,.{digits}f}" if verb == "f" else _format_exponent(value, digits)
    if verb == "b" and kind in (int, bool):
        return f"{int(value):b}"
    if verb in "xX" and kind in (int, str, *_BYTES):
        hexadecimal = f"{value:x}" if kind is int else (value.encode() if kind is str else value).hex()
        return hexadecimal.upper() if verb == "X" else hexadecimal
    if verb == "o" and kind is int:
        return f"{value:o}"
    if verb not in "dfebxXo":
        raise ValueError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
    raise ValueError(f"error during formatting: {_CLAUSE_ERRORS[verb]}, was given {type_name(value)}")


_CLAUSE_ERRORS: Final = {
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}
_TYPE_NAMES: Final = {
    bool: "bool",
    int: "int",
    float: "double",
    str: "string",
    bytes: "bytes",
    bytearray: "bytes",
    list: "list",
    type(None): "null_type",
    datetime.datetime: "google.protobuf.Timestamp",
    datetime.timedelta: "google.protobuf.Duration",
}
_KUBERNETES_TYPES: Final = {
    "quantity": "kubernetes.Quantity",
    "url": "kubernetes.URL",
    "ip": "net.IP",
    "cidr": "net.CIDR",
    "semver": "kubernetes.Semver",
    "format": "kubernetes.NamedFormat",
}


def type_name(value: Any) -> str:
    if type(value) is dict:
        return next((name for key, name in _KUBERNETES_TYPES.items() if key in value), "map")
    return _TYPE_NAMES.get(type(value), "type")


def to_text(value: Any) -> str:
    """Return a value as the clause %s of `format` prints it."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return _format_double(value)
    if kind in _BYTES:
        return bytes(value).decode("utf-8", "replace")
    if value is None:
        return "null"
    if kind is datetime.timedelta:
        return f"{_format_seconds(value)}s"
    if kind is datetime.datetime:
        return _format_time(value)
    if kind is list:
        return "[" + ", ".join(map(_to_quoted_text, value)) + "]"
    if kind is dict:
        if (name := type_name(value)) != "map":
            raise ValueError(
                f"error during formatting: string clause can only be used on {_PRINTABLE}, was given {name}"
            )
        pairs = sorted((_to_quoted_text(key), _to_quoted_text(inner)) for key, inner in value.items())
        return "{" + ", ".join(f"{key}:{inner}" for key, inner in pairs) + "}"
    return str(value.name()).partition("<")[0].lower() if hasattr(value, "name") else str(value)


def _to_quoted_text(value: Any) -> str:
    """Return a value as `format` prints it inside a list or a map."""
    kind = type(value)
    if kind is str:
        return quote_go(value)
    if kind in _BYTES:
        return "b" + quote_go(to_text(value))
    if kind is datetime.timedelta:
        return f"duration({quote_go(to_text(value))})"
    if kind is datetime.datetime:
        return f"timestamp({quote_go(to_text(value))})"
    if kind is float and math.isfinite(value):
        return f"{value:f}"
    return quote_go(to_text(value)) if kind is float else to_text(value)


def _format_double(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    sign, digits, power = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(power, int)
    exponent = len(digits) + power - 1
    if -4 <= exponent < 6:
        return f"{Decimal((sign, digits, power)):f}"
    text = "".join(map(str, digits))
    return f"{'-' * sign}{text[0]}{'.' + text[1:] if text[1:] else ''}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"


def _format_exponent(value: float, digits: int) -> str:
    number, _, power = f"{value:.{digits}e}".partition("e")
    return f"{number}×10{power.replace('+', '').translate(_SUPERSCRIPTS)}"


_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _format_seconds(value: datetime.timedelta) -> str:
    whole_seconds, micros = divmod(round(value.total_seconds() * 1_000_000), 1_000_000)
    return str(whole_seconds) if not micros else f"{whole_seconds}.{micros:06}".rstrip("0")


def _format_time(value: datetime.datetime) -> str:
    text = value.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
    return f"{text}Z"
