"""How much work a rule may be: an estimate before it runs, because the engine cannot be stopped while it does, and a
meter in the functions that are not the engine's own.

The engine itself ends a rule after 10,000 steps of its loops. What one step costs is up to the rule and the object:
each mention of `self` inside a loop hands the whole of it over again. So steps times size is held to a limit, and so
is the sum over all rules of an object. A real server counts as it goes and stops at a cost of its own; both refuse with
the same words, and neither ever runs for long.
"""

import math
import re
import threading
from typing import Any, Final, NamedTuple

from fairlead.server.schema.cel.rewriting import closing

LIMIT: Final = 10_000_000  # for one rule and for all of an object: a few seconds at worst
EVALUATION: Final = 300  # what it costs to evaluate anything at all
HANDED_OVER: Final = 8  # times the work of looking at a value
EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
_STEPS: Final = 10_000  # the engine's own limit
_LOOP: Final = re.compile(
    r"\.\s*(?:all|exists|exists_one|existsOne|(filter|map|sortBy|transformList)|(transformMap(?:Entry)?))\s*\("
)
_WHOLE: Final = re.compile(r"(?<![\w.])(?:self|oldSelf)\b")


class Loop(NamedTuple):
    """A loop in a rule: how many loops it stands in, itself included, and whether each step may look at everything."""

    depth: int
    whole: bool
    lists: bool  # it makes a list, which the engine copies at each step and may hand over
    maps: bool  # it makes a map, which is handed over at each step


class Shape(NamedTuple):
    """What of a rule's text says how its work grows."""

    loops: tuple[Loop, ...]
    growth: int  # how much longer loops that add to a text, one after another, can make it


class Size(NamedTuple):
    """What of a value says how much work it is."""

    cells: int  # scalars and keys, and their text
    widest: int  # the most items in one list or map
    longest: int  # text


NOTHING: Final = Size(0, 0, 0)


class Meter(threading.local):
    """What the functions of the rule that runs on this thread have done so far."""

    spent = 0

    def start(self) -> None:
        self.spent = 0

    def spend(self, work: int) -> None:
        """Raises where it is too much, before it is done."""
        self.spent += work
        if self.spent > LIMIT:
            raise ValueError(EXCEEDED)


METER: Final = Meter()


class Budget:
    """The work that all rules of one object may be."""

    def __init__(self) -> None:
        self._left = LIMIT

    def spend(self, work: int) -> bool:
        """Whether there was enough left."""
        self._left -= work
        return self._left >= 0


def shape(spoken: str) -> Shape:
    """The shape of a rule whose string literals are blanked out."""
    found = list(_LOOP.finditer(spoken))
    spans = [(loop.end(), closing(spoken, loop.end())) for loop in found]
    loops = tuple(
        Loop(
            depth=sum(a <= start and end <= b for a, b in spans),
            whole=_WHOLE.search(spoken[start:end]) is not None,
            lists=loop[1] is not None,
            maps=loop[2] is not None,
        )
        for loop, (start, end) in zip(found, spans, strict=True)
    )
    growth = math.prod(1 + spoken.count("+", start, end) for start, end in spans)
    return Shape(loops, growth)


def copied(length: int) -> int:
    """The work of making a list of this length in a loop."""
    return length * length // 2


def size(value: Any) -> Size:
    cells = widest = longest = 0
    rest = [value]
    while rest:
        one = rest.pop()
        cells += 1
        if isinstance(one, str):
            cells += len(one) // 4
            longest = max(longest, len(one))
        elif isinstance(one, dict):
            widest = max(widest, len(one))
            rest += one.keys()
            rest += one.values()
        elif isinstance(one, list):
            widest = max(widest, len(one))
            rest += one
    return Size(cells, widest, longest)


def work(of: Shape, given: Size) -> int:
    """At most this much is done when a rule of this shape is evaluated on a value of this size."""
    found = EVALUATION + given.cells
    for loop in of.loops:
        steps = min(_STEPS, max(given.widest, 16) ** loop.depth)
        each = steps * given.cells if loop.whole else steps + given.cells
        found += each * (steps if loop.maps else HANDED_OVER if loop.lists and loop.whole else 1)
        found += copied(steps) if loop.lists else 0
    return found + given.longest * (of.growth - 1)
