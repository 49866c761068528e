"""W401: objects of a shared cache that are changed in place."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.tools.lint.analysis.program import Program
from fairlead.tools.lint.analysis.values import ITEM, Mutation, Overwrite, Trace
from fairlead.tools.lint.analysis.walker import EVENT_PATHS
from fairlead.tools.lint.findings import Confidence, Finding, Step
from fairlead.tools.lint.golang.types import named
from fairlead.tools.lint.rules.steps import finding_at, is_own, is_written_here, step
from fairlead.tools.lint.rules.table import BY_CODE

HARMLESS = frozenset({"Kind", "APIVersion", "TypeMeta"})
SOURCES = {"lister": "a lister", "event": "an event"}


def check(program: Program, trace: Trace) -> Iterator[Finding]:
    reported: set[object] = set()
    for change in trace.events:
        if not isinstance(change, Mutation) or not change.place.thing.is_shared or change.place.thing in reported:
            continue
        path = tuple(name for name in change.place.path if name != ITEM)
        if not path or path[0] in HARMLESS or is_replaced(trace, change):
            continue
        thing = change.place.thing
        kind = named(thing.type)
        if kind is not None and kind.path in EVENT_PATHS and len(path) < 2:
            continue  # a field of the event itself
        if thing.frame != trace.frame and not is_own(trace, [change], change):
            continue
        reported.add(thing)
        is_read_here = thing.origin == "lister" and thing.frame == trace.frame and is_written_here(trace, change)
        finding = finding_at(BY_CODE["W401"], trace, change, thing.line if is_read_here else None)
        source = SOURCES.get(thing.origin, "a cache")
        finding.message = (
            f"{'.'.join(path)} of an object of {source} is changed without a copy: every other reader of the cache "
            "sees the change, also if the write fails"
        )
        finding.confidence = Confidence.HIGH if len(change.frames) == 1 else Confidence.MEDIUM
        finding.steps = [
            Step(thing.file.path if thing.file is not None else finding.file, thing.line, f"comes from {source}"),
            step(change, f"{change.helper or 'an assignment'} changes {'.'.join(path)}"),
        ]
        finding.subject = ".".join(path)
        yield finding


def is_replaced(trace: Trace, change: Mutation) -> bool:
    """Return whether the variable got a copy before."""
    return any(
        isinstance(event, Overwrite) and event.index < change.index and event.place.thing is change.place.thing
        for event in trace.events
    )
