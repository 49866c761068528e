"""Load the catalogue of hazards from catalogue.yaml."""

import functools
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Any

CATEGORIES = {
    "existence": "Existence and identity",
    "lost-updates": "Lost updates",
    "ownership": "Field ownership",
    "no-ops": "No-op writes",
    "schema": "Lists, schema, status and metadata",
}


class Severity(StrEnum):
    """The effect of a hazard: wrong state, a controller that stalls, or only noise."""

    CORRUPTS = "corrupts"  # Data is lost or wrong, usually without an error.
    STALLS = "stalls"  # A controller or an object makes no progress.
    NOISE = "noise"  # Requests, events or conflicts without an effect.


@dataclass(frozen=True, slots=True)
class Fix:
    """How to avoid a hazard, as Markdown: with fairlead in Python, and with client-go or controller-runtime in Go."""

    python: str
    go: str


@dataclass(frozen=True, slots=True)
class Hazard:
    """One way in which a write goes wrong. The texts are Markdown."""

    id: str
    number: str
    title: str
    category: str
    severity: Severity
    story: str
    server: str
    fix: Fix
    tests: tuple[str, ...]
    prevented_by: tuple[str, ...] = ()
    """The parts of fairlead that prevent it. If empty, the fix is up to the caller."""

    @property
    def page(self) -> str:
        """Return the path of the hazard's page in the documentation."""
        return f"hazards/{self.id}.md"


@functools.cache
def load_catalogue() -> tuple[Hazard, ...]:
    """Return all hazards, ordered by number."""
    import yaml  # Imported here, because most users of an id never need the texts.

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    catalogue_yaml = files(__package__).joinpath("catalogue.yaml").read_text(encoding="utf-8")
    return tuple(_to_hazard(entry) for entry in yaml.load(catalogue_yaml, loader))  # noqa: S506 - both loaders are safe


def find_hazard(hazard_id: str) -> Hazard:
    """Return the hazard with that id. Raise KeyError for an unknown id."""
    for hazard in load_catalogue():
        if hazard.id == hazard_id:
            return hazard
    raise KeyError(f"no hazard has the id {hazard_id!r}: see docs/hazards/index.md for all ids")


def _to_hazard(entry: dict[str, Any]) -> Hazard:
    lists = {name: tuple(entry.get(name, ())) for name in ("tests", "prevented_by")}
    return Hazard(**{**entry, **lists, "severity": Severity(entry["severity"]), "fix": Fix(**entry["fix"])})
