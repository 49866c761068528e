"""How large a value of a rule may be, and how costs add up: nothing grows beyond 2^64 - 1."""

import math
from typing import Final, NamedTuple

MOST: Final = 2**64 - 1
CHARACTER, PATTERN = 0.1, 0.25  # of a text that is gone through, of a regular expression for each of these
LIST, MAP = 10, 30  # to make one


class Size(NamedTuple):
    """Characters, bytes, items or entries. The least of it counts too: replacing little by much makes a text longer."""

    least: int
    most: int

    def __or__(self, other: "Size") -> "Size":
        return Size(min(self.least, other.least), max(self.most, other.most))


class Entry(NamedTuple):
    """How large the keys and the values of a map are, or the items of a list."""

    kind: str
    key: Size
    value: Size


UNKNOWN: Final = Size(0, MOST)
ONE: Final = Size(1, 1)


def add(*numbers: int) -> int:
    return min(MOST, sum(numbers))


def times(one: int, other: int) -> int:
    return min(MOST, one * other)


def part(size: int, factor: float) -> int:
    """A size at so much each, rounded up."""
    return min(MOST, math.ceil(float(size) * factor))
