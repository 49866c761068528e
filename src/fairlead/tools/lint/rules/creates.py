"""W101, W102, W103, W105 and W106: what happens after a Create fails because the object exists."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.hazards import Severity
from fairlead.tools.lint.analysis.history import reaches, same_object
from fairlead.tools.lint.analysis.places import lineage
from fairlead.tools.lint.analysis.program import Program
from fairlead.tools.lint.analysis.values import ErrorOf, Event, Mutation, Overwrite, Read, Trace, Write
from fairlead.tools.lint.findings import Confidence, Finding, Level
from fairlead.tools.lint.golang.types import named
from fairlead.tools.lint.rules.steps import finding_at, is_own, is_written_here, kind_name, step
from fairlead.tools.lint.rules.table import BY_CODE

VERSION = "ResourceVersion"


def check(program: Program, trace: Trace) -> Iterator[Finding]:
    for event in trace.events:
        if isinstance(event, Write) and event.verb == "update" and not event.is_status:
            yield from check_update(program, trace, event)
    yield from check_errors(trace)


def check_update(program: Program, trace: Trace, update: Write) -> Iterator[Finding]:
    create = failed_create(update)
    version = version_source(trace, update)
    if create is not None and is_own(trace, [create, update], update):
        if version == "none":
            yield blind_update(program, trace, create, update)
        elif version == "copied":
            yield copied_version(trace, update, create)
        return
    if create is None and is_written_here(trace, update) and is_constructed(trace, update):
        read = earlier_read(trace, update)
        if read is not None and version == "copied":
            finding = copied_version(trace, update, None)
            finding.level, finding.confidence = Level.INFO, Confidence.MEDIUM
            yield finding
        elif read is not None and version == "none":
            yield unrelated_update(trace, read, update)


def failed_create(update: Write) -> Write | None:
    """Return the Create of the same object that failed with AlreadyExists before an Update."""
    for fact in reversed(update.facts):
        subject = fact.subject
        if fact.kind in ("exists", "ok-or-exists") and isinstance(subject, Write) and subject.verb == "create":
            if subject.place == update.place or update.place.thing in lineage(subject.place.thing):
                return subject
            if subject.place.thing in lineage(update.place.thing):
                return subject
    return None


def version_source(trace: Trace, update: Write) -> str:
    """Return where the resourceVersion of the sent object comes from: none, copied from another object, or read."""
    result = "none"
    things = lineage(update.place.thing)
    if any(thing.origin in ("read", "lister", "event") for thing in things):
        result = "read"
    for event in trace.events:
        if event.index >= update.index:
            break
        if not same_object(event.place, update.place) or not reaches(event, update):
            continue
        if isinstance(event, Read | Overwrite) or (
            isinstance(event, Write) and event.verb in ("update", "patch") and event is not update
        ):
            result = "read"
        elif isinstance(event, Mutation) and event.place.thing is update.place.thing:
            path = event.place.path[len(update.place.path) :]
            if path == (VERSION,):
                result = "copied" if not is_cleared(event) else "none"
            elif path in (("ObjectMeta",), ()):
                result = "read"
    return result


def is_cleared(event: Mutation) -> bool:
    return event.value.texts == ("",)


def is_constructed(trace: Trace, update: Write) -> bool:
    """Return whether the sent object was built in this function, and not read."""
    return all(thing.origin in ("literal", "result", "copy") for thing in lineage(update.place.thing)) and any(
        thing.origin in ("literal", "result") for thing in lineage(update.place.thing)
    )


def earlier_read(trace: Trace, update: Write) -> Read | None:
    """Return the read of another object of the same kind."""
    kind = named(update.kind)
    if kind is None:
        return None
    for event in reversed(trace.events[: update.index]):
        if not isinstance(event, Read) or event.is_list or not is_written_here(trace, event):
            continue
        other = named(event.place.thing.type)
        if (
            other == kind
            and not event.place.path
            and not same_object(event.place, update.place)
            and reaches(event, update)
        ):
            return event
    return None


def blind_update(program: Program, trace: Trace, create: Write, update: Write) -> Finding:
    kind = named(update.kind)
    finding = finding_at(BY_CODE["W101"], trace, update)
    name = kind_name(update.kind)
    if kind is not None and program.tree.is_api_object(update.kind):
        finding.severity = Severity.STALLS
        finding.message = (
            f"after AlreadyExists the {name} is updated without a resourceVersion. The server rejects such an update "
            "of a "
            f"custom resource: metadata.resourceVersion: must be specified for an update"
        )
    else:
        finding.message = (
            f"after AlreadyExists the {name} is replaced without a resourceVersion: labels, annotations, finalizers "
            "and "
            f"fields that others set are lost without an error"
        )
        is_known = kind is not None and program.models.allows_unconditional_update(kind.path, kind.name)
        finding.confidence = Confidence.HIGH if is_known else Confidence.MEDIUM
    finding.steps = [
        step(create, f"{create.text} fails with AlreadyExists"),
        step(update, f"{update.text} sends the same object, which was never read and has no resourceVersion"),
    ]
    finding.subject = f"{create.text} {update.text}"
    return finding


def copied_version(trace: Trace, update: Write, create: Write | None) -> Finding:
    finding = finding_at(BY_CODE["W102"], trace, update)
    finding.message = (
        f"the resourceVersion of the existing {kind_name(update.kind)} is copied to an object that was built from "
        "nothing: "
        f"the update replaces everything that others wrote, and the lock cannot notice it"
    )
    finding.confidence = Confidence.MEDIUM
    if create is not None:
        finding.steps.append(step(create, f"{create.text} fails with AlreadyExists"))
    copied = next(
        (
            e
            for e in reversed(trace.events[: update.index])
            if isinstance(e, Mutation) and e.place.path[-1:] == (VERSION,)
        ),
        None,
    )
    if copied is not None:
        finding.steps.append(step(copied, "the resourceVersion is copied from the existing object"))
    finding.steps.append(step(update, f"{update.text} replaces the existing object"))
    finding.subject = update.text
    return finding


def unrelated_update(trace: Trace, read: Read, update: Write) -> Finding:
    finding = finding_at(BY_CODE["W103"], trace, update)
    finding.message = (
        f"a {kind_name(update.kind)} is read, and another one without a resourceVersion replaces it: what "
        "others wrote is lost"
    )
    finding.confidence = Confidence.MEDIUM
    finding.steps = [
        step(read, f"{read.text} reads the existing object"),
        step(update, f"{update.text} sends an object that has no resourceVersion"),
    ]
    finding.subject = update.text
    return finding


def check_errors(trace: Trace) -> Iterator[Finding]:
    """Check how the error of a Create is tested."""
    for name, error, line, _ in trace.checks:
        events: list[Event] = [what.event for what in error.meanings() if isinstance(what, ErrorOf)]
        creates = [e for e in events if isinstance(e, Write) and e.verb == "create"]
        if not creates or len(creates) != len(events) or not is_written_here(trace, creates[0]):
            continue
        create = creates[0]
        if name == "IsConflict":
            finding = finding_at(BY_CODE["W106"], trace, create, line)
            finding.message = (
                "the error of a Create is tested with IsConflict, but a Create of an existing name fails with "
                "AlreadyExists: this branch is never taken"
            )
            finding.steps = [
                step(create, f"{create.text} can fail with AlreadyExists"),
                step(create, "IsConflict is false", line),
            ]
            finding.subject = create.text
            yield finding
        elif name == "IsAlreadyExists" and is_skipped(trace, create):
            finding = finding_at(BY_CODE["W105"], trace, create, line)
            finding.message = (
                f"AlreadyExists is taken for success: the existing {kind_name(create.kind)} may belong to somebody "
                "else, "
                f"be out of date, or be about to disappear"
            )
            finding.confidence = Confidence.LOW
            finding.steps = [step(create, create.text), step(create, "AlreadyExists is ignored", line)]
            finding.subject = create.text
            yield finding


def is_skipped(trace: Trace, create: Write) -> bool:
    """Return whether nothing reads or writes the object after AlreadyExists."""
    return not any(
        event.index > create.index
        and isinstance(event, Read | Write)
        and any(fact.kind == "exists" and fact.subject is create for fact in event.facts)
        for event in trace.events
    )
