"""Ranges of value sizes, and arithmetic of costs, which stops at 2^64 - 1."""

import math
from typing import Final, NamedTuple

MAX_UINT64: Final = 2**64 - 1
CHARACTER_COST, PATTERN_COST = 0.1, 0.25  # The cost of reading a character, and of each character of a pattern.
LIST_COST, MAP_COST = 10, 30  # The cost of creating a list or a map.


class SizeRange(NamedTuple):
    """The smallest and largest possible size of a value, in characters, bytes, items or entries.

    The minimum matters for `replace`: a shorter search text can occur more often.
    """

    min: int
    max: int

    def __or__(self, other: "SizeRange") -> "SizeRange":
        return SizeRange(min(self.min, other.min), max(self.max, other.max))


class EntrySizes(NamedTuple):
    """The size ranges of the keys and values of a map, or of the items of a list."""

    kind: str
    key: SizeRange
    value: SizeRange


UNKNOWN: Final = SizeRange(0, MAX_UINT64)
ONE: Final = SizeRange(1, 1)


def add(*numbers: int) -> int:
    return min(MAX_UINT64, sum(numbers))


def multiply(a: int, b: int) -> int:
    return min(MAX_UINT64, a * b)


def scale(size: int, factor: float) -> int:
    """Multiply a size by a factor and round up."""
    return min(MAX_UINT64, math.ceil(float(size) * factor))
