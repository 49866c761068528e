"""Semantic versions, as CEL's semver library parses and compares them."""

import re
from typing import Final

_IDENTIFIERS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_NUMBER: Final = r"(0|[1-9][0-9]*)"
_VERSION: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_IDENTIFIERS}))?(?:\+({_IDENTIFIERS}))?", re.ASCII)
_LOOSE: Final = re.compile(r"([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?((?:[-+].*)?)", re.ASCII)


def parse(text: str) -> tuple[int, int, int, tuple[str, ...]]:
    """Return major, minor, patch and the pre-release identifiers. Raises ValueError if the text is not a version."""
    match = _VERSION.fullmatch(text)
    prerelease = tuple(match[4].split(".")) if match and match[4] else ()
    if match is None or any(part.isdigit() and len(part) > 1 and part[0] == "0" for part in prerelease):
        raise ValueError(f"invalid semantic version {text!r}")
    return int(match[1]), int(match[2]), int(match[3]), prerelease


def normalize(text: str) -> str:
    """Return a version without a leading v or leading zeros, and with three numbers: 1.2.0 for v1.02.

    A text that is not a version is returned unchanged.
    """
    match = _LOOSE.fullmatch(text.strip().removeprefix("v"))
    return ".".join(str(int(match[i] or 0)) for i in (1, 2, 3)) + match[4] if match else text


def compare(a: str, b: str) -> int:
    """Return -1, 0 or 1 for version `a` before, equal to or after `b`. Build metadata is ignored."""
    key_a, key_b = _sort_key(a), _sort_key(b)
    return (key_a > key_b) - (key_a < key_b)


def _sort_key(text: str) -> tuple[object, ...]:
    *numbers, prerelease = parse(text)
    assert isinstance(prerelease, tuple)
    identifiers = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in prerelease)
    return *numbers, not prerelease, identifiers
