"""Shared by the rules: steps of a finding, and which events belong to the function that is judged."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.tools.lint.analysis.history import always_before
from fairlead.tools.lint.analysis.places import lineage
from fairlead.tools.lint.analysis.values import Event, Read, Trace, Write
from fairlead.tools.lint.findings import Finding, Rule, Step
from fairlead.tools.lint.golang.types import GoType, named


def step(event: Event, text: str, line: int | None = None) -> Step:
    """Return a step at the place where an event is written."""
    return Step(event.site[0].path, line if line is not None else event.site[1], text)


def finding_at(rule: Rule, trace: Trace, event: Event, line: int | None = None) -> Finding:
    """Return a finding at an event of the judged function, without a message yet."""
    path = trace.decl.file.path
    return Finding(
        rule, path, line if line is not None else event.line, "", level=rule.level, function=trace.decl.title
    )


def kind_name(kind: GoType | None) -> str:
    found = named(kind)
    return found.name if found is not None and found.name not in ("Object", "any") else "object"


def is_own(trace: Trace, evidence: Sequence[Event], judged: Event) -> bool:
    """Return whether a finding belongs to the function that is judged, and not to a function that it calls.

    It does unless all the evidence comes from one called function: that function is judged on its own.
    """
    if len(judged.frames) == 1 or any(is_written_here(trace, event) for event in evidence):
        return True
    outermost = {event.frames[1] if len(event.frames) > 1 else 0 for event in evidence}
    return len(outermost) > 1


def is_written_here(trace: Trace, event: Event) -> bool:
    """Return whether an event is written in the judged function, also in its closures."""
    file, line = event.site
    return file is trace.decl.file and trace.decl.line <= line <= trace.decl.last_line


def is_live(trace: Trace, write: Write) -> bool:
    """Return whether the written object was read from the server, or just written, and not taken from a cache."""
    things = lineage(write.place.thing)
    for event in reversed(trace.events[: write.index]):
        if event.place.thing not in things or not always_before(event, write):
            continue
        if isinstance(event, Read):
            return event.is_live
        if isinstance(event, Write) and event.verb in ("update", "patch", "create", "apply"):
            return True
    return write.place.thing.is_live
