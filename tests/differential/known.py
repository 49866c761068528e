"""The differences that docs/differences.md documents, each recognised in an answer."""

from collections.abc import Callable
from typing import Any

from .playing import Difference

Recognise = Callable[[dict[str, Any], Difference], bool]

KNOWN: dict[str, Recognise] = {}


def sorted_out(scenario: dict[str, Any], found: list[Difference]) -> tuple[list[Difference], set[str]]:
    """The differences that are not documented, and the names of those that are."""
    unknown: list[Difference] = []
    names: set[str] = set()
    for difference in found:
        step = scenario["steps"][difference[0]] if difference[0] >= 0 else {"do": "POST", "path": ""}
        name = next((name for name, recognise in KNOWN.items() if recognise(step, difference)), None)
        if name is None:
            unknown.append(difference)
        else:
            names.add(name)
    return unknown, names
