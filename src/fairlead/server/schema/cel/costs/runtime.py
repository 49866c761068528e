"""Limits on the work of evaluating rules.

The engine cannot be stopped while it evaluates a rule, so the work is estimated before. The functions in `functions`
also count their work in a meter while they run.

The engine itself stops a rule after 10,000 iterations of its loops. The work of one iteration depends on the rule and
on the object: each mention of `self` inside a loop passes the whole object to the engine again. So the product of
iterations and size is limited, for each rule and for all rules of an object. A real server counts its own cost while it
evaluates. Both reject a rule that is too expensive with the same message.
"""

import math
import re
import threading
from typing import Any, Final, NamedTuple

from fairlead.server.schema.cel.rewriting import find_closing

LIMIT: Final = 10_000_000  # For one rule and for all rules of an object: a few seconds at worst.
BASE_WORK: Final = 300  # The work of evaluating the smallest rule.
TRANSFER_FACTOR: Final = (
    8  # Passing a value between Python and the engine takes this many times the work of reading it.
)
EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
_MAX_ITERATIONS: Final = 10_000  # The engine's own limit.
_LOOP: Final = re.compile(
    r"\.\s*(?:all|exists|exists_one|existsOne|(filter|map|sortBy|transformList)|(transformMap(?:Entry)?))\s*\("
)
_SELF: Final = re.compile(r"(?<![\w.])(?:self|oldSelf)\b")


class LoopShape(NamedTuple):
    """One loop in the text of a rule."""

    depth: int  # How many loops it is in, including itself.
    mentions_self: bool  # Each iteration may pass the whole object to the engine.
    builds_list: bool  # The engine copies the list in each iteration and may pass it on.
    builds_map: bool  # The map is passed on in each iteration.


class RuleShape(NamedTuple):
    """The parts of a rule's text that determine how its work grows with the size of the value."""

    loops: tuple[LoopShape, ...]
    growth: int  # How many times longer a text can become through loops that append to it.


class ValueSize(NamedTuple):
    """The size of a value: its number of parts, and its largest list or map and longest text."""

    cells: int  # Scalars and keys, including the length of their text.
    widest: int  # The number of items of the largest list or map.
    longest: int  # The length of the longest text.


EMPTY: Final = ValueSize(0, 0, 0)


class Meter(threading.local):
    """Counts the work of our functions for the rule that the current thread evaluates."""

    spent = 0

    def start(self) -> None:
        self.spent = 0

    def spend(self, work: int) -> None:
        """Add work that is about to be done. Raises ValueError if the total is too much."""
        self.spent += work
        if self.spent > LIMIT:
            raise ValueError(EXCEEDED)


METER: Final = Meter()


class WorkBudget:
    """The work that all rules of one object may do together."""

    def __init__(self) -> None:
        self._remaining = LIMIT

    def spend(self, work: int) -> bool:
        """Subtract work from the budget. Return whether enough remained."""
        self._remaining -= work
        return self._remaining >= 0


def find_loops(rule: str) -> RuleShape:
    """Return the loops in a rule's text, in which the string literals are already blanked."""
    matches = list(_LOOP.finditer(rule))
    spans = [(match.end(), find_closing(rule, match.end())) for match in matches]
    loops = tuple(
        LoopShape(
            depth=sum(a <= start and end <= b for a, b in spans),
            mentions_self=_SELF.search(rule[start:end]) is not None,
            builds_list=match[1] is not None,
            builds_map=match[2] is not None,
        )
        for match, (start, end) in zip(matches, spans, strict=True)
    )
    growth = math.prod(1 + rule.count("+", start, end) for start, end in spans)
    return RuleShape(loops, growth)


def list_building_work(length: int) -> int:
    """Return the work of building a list of this length item by item in a loop."""
    return length * length // 2


def measure(value: Any) -> ValueSize:
    """Return the size of a JSON value."""
    cells = widest = longest = 0
    remaining = [value]
    while remaining:
        current = remaining.pop()
        cells += 1
        if isinstance(current, str):
            cells += len(current) // 4
            longest = max(longest, len(current))
        elif isinstance(current, dict):
            widest = max(widest, len(current))
            remaining += current.keys()
            remaining += current.values()
        elif isinstance(current, list):
            widest = max(widest, len(current))
            remaining += current
    return ValueSize(cells, widest, longest)


def estimate_work(rule: RuleShape, size: ValueSize) -> int:
    """Return the most work that evaluating a rule of this shape on a value of this size can take."""
    work = BASE_WORK + size.cells
    for loop in rule.loops:
        iterations = min(_MAX_ITERATIONS, max(size.widest, 16) ** loop.depth)
        reading = iterations * size.cells if loop.mentions_self else iterations + size.cells
        copies_self = loop.builds_list and loop.mentions_self
        work += reading * (iterations if loop.builds_map else TRANSFER_FACTOR if copies_self else 1)
        work += list_building_work(iterations) if loop.builds_list else 0
    return work + size.longest * (rule.growth - 1)
