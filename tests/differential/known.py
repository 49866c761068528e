"""The differences that docs/differences.md documents, each recognised in an answer."""

from collections.abc import Callable
from typing import Any

from .playing import Difference, is_text

Recognise = Callable[[dict[str, Any], Difference], bool]


def _builtin_check(scenario: dict[str, Any], difference: Difference) -> bool:
    """A real server's refusal of a built-in object, or its causes, and what follows from that in later answers."""
    return scenario["family"] in ("builtin", "lists") and not scenario.get("definition") and _refused(difference)


def _definition_check(scenario: dict[str, Any], difference: Difference) -> bool:
    return difference[0] == -1 or scenario["family"] == "definitions"


def _changed_version(scenario: dict[str, Any], difference: Difference) -> bool:
    return scenario["family"] == "versions"


def _refused(difference: Difference) -> bool:
    _, path, want, got = difference
    return (path == ".code" and want == 422 and got in (200, 201)) or path.startswith(".body.details.causes")


KNOWN: dict[str, Recognise] = (
    {}
    if __import__("os").environ.get("STRICT")
    else {
        "Texts": lambda scenario, difference: is_text(difference),
        "Checks of built-in kinds": _builtin_check,
        "Checks of definitions": _definition_check,
        "Changing versions": _changed_version,
    }
)


def sorted_out(scenario: dict[str, Any], found: list[Difference]) -> tuple[list[Difference], set[str]]:
    """The differences that are not documented, and the names of those that are.

    Where a documented one changed an outcome, both servers went on from different objects: the rest follows from it.
    """
    names: set[str] = set()
    for place, difference in enumerate(found):
        name = next((name for name, recognise in KNOWN.items() if recognise(scenario, difference)), None)
        if name is None:
            return found[place:], names
        names.add(name)
        if not is_text(difference) and difference[1] == ".code":
            return [], names
    return [], names
