"""Path elements of FieldsV1.

An element is a string: `f:spec` (a field), `k:{"name":"x"}` (an item of a keyed list), `v:"a"` (an item of a set),
`i:0` (an index). Elements are canonical: equal elements are equal strings. A path is a tuple of elements.

A server reads the numbers in FieldsV1 as floats. The element of an integer that a float cannot represent is therefore a
`LargeNumberElement`.
"""

import functools
import json
from decimal import Decimal
from typing import Any

from fairlead.api import gojson

Path = tuple[str, ...]

_FLOAT_LIMIT = 2**53  # from here on a float cannot represent every integer
_CACHE_SIZE = 65536  # the keys and set items of a cluster repeat often


class LargeNumberElement(str):
    """A path element with an integer that an API server rounds to a float when it reads FieldsV1.

    The string value is the rounded element, and `exact` is the element with the exact number. Two LargeNumberElements
    are equal if their `exact` strings are equal. Compared with a plain string, the rounded element counts.
    """

    __slots__ = ("exact",)
    exact: str

    def __new__(cls, rounded: str, exact: str) -> "LargeNumberElement":
        element = super().__new__(cls, rounded)
        element.exact = exact
        return element

    def __eq__(self, other: object) -> bool:
        return self.exact == other.exact if isinstance(other, LargeNumberElement) else str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def field(name: str) -> str:
    """Return the path element of a field or map key: `f:spec` for "spec"."""
    return "f:" + name


def value(item: Any) -> str:
    """Return the path element of a scalar in a list of type set: `v:"a"` for "a"."""
    element = "v:" + _format_json(item)
    return LargeNumberElement(_round_large_numbers(element), element) if _is_large(item) else element


def index(position: int) -> str:
    """Return the path element of a list position: `i:0` for the first item."""
    return f"i:{position}"


def key(fields: dict[str, Any]) -> str:
    """Return the path element of a keyed list's item, from its key fields: `k:{"name":"app"}` for {"name": "app"}."""
    element = "k:{" + ",".join([f"{_format_json(name)}:{_format_json(fields[name])}" for name in sorted(fields)]) + "}"
    return (
        LargeNumberElement(_round_large_numbers(element), element) if any(map(_is_large, fields.values())) else element
    )


def _is_large(item: Any) -> bool:
    return type(item) is int and not -_FLOAT_LIMIT < item < _FLOAT_LIMIT


@functools.lru_cache(_CACHE_SIZE)
def key_of_text(name: str, text: str) -> str:
    """Return `key({name: text})` from a cache. Most keyed lists have one key field, which is a string."""
    return "k:{" + f"{_format_json_text(name)}:{_format_json_text(text)}" + "}"


def path(*parts: str | int | dict[str, Any]) -> Path:
    """Build a path from its parts: a string is a field, a dict is the key of a list item, a number is a list position.

    Example: `path("spec", "containers", {"name": "app"}, "image")`. For an item of a set, add its element by hand:
    `(*path("metadata", "finalizers"), value("x"))`.
    """
    return tuple([field(p) if isinstance(p, str) else index(p) if isinstance(p, int) else key(p) for p in parts])


@functools.lru_cache(_CACHE_SIZE)
def canonicalize(element: str) -> str | None:
    """Return the canonical form of a path element, or None if its prefix is not one of `f:`, `k:`, `v:` and `i:`.

    Raises ValueError if the string is not a path element.
    """
    kind, separator, element_value = element[:1], element[1:2], element[2:]
    if separator != ":":
        raise ValueError(f"{element!r} is not a path element: it does not start with a kind and a colon")
    if kind == "f":
        return element
    if kind == "v":
        return value(json.loads(element_value, parse_int=float))
    if kind == "k":
        fields = json.loads(element_value, parse_int=float)
        if not isinstance(fields, dict):
            raise ValueError(f"{element!r} is not a path element: its key is not a JSON object")
        return key(fields)
    if kind == "i":
        return index(int(element_value))
    return None


def _round_large_numbers(element: str) -> str:
    rounded = canonicalize(element)
    assert rounded is not None
    return rounded


def format_path(path: Path) -> str:
    """Format a path as an API server does in conflict messages: `.spec.containers[name="app"].image`."""
    return "".join([_format_element(element) for element in path])


@functools.lru_cache(_CACHE_SIZE)
def _format_element(element: str) -> str:
    kind, element_value = element[0], element[2:]
    if kind == "f":
        return "." + element_value
    if kind == "i":
        return f"[{element_value}]"
    parsed = json.loads(element_value, parse_int=float)
    return format_key(parsed) if kind == "k" else f"[={format_value(parsed)}]"


def format_key(fields: dict[str, Any]) -> str:
    """Format the key fields of a list item: `[port=80,protocol="TCP"]`."""
    return "[" + ",".join([f"{name}={format_value(fields[name])}" for name in sorted(fields)]) + "]"


def format_value(item: Any) -> str:
    """Format a JSON scalar for a path: strings are quoted, floats have the form of Go's %v."""
    if item is None:
        return "null"
    if item is True or item is False:
        return "true" if item else "false"
    if isinstance(item, str):
        return gojson.quote_go(item)
    if isinstance(item, float):
        return _format_float(item)
    if isinstance(item, list):
        return "[" + ",".join([format_value(value) for value in item]) + "]"
    if isinstance(item, dict):
        return "".join([f"{name}={format_value(item[name])}" for name in sorted(item)])
    return str(item)


def _format_float(number: float) -> str:
    exact = Decimal(repr(number)).normalize()
    power = exact.adjusted()
    if -4 <= power < 6:
        return f"{exact:f}"
    digits = "".join(map(str, exact.as_tuple().digits))
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{'-' if number < 0 else ''}{digits[0]}{fraction}e{'-' if power < 0 else '+'}{abs(power):02d}"


@functools.lru_cache(_CACHE_SIZE)
def sort_key(element: str) -> tuple[Any, ...]:
    """Return a sort key that orders path elements as an API server does: fields, keys, values, list positions."""
    kind, element_value = element[0], element[2:]
    if kind == "f":
        return (0, element_value.encode())  # Go compares strings as bytes.
    if kind == "i":
        return (3, int(element_value))
    parsed = json.loads(element_value)
    if kind == "v":
        return (2, _get_value_sort_key(parsed))
    return (1, tuple([(name.encode(), _get_value_sort_key(parsed[name])) for name in sorted(parsed)]))


def _get_value_sort_key(item: Any) -> tuple[int, Any]:
    if item is None:
        return (5, 0)
    if isinstance(item, bool):
        return (2, item)
    if isinstance(item, int | float):
        return (0, item)
    if isinstance(item, str):
        return (1, item.encode())
    if isinstance(item, list):
        return (3, tuple([_get_value_sort_key(value) for value in item]))
    return (4, tuple([(name.encode(), _get_value_sort_key(item[name])) for name in sorted(item)]))


def _format_json(item: Any) -> str:
    if type(item) is str:
        return _format_json_text(item)
    if type(item) is float:
        return gojson.format_number(item, is_padded=True)
    return str(item) if type(item) is int else gojson.dumps(item).decode()


@functools.lru_cache(_CACHE_SIZE)
def _format_json_text(text: str) -> str:
    return gojson.dumps(text).decode()
