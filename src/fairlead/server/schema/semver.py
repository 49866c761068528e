"""Semantic versions, as CEL's semver library reads and orders them."""

import re
from typing import Final

_IDENTIFIERS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_NUMBER: Final = r"(0|[1-9][0-9]*)"
_VERSION: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_IDENTIFIERS}))?(?:\+({_IDENTIFIERS}))?", re.ASCII)
_LOOSE: Final = re.compile(r"([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?((?:[-+].*)?)", re.ASCII)


def parse(text: str) -> tuple[int, int, int, tuple[str, ...]]:
    """Major, minor, patch and the identifiers of a pre-release. Raises ValueError for what is no version."""
    found = _VERSION.fullmatch(text)
    before = tuple(found[4].split(".")) if found and found[4] else ()
    if found is None or any(part.isdigit() and len(part) > 1 and part[0] == "0" for part in before):
        raise ValueError(f"invalid semantic version {text!r}")
    return int(found[1]), int(found[2]), int(found[3]), before


def normalize(text: str) -> str:
    """A version without a leading v or leading zeros, with all three numbers; itself where it is no such version."""
    found = _LOOSE.fullmatch(text.strip().removeprefix("v"))
    return ".".join(str(int(found[i] or 0)) for i in (1, 2, 3)) + found[4] if found else text


def compare(one: str, other: str) -> int:
    """-1, 0 or 1. A pre-release comes before its version; build metadata does not count."""
    a, b = _order(one), _order(other)
    return (a > b) - (a < b)


def _order(text: str) -> tuple[object, ...]:
    *numbers, before = parse(text)
    assert isinstance(before, tuple)
    ranked = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in before)
    return *numbers, not before, ranked
