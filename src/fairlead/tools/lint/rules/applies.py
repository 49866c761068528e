"""W602, W603 and W701: applies of what was read, and deletes without a precondition."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.tools.lint.analysis.places import lineage
from fairlead.tools.lint.analysis.program import Program
from fairlead.tools.lint.analysis.values import Read, Trace, Write
from fairlead.tools.lint.findings import Confidence, Finding
from fairlead.tools.lint.golang.types import named
from fairlead.tools.lint.rules.steps import finding_at, is_written_here, kind_name, step
from fairlead.tools.lint.rules.table import BY_CODE


def check_apply(program: Program, trace: Trace) -> Iterator[Finding]:
    for write in trace.events:
        if not isinstance(write, Write) or write.verb != "apply" or not is_written_here(trace, write):
            continue
        things = lineage(write.place.thing)
        read = next((e for e in trace.events[: write.index] if isinstance(e, Read) and e.place.thing in things), None)
        if read is not None:
            finding = finding_at(BY_CODE["W602"], trace, write)
            finding.message = (
                f"the payload of this apply is a {kind_name(write.kind)} that was read: it claims every field of "
                "others, "
                f"and a stale copy brings old values back"
            )
            finding.confidence = Confidence.MEDIUM
            finding.steps = [step(read, f"{read.text} reads the object"), step(write, f"{write.text} applies it")]
            finding.subject = write.text
            yield finding
        elif write.is_forced:
            carried = carried_field(trace, write)
            if carried:
                finding = finding_at(BY_CODE["W603"], trace, write)
                finding.message = (
                    f"this forced apply sends {carried} of the live {kind_name(write.kind)}: a stale value "
                    "overwrites the "
                    f"newer one of its owner"
                )
                finding.confidence = Confidence.LOW
                finding.steps = [step(write, f"{write.text} forces a value that was only read")]
                finding.subject = write.text
                yield finding


def carried_field(trace: Trace, write: Write) -> str:
    """Return the field whose value comes from a read object of the same kind."""
    kind = named(write.kind)
    if kind is None:
        return ""
    read = {e.place.thing for e in trace.events[: write.index] if isinstance(e, Read) and not e.is_list}
    for place, value in trace.literal_fields.items():
        if place.thing is not write.place.thing:
            continue
        for source in value.sources:
            if (
                source.thing in read
                and named(source.thing.type) == kind
                and source.path[:1] in (("Spec",), ("Status",))
            ):
                return ".".join(source.path)
    return ""


def check_delete(program: Program, trace: Trace) -> Iterator[Finding]:
    for write in trace.events:
        if (
            isinstance(write, Write)
            and write.verb == "delete"
            and is_written_here(trace, write)
            and not write.has_precondition
        ):
            finding = finding_at(BY_CODE["W701"], trace, write)
            finding.message = (
                f"this delete addresses the {kind_name(write.kind)} by its name only: an object that was created "
                "again in "
                f"between is deleted"
            )
            finding.confidence = Confidence.LOW
            finding.steps = [step(write, f"{write.text} has no preconditions")]
            finding.subject = write.text
            yield finding
