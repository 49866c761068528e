"""How much work a rule may be: an estimate before it runs, because the engine cannot be stopped while it does.

The engine itself ends a rule after 10,000 steps of its loops. What one step costs is up to the rule and the object:
each mention of `self` inside a loop hands the whole of it over again. So steps times size is held to a limit, and so
is the sum over all rules of an object. A real server counts as it goes and stops at a cost of its own; both refuse with
the same words, and neither ever runs for long.
"""

import re
from typing import Any, Final, NamedTuple

LIMIT: Final = 10_000_000  # for one rule and for all of an object: a few seconds at worst
EVALUATION: Final = 300  # what it costs to evaluate anything at all
EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
_STEPS: Final = 10_000  # the engine's own limit
_LOOP: Final = re.compile(r"\.\s*(?:all|exists|exists_one|existsOne|map|filter|transformList|transformMap\w*)\s*\(")
_WHOLE: Final = re.compile(r"(?<![\w.])(?:self|oldSelf)\b")
_REPLACE: Final = re.compile(r"\.\s*replace\s*\(")


class Loop(NamedTuple):
    """A loop in a rule: how many loops it stands in, itself included, and whether each step may look at everything."""

    depth: int
    whole: bool


class Shape(NamedTuple):
    """What of a rule's text says how its work grows."""

    loops: tuple[Loop, ...]
    replaces: bool


class Size(NamedTuple):
    """What of a value says how much work it is."""

    cells: int  # scalars and keys, and their text
    widest: int  # the most items in one list or map
    longest: int  # text


NOTHING: Final = Size(0, 0, 0)


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
    spans = [(found.end(), _end(spoken, found.end())) for found in _LOOP.finditer(spoken)]
    loops = tuple(
        Loop(sum(a <= start and end <= b for a, b in spans), _WHOLE.search(spoken[start:end]) is not None)
        for start, end in spans
    )
    return Shape(loops, _REPLACE.search(spoken) is not None)


def _end(text: str, start: int) -> int:
    """Where the parenthesis closes that was opened before `start`."""
    depth = 1
    for at in range(start, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if not depth:
            return at
    return len(text)


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
        found += steps * given.cells if loop.whole else steps + given.cells
    return found + (given.longest**2 // 4 if of.replaces else 0)
