"""W104, W206, W207, W208 and W802: full updates of objects that were read."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.tools.lint.analysis.history import history
from fairlead.tools.lint.analysis.places import lineage
from fairlead.tools.lint.analysis.program import Program
from fairlead.tools.lint.analysis.values import Mutation, Read, Trace, Write
from fairlead.tools.lint.findings import Confidence, Finding
from fairlead.tools.lint.rules.steps import finding_at, is_live, is_own, is_written_here, kind_name, step
from fairlead.tools.lint.rules.table import BY_CODE


def check(program: Program, trace: Trace) -> Iterator[Finding]:
    for write in trace.events:
        if not isinstance(write, Write):
            continue
        if write.verb in ("create-or-update", "create-or-patch") and is_written_here(trace, write):
            yield child_update(trace, write, f"{write.text} reads the object from the cache and replaces it")
        elif write.verb == "update" and not write.is_status:
            yield from check_update(program, trace, write)
        elif write.verb in ("update", "patch") and write.is_status and is_written_here(trace, write):
            yield from check_unchanged(trace, write)
    yield from check_deleting(trace)


def check_update(program: Program, trace: Trace, write: Write) -> Iterator[Finding]:
    changes = history(trace, write.place, write)
    fields = {change.place.path[len(write.place.path) :][:1] for change in changes}
    if ("Finalizers",) in fields and not is_live(trace, write):
        finalizer = next(c for c in changes if c.place.path[len(write.place.path) :][:1] == ("Finalizers",))
        if is_own(trace, [finalizer, write], write):
            finding = finding_at(BY_CODE["W206"], trace, write)
            finding.message = (
                f"a finalizer of a cached {kind_name(write.kind)} is written by a full update: it is locked, so a "
                "stale "
                f"cache means a conflict and a retry, never a lost finalizer"
            )
            finding.confidence = Confidence.MEDIUM
            finding.steps = [
                step(finalizer, "the finalizers change"),
                step(write, f"{write.text} sends the whole object"),
            ]
            finding.subject = write.text
            yield finding
    yield from check_user_spec(program, trace, write, changes)
    if not is_written_here(trace, write) or write.is_typed_client:
        return
    is_primary = program.is_reconciled(write.kind)
    others = fields - {("Finalizers",), ("ResourceVersion",)}
    if was_read_from_cache(trace, write) and others and not is_primary:
        yield child_update(trace, write, "the object is read from the cache, changed and replaced")
    if others and not is_primary:
        yield from check_unchanged(trace, write)


def was_read_from_cache(trace: Trace, write: Write) -> bool:
    things = lineage(write.place.thing)
    return any(
        isinstance(event, Read) and event.place.thing in things and not event.is_live
        for event in trace.events[: write.index]
    )


def child_update(trace: Trace, write: Write, how: str) -> Finding:
    finding = finding_at(BY_CODE["W104"], trace, write)
    finding.message = (
        f"a {kind_name(write.kind)} is read from the cache, changed and replaced: another writer or a stale cache "
        "means a "
        f"conflict and a retry with backoff"
    )
    finding.confidence = Confidence.MEDIUM
    finding.steps = [step(write, how)]
    finding.subject = write.text
    return finding


def check_user_spec(program: Program, trace: Trace, write: Write, changes: list[Mutation]) -> Iterator[Finding]:
    """W207: the spec of a resource that users write is changed by a full update."""
    if not program.is_reconciled(write.kind) or program.is_created(write.kind):
        return
    if "webhook" in trace.decl.file.path or "conversion" in trace.decl.file.path:
        return
    for change in changes:
        path = change.place.path[len(write.place.path) :]
        if path[:1] == ("Spec",) and len(path) > 1 and is_own(trace, [change, write], write):
            finding = finding_at(BY_CODE["W207"], trace, write)
            finding.message = (
                f"{kind_name(write.kind)} {'.'.join(path)} is changed and the whole object is updated: the "
                "controller now "
                f"owns that field, and the next server-side apply of the user (Helm 4, GitOps) fails with a conflict"
            )
            finding.confidence = Confidence.MEDIUM
            finding.steps = [
                step(change, f"{'.'.join(path)} changes"),
                step(write, f"{write.text} sends the whole object"),
            ]
            finding.subject = f"{write.text} {'.'.join(path)}"
            yield finding
            return


def check_unchanged(trace: Trace, write: Write) -> Iterator[Finding]:
    """W802: no condition asks whether something changed."""
    if any(arm.compares for arm in write.arms) or any(
        fact.kind in ("changed", "failed", "deleting") for fact in write.facts
    ):
        return
    if write.verb == "patch" and not any(patch.is_locked for patch in write.patches):
        return  # an unlocked merge patch without changes is empty
    if any(change.is_remove for change in history(trace, write.place, write)):
        return
    finding = finding_at(BY_CODE["W802"], trace, write)
    finding.message = (
        f"the {kind_name(write.kind)} is written on every pass, also if nothing changed: each pass costs a request, "
        "and a "
        f"conflict if the cache is stale"
    )
    finding.confidence = Confidence.LOW
    finding.steps = [step(write, f"{write.text} is not guarded by a comparison")]
    finding.subject = write.text
    yield finding


def check_deleting(trace: Trace) -> Iterator[Finding]:
    """W208: a finalizer is added where the object is known to be deleted."""
    for change in trace.events:
        if not isinstance(change, Mutation) or change.helper != "AddFinalizer" or not is_written_here(trace, change):
            continue
        if any(
            fact.kind == "deleting" and getattr(fact.subject, "thing", None) is change.place.thing
            for fact in change.facts
        ):
            finding = finding_at(BY_CODE["W208"], trace, change)
            finding.message = (
                "a finalizer is added although the object is being deleted: the server rejects it with 422"
            )
            finding.steps = [step(change, "AddFinalizer while the deletion timestamp is set")]
            finding.subject = "AddFinalizer"
            yield finding
