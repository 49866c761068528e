"""Path elements, as FieldsV1 spells them.

An element is a plain string: `f:spec` (a field), `k:{"name":"x"}` (the item of a keyed list), `v:"a"` (the item of a
set), `i:0` (an index). Spelled canonically, so that equal elements are equal strings; a path is a tuple of them.

Numbers in FieldsV1 are floats to whoever reads them. An element made of a whole number that no float may hold is
therefore a `Great` one.
"""

import functools
import json
from decimal import Decimal
from typing import Any

from fairlead.api import gojson

Path = tuple[str, ...]

_FLOATING = 2**53  # from here on floats skip whole numbers
_CACHED = 65536  # distinct spellings kept; a cluster's keys and set items repeat all the time


class Great(str):
    """An element as read, from which its number comes back rounded, that knows how it is `written`: exactly.

    It equals what was read of any number that is rounded alike, and of those that were not read yet only itself.
    """

    __slots__ = ("written",)
    written: str

    def __new__(cls, read: str, written: str) -> "Great":
        made = super().__new__(cls, read)
        made.written = written
        return made

    def __eq__(self, other: object) -> bool:
        return self.written == other.written if isinstance(other, Great) else str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def field(name: str) -> str:
    """The element of a named field or map key."""
    return "f:" + name


def value(item: Any) -> str:
    """The element of a set's item (a scalar)."""
    made = "v:" + _json(item)
    return Great(_read(made), made) if _is_great(item) else made


def index(position: int) -> str:
    """The element of a position in a list."""
    return f"i:{position}"


def key(fields: dict[str, Any]) -> str:
    """The element of a keyed list's item: the key fields and their values, in any order."""
    made = "k:{" + ",".join([f"{_json(name)}:{_json(fields[name])}" for name in sorted(fields)]) + "}"
    return Great(_read(made), made) if any(map(_is_great, fields.values())) else made


def _is_great(item: Any) -> bool:
    return type(item) is int and not -_FLOATING < item < _FLOATING


@functools.lru_cache(_CACHED)
def named(name: str, text: str) -> str:
    """`key({name: text})`, remembered: by far the most keyed items are told apart by one text."""
    return "k:{" + f"{_json_text(name)}:{_json_text(text)}" + "}"


def path(*parts: str | int | dict[str, Any]) -> Path:
    """A path by its parts: a name for a field, a dict for a keyed item, a number for an index.

    `path("spec", "containers", {"name": "app"}, "image")`. Set items are given as elements (`value("x")`) in a tuple
    of their own making: a bare string always names a field.
    """
    return tuple([field(p) if isinstance(p, str) else index(p) if isinstance(p, int) else key(p) for p in parts])


@functools.lru_cache(_CACHED)
def canonical(element: str) -> str | None:
    """The canonical spelling of an element as read, None for a kind that FieldsV1 does not (yet) have.

    Raises ValueError for what cannot be an element.
    """
    kind, separator, rest = element[:1], element[1:2], element[2:]
    if separator != ":":
        raise ValueError(f"{element!r} is not a path element: no kind and colon in front")
    if kind == "f":
        return element
    if kind == "v":
        return value(json.loads(rest, parse_int=float))
    if kind == "k":
        fields = json.loads(rest, parse_int=float)
        if not isinstance(fields, dict):
            raise ValueError(f"{element!r} is not a path element: a key is a JSON object")
        return key(fields)
    if kind == "i":
        return index(int(rest))
    return None


def _read(element: str) -> str:
    read = canonical(element)
    assert read is not None
    return read


def human(path: Path) -> str:
    """A path as a conflict's cause prints it: `.spec.containers[name="app"].image`, `.metadata.finalizers[="x"]`."""
    return "".join([_human(element) for element in path])


@functools.lru_cache(_CACHED)
def _human(element: str) -> str:
    kind, rest = element[0], element[2:]
    if kind == "f":
        return "." + rest
    if kind == "i":
        return f"[{rest}]"
    parsed = json.loads(rest, parse_int=float)
    return human_key(parsed) if kind == "k" else f"[={human_value(parsed)}]"


def human_key(fields: dict[str, Any]) -> str:
    """A keyed item as messages print it: `[port=80,protocol="TCP"]`."""
    return "[" + ",".join([f"{name}={human_value(fields[name])}" for name in sorted(fields)]) + "]"


def human_value(item: Any) -> str:
    """A value as messages print it: strings quoted, floats in Go's %v, containers flattened."""
    if item is None:
        return "null"
    if item is True or item is False:
        return "true" if item else "false"
    if isinstance(item, str):
        return quoted(item)
    if isinstance(item, float):
        return _percent_v(item)
    if isinstance(item, list):
        return "[" + ",".join([human_value(each) for each in item]) + "]"
    if isinstance(item, dict):
        return "".join([f"{name}={human_value(item[name])}" for name in sorted(item)])
    return str(item)


def quoted(text: str) -> str:
    """Text as Go's %q prints it."""
    return '"' + "".join([_ESCAPES.get(c) or (c if c.isprintable() else _escaped(c)) for c in text]) + '"'


_LETTERS = dict(zip("\a\b\f\n\r\t\v", "abfnrtv", strict=True))
_ESCAPES = {'"': '\\"', "\\": "\\\\", **{char: f"\\{letter}" for char, letter in _LETTERS.items()}}


def _escaped(char: str) -> str:
    point = ord(char)
    return f"\\x{point:02x}" if point < 0x80 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def _percent_v(number: float) -> str:
    exact = Decimal(repr(number)).normalize()
    power = exact.adjusted()
    if -4 <= power < 6:
        return f"{exact:f}"
    digits = "".join(map(str, exact.as_tuple().digits))
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{'-' if number < 0 else ''}{digits[0]}{fraction}e{'-' if power < 0 else '+'}{abs(power):02d}"


@functools.lru_cache(_CACHED)
def order(element: str) -> tuple[Any, ...]:
    """A sort key that puts elements in a server's order: fields, keys, values, indexes; each by what it says."""
    kind, rest = element[0], element[2:]
    if kind == "f":
        return (0, rest.encode())  # bytes: Go compares strings so
    if kind == "i":
        return (3, int(rest))
    parsed = json.loads(rest)
    if kind == "v":
        return (2, _value_order(parsed))
    return (1, tuple([(name.encode(), _value_order(parsed[name])) for name in sorted(parsed)]))


def _value_order(item: Any) -> tuple[int, Any]:
    if item is None:
        return (5, 0)
    if isinstance(item, bool):
        return (2, item)
    if isinstance(item, int | float):
        return (0, item)
    if isinstance(item, str):
        return (1, item.encode())
    if isinstance(item, list):
        return (3, tuple([_value_order(each) for each in item]))
    return (4, tuple([(name.encode(), _value_order(item[name])) for name in sorted(item)]))


def _json(item: Any) -> str:
    if type(item) is str:
        return _json_text(item)
    if type(item) is float:
        return gojson.number(item, padded=True)
    return str(item) if type(item) is int else gojson.dumps(item).decode()


@functools.lru_cache(_CACHED)
def _json_text(text: str) -> str:
    return gojson.dumps(text).decode()
