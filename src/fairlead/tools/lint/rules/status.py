"""W204, W205 and W502: writes of status."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.tools.lint.analysis.history import history, is_refreshed, pending, was_persisted
from fairlead.tools.lint.analysis.program import Program
from fairlead.tools.lint.analysis.values import ITEM, Mutation, PatchOf, Trace, Write
from fairlead.tools.lint.findings import Confidence, Finding, Level, Step
from fairlead.tools.lint.golang.types import ListOf, MapOf
from fairlead.tools.lint.rules.steps import finding_at, is_live, is_own, is_written_here, kind_name, step
from fairlead.tools.lint.rules.table import BY_CODE


def check_deciding(program: Program, trace: Trace) -> Iterator[Finding]:
    """W204: an unlocked patch of a status field that a condition reads before something else is written."""
    for write in trace.events:
        if not isinstance(write, Write) or not write.is_status or write.verb != "patch":
            continue
        for patch in write.patches:
            if patch.kind != "merge" or patch.is_locked:
                continue
            for is_strict in (True, False):
                found = deciding_change(program, trace, write, patch, is_strict)
                if found is not None:
                    yield deciding(trace, write, *found, is_strict)
                    break
            else:
                continue
            break


def deciding_change(
    program: Program, trace: Trace, write: Write, patch: PatchOf, is_strict: bool
) -> tuple[Mutation, tuple[str, int]] | None:
    if patch.base is not None:
        if is_refreshed(trace, write, patch):
            return None
        target = patch.modified or write.place
        if patch.modified is not None:
            known = set(history(trace, patch.base, write))
            changes = [m for m in history(trace, target, write) if m not in known]
        else:
            changes = pending(trace, write, patch.base)
    elif patch.modified is not None:
        changes = history(trace, patch.modified, write)
    else:
        return None
    for change in changes:
        if ITEM in change.place.path or is_collection(program, change) or was_persisted(trace, change, write):
            continue
        if not is_own(trace, [change, write], write):
            continue
        gate = program.decided_by(change, is_strict)
        if gate is not None:
            return change, gate
    return None


def is_collection(program: Program, change: Mutation) -> bool:
    """Return whether a list or a map changes: W203 judges lists, and maps are merged."""
    return bool(change.path_is_list) or isinstance(program.tree.underlying(change.value_type), MapOf | ListOf)


def deciding(trace: Trace, write: Write, change: Mutation, gate: tuple[str, int], is_strict: bool) -> Finding:
    finding = finding_at(BY_CODE["W204"], trace, write, write.site[1])
    finding.file = write.site[0].path
    field = ".".join(change.place.path)
    finding.message = (
        f"{kind_name(write.kind)} {field} is written by a merge patch without a resourceVersion, and "
        f"{gate[0]}:{gate[1]} "
        f"decides by it: two passes that read the same old value both win, and the second overwrites the first"
    )
    finding.confidence = Confidence.MEDIUM if is_strict else Confidence.LOW
    finding.level = Level.WARN if is_strict else Level.INFO
    finding.steps = [
        step(change, f"{field} is set"),
        step(write, f"{write.text} sends it without a resourceVersion"),
    ]
    finding.steps.append(
        Step(gate[0], gate[1], f"a condition reads {change.place.path[-1]} before something is written")
    )
    finding.subject = f"{write.text} {field}"
    return finding


def check_cached(program: Program, trace: Trace) -> Iterator[Finding]:
    """W205: Status().Update of an object that was not read from the server."""
    for write in trace.events:
        if (
            not isinstance(write, Write)
            or not write.is_status
            or write.verb != "update"
            or not is_written_here(trace, write)
        ):
            continue
        if is_live(trace, write) or write.is_typed_client:
            continue
        finding = finding_at(BY_CODE["W205"], trace, write)
        finding.message = (
            f"the status of a cached {kind_name(write.kind)} is updated: the update is locked, so a stale cache "
            "means a "
            f"conflict and a retry with backoff, never a lost update"
        )
        finding.confidence = Confidence.MEDIUM
        finding.steps = [step(write, f"{write.text} sends the resourceVersion of the cached copy")]
        finding.subject = write.text
        yield finding


def check_dropped(program: Program, trace: Trace) -> Iterator[Finding]:
    """W502: nobody looks at the error of a status write."""
    for write in trace.events:
        if not isinstance(write, Write) or not write.is_status or not is_written_here(trace, write):
            continue
        if write.error_is_dropped:
            finding = finding_at(BY_CODE["W502"], trace, write)
            finding.message = (
                f"the error of this status write is dropped: if it fails, the status of the {kind_name(write.kind)} "
                "stays "
                f"wrong until something else happens"
            )
            finding.confidence = Confidence.LOW
            finding.steps = [step(write, f"{write.text}: the error is not returned")]
            finding.subject = write.text
            yield finding
