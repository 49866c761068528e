"""W301 to W304: what a retry on conflict does, and does not do."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.tools.lint.analysis.places import lineage
from fairlead.tools.lint.analysis.program import Program
from fairlead.tools.lint.analysis.values import (
    ITEM,
    Invocation,
    Mutation,
    PatchOf,
    Place,
    Read,
    Region,
    Thing,
    Trace,
    Write,
)
from fairlead.tools.lint.findings import Confidence, Finding, Level
from fairlead.tools.lint.golang.types import named
from fairlead.tools.lint.rules.steps import finding_at, is_own, is_written_here, kind_name, step
from fairlead.tools.lint.rules.table import BY_CODE

SHARED_FIELDS = frozenset({"Status", "Annotations", "Labels", "Finalizers", "OwnerReferences"})
"""Fields that have several writers. Spec and Data usually have one, which computes them in full."""


def check(program: Program, trace: Trace) -> Iterator[Finding]:
    for region in trace.regions:
        if region.kind != "retry":
            continue
        events = [event for event in trace.events if region in event.regions]
        writes = [event for event in events if isinstance(event, Write)]
        if not any(is_written_here(trace, event) for event in events) and region.function is not trace.decl:
            continue
        if not writes:
            continue
        yield from check_dead(trace, region, writes)
        yield from check_defeated(trace, region, writes)
        yield from check_reads(trace, region, writes)


def can_conflict(trace: Trace, write: Write) -> bool | None:
    """Return whether the server can answer Conflict to a write; None if it is not known."""
    if write.verb in ("update", "create-or-update"):
        return True
    if write.verb == "create":
        return False
    if write.verb == "delete":
        return write.has_precondition
    patches = write.patches
    if not patches:
        return None
    if any(patch.is_locked for patch in patches):
        return True
    if any(patch.kind not in ("merge", "strategic", "apply") for patch in patches):
        return None
    if any(patch.kind == "apply" for patch in patches):
        return None if not write.is_forced or sets_version(trace, write) else False
    return sets_version(trace, write) or base_is_older(trace, write, patches)


def sets_version(trace: Trace, write: Write) -> bool:
    return any(
        isinstance(event, Mutation)
        and event.place.path[-1:] == ("ResourceVersion",)
        and event.place.thing in lineage(write.place.thing)
        for event in trace.events[: write.index]
    )


def base_is_older(trace: Trace, write: Write, patches: list[PatchOf]) -> bool:
    """Return whether the object was read again after the base was copied: the diff then has the resourceVersion."""
    for patch in patches:
        if patch.base is None or patch.base.thing.copy_of is None:
            continue
        born = patch.base.thing.born
        for event in trace.events[: write.index]:
            if isinstance(event, Read) and event.index >= born and event.place == write.place:
                return True
    return False


def check_dead(trace: Trace, region: Region, writes: list[Write]) -> Iterator[Finding]:
    if region.has_unknown_write:
        return
    answers = [can_conflict(trace, write) for write in writes]
    patches = [write for write in writes if write.verb in ("patch", "apply")]
    if any(answer is not False for answer in answers) or not patches:
        return
    write = patches[-1]
    finding = finding_at(BY_CODE["W301"], trace, write, region.line)
    finding.message = (
        f"{region.name or 'RetryOnConflict'} runs {write.text}, which sends no resourceVersion: the server never "
        "answers "
        f"Conflict, so the retry is unreachable and concurrent changes are overwritten"
    )
    finding.steps = [
        step(write, f"{region.name or 'RetryOnConflict'} retries on 409 Conflict", region.line),
        step(write, f"{write.text} sends a patch without a resourceVersion"),
    ]
    finding.subject = write.text
    yield finding


def check_defeated(trace: Trace, region: Region, writes: list[Write]) -> Iterator[Finding]:
    for write in writes:
        if can_conflict(trace, write) is not True:
            continue
        restored = restored_field(trace, region, write)
        if restored is None:
            continue
        change, field, confidence = restored
        if not is_own(trace, [change, write], write):
            continue
        finding = finding_at(BY_CODE["W302"], trace, write, region.line)
        finding.confidence = confidence
        if write.verb == "create-or-update":
            finding.level = Level.INFO  # the desired state of a child
        if field == "ResourceVersion":
            finding.message = (
                "the retry copies the newest resourceVersion to an object from before the conflict and sends that: "
                "every change that caused the conflict is overwritten"
            )
        else:
            finding.message = (
                f"the retry reads the {kind_name(write.kind)} again and then overwrites {field} with the value from "
                "before "
                f"the conflict: what others wrote there is lost"
            )
        finding.steps = [
            step(change, f"{region.name or 'RetryOnConflict'} starts", region.line),
            step(change, f"{field} gets the value that was computed outside of the retry"),
            step(write, f"{write.text} succeeds, because the version was just read"),
        ]
        finding.subject = f"{write.text} {field}"
        yield finding
        return


def restored_field(trace: Trace, region: Region, write: Write) -> tuple[Mutation, str, Confidence] | None:
    """Return the change that brings back a value from outside of the retry."""
    read_here = {e.place.thing for e in trace.events if isinstance(e, Read) and region in e.regions}
    first = next((e.index for e in trace.events if region in e.regions), 0)
    for event in trace.events:
        if event.index >= write.index:
            break
        if not isinstance(event, Mutation) or region not in event.regions:
            continue
        target = event.place.thing
        if event.place.path[-1:] == ("ResourceVersion",) and target is write.place.thing and target not in read_here:
            versions = [p for p in (*event.value.sources, *event.value.places()) if p.path[-1:] == ("ResourceVersion",)]
            if target.born <= first and versions and not keeps_others(trace, target, read_here, write):
                return event, "ResourceVersion", Confidence.MEDIUM
            continue
        if target is not write.place.thing or not any(thing in read_here for thing in lineage(target)):
            continue
        path = event.place.path[len(write.place.path) :]
        if not path or path[0] not in SHARED_FIELDS or ITEM in path or (len(path) > 1 and not event.path_is_list):
            continue
        if event.is_rmw or any(p.thing is target for p in (*event.value.sources, *event.value.places())):
            continue  # merged with what was read
        for source in event.value.places():
            origins = lineage(source.thing)
            if not is_same_field(path, source, target):
                continue
            if any(thing in read_here or is_inside(trace, region, thing, first) for thing in origins):
                continue
            confidence = Confidence.HIGH if path[0] in ("Annotations", "Labels", "Status") else Confidence.MEDIUM
            return event, ".".join(path), confidence
    return None


def is_same_field(path: tuple[str, ...], source: Place, target: Thing) -> bool:
    """Return whether a value is the same field of an older object, or a status that was computed as a whole."""
    if len(path) > 1:
        return source.path[-len(path) :] == path
    if source.path:
        kind, other = named(source.thing.type), named(target.type)
        is_other_kind = len(source.path) == 1 and kind is not None and other is not None and kind != other
        return source.path[-1] == path[0] and not is_other_kind
    if path[0] in ("Labels", "Annotations"):
        return False  # a map that was computed in full
    return not any(thing.origin == "literal" for thing in lineage(source.thing))


def keeps_others(trace: Trace, target: Thing, read_here: set[Thing], write: Write) -> bool:
    """Return whether other fields of the object that was read are merged into the one that is sent."""
    return any(
        isinstance(event, Mutation)
        and event.place.thing is target
        and event.place.path[-1:] != ("ResourceVersion",)
        and any(source.thing in read_here for source in event.value.sources)
        for event in trace.events[: write.index]
    )


def is_inside(trace: Trace, region: Region, thing: Thing, first: int) -> bool:
    """Return whether a thing came into being inside of the retry."""
    return thing.born > first and thing.copy_of is None and thing.origin not in ("param", "receiver")


def check_reads(trace: Trace, region: Region, writes: list[Write]) -> Iterator[Finding]:
    locked = [write for write in writes if can_conflict(trace, write) is True and write.verb != "create-or-update"]
    if not locked or region.has_unknown_write:
        return
    write = locked[-1]
    events = [event for event in trace.events if region in event.regions]
    reads = [event for event in events if isinstance(event, Read)]
    if not reads:
        if any(isinstance(event, Invocation) for event in events) or region.has_unknown_call:
            return
        if any(isinstance(e, Read) and e.index > write.index for e in trace.events):
            return
        finding = finding_at(BY_CODE["W303"], trace, write, region.line)
        finding.message = (
            f"the retry sends the same {kind_name(write.kind)} again: after a conflict every attempt has the same old "
            f"resourceVersion and conflicts again"
        )
        finding.confidence = Confidence.MEDIUM
        finding.steps = [step(write, f"{write.text} is retried without a read", write.site[1])]
        finding.subject = write.text
        yield finding
        return
    same = [read for read in reads if read.place.thing in lineage(write.place.thing)]
    if same and not any(read.is_live for read in same):
        finding = finding_at(BY_CODE["W304"], trace, write, region.line)
        finding.message = (
            "the retry reads the object from the cache, which may still hold the version that conflicted: the "
            "retries can "
            "be used up before the cache catches up"
        )
        finding.confidence = Confidence.MEDIUM
        finding.steps = [step(same[0], f"{same[0].text} reads from the cache"), step(write, f"{write.text} is locked")]
        finding.subject = write.text
        yield finding
