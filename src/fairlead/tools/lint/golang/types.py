"""Go types as far as they can be known without a compiler: names with their import path, pointers, lists, maps."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Named:
    """A type with a name. `path` is the import path of its package, or "" for built-in types and type parameters."""

    path: str
    name: str
    args: tuple[GoType | None, ...] = ()

    def __str__(self) -> str:
        return f"{self.path.rpartition('/')[2]}.{self.name}" if self.path else self.name


@dataclass(frozen=True, slots=True)
class Pointer:
    to: GoType | None

    def __str__(self) -> str:
        return f"*{self.to}"


@dataclass(frozen=True, slots=True)
class ListOf:
    item: GoType | None

    def __str__(self) -> str:
        return f"[]{self.item}"


@dataclass(frozen=True, slots=True)
class MapOf:
    key: GoType | None
    value: GoType | None

    def __str__(self) -> str:
        return f"map[{self.key}]{self.value}"


@dataclass(frozen=True, slots=True)
class FuncOf:
    params: tuple[GoType | None, ...]
    results: tuple[GoType | None, ...]

    def __str__(self) -> str:
        return "func"


GoType: TypeAlias = Named | Pointer | ListOf | MapOf | FuncOf

BUILTIN = frozenset(
    [
        "bool",
        "string",
        "int",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "uintptr",
        "byte",
        "rune",
        "float32",
        "float64",
        "complex64",
        "complex128",
        "error",
        "any",
    ]
)


def named(kind: GoType | None) -> Named | None:
    """Return the named type behind pointers, or None."""
    while isinstance(kind, Pointer):
        kind = kind.to
    return kind if isinstance(kind, Named) else None


def split_top_level(text: str) -> list[str]:
    """Split at the commas that are not inside brackets."""
    parts: list[str] = []
    depth = start = 0
    for position, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


@functools.lru_cache(maxsize=65536)
def parse_type(text: str) -> GoType | None:
    """Return the type that is written in `text`; a package is still its alias in that file."""
    text = text.strip()
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    if not text:
        return None
    if text[0] == "*":
        return Pointer(parse_type(text[1:]))
    if text.startswith("..."):
        return ListOf(parse_type(text[3:]))
    if text[0] == "[":
        close = _matching(text, 0)
        return ListOf(parse_type(text[close + 1 :])) if close > 0 else None
    if text.startswith("map["):
        close = _matching(text, 3)
        return MapOf(parse_type(text[4:close]), parse_type(text[close + 1 :])) if close > 0 else None
    if text.startswith("func("):
        return _parse_func(text)
    if text.startswith(("struct", "interface", "chan", "<-")):
        return None
    args: tuple[GoType | None, ...] = ()
    if text.endswith("]") and "[" in text:
        start = text.index("[")
        args = tuple(parse_type(part) for part in split_top_level(text[start + 1 : -1]))
        text = text[:start]
    package, _, name = text.rpartition(".")
    return Named(package, name.strip(), args)


def _parse_func(text: str) -> FuncOf | None:
    close = _matching(text, 4)
    if close < 0:
        return None
    params = tuple(parse_type(_param_type(part)) for part in split_top_level(text[5:close]))
    rest = text[close + 1 :].strip()
    results = split_top_level(rest[1:-1]) if rest.startswith("(") else ([rest] if rest else [])
    return FuncOf(params, tuple(parse_type(_param_type(part)) for part in results))


def _param_type(text: str) -> str:
    """Drop the name of `name Type`."""
    name, _, rest = text.partition(" ")
    return rest if rest and name.isidentifier() and name not in ("func", "chan", "map") else text


def _matching(text: str, start: int) -> int:
    depth = 0
    for position in range(start, len(text)):
        if text[position] in "([{":
            depth += 1
        elif text[position] in ")]}":
            depth -= 1
            if depth == 0:
                return position
    return -1
