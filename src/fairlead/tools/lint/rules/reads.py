"""W501 and W503: errors that are taken for something else."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.tools.lint.analysis.program import Program
from fairlead.tools.lint.analysis.values import ErrorOf, Nothing, Read, Trace, Value, Write
from fairlead.tools.lint.findings import Confidence, Finding, Step
from fairlead.tools.lint.rules.steps import finding_at, is_written_here, kind_name, step
from fairlead.tools.lint.rules.table import BY_CODE


def check_absence(program: Program, trace: Trace) -> Iterator[Finding]:
    """W501: a Create or Delete after any error of a Get."""
    for write in trace.events:
        if not isinstance(write, Write) or write.verb not in ("create", "delete") or not is_written_here(trace, write):
            continue
        failed = [fact.subject for fact in write.facts if fact.kind == "failed" and isinstance(fact.subject, Read)]
        known = {id(fact.subject) for fact in write.facts if fact.kind in ("not-found", "not-not-found")}
        for read in failed:
            if id(read) in known or read.is_list:
                continue
            finding = finding_at(BY_CODE["W501"], trace, write, read.line)
            verb = "created" if write.verb == "create" else "deleted"
            finding.message = (
                f"a {kind_name(write.kind)} is {verb} after any error of {read.text or 'the read'}: a timeout or a "
                "missing "
                f"right is taken for absence"
            )
            finding.confidence = Confidence.MEDIUM
            finding.steps = [
                step(read, "the read can fail for many reasons"),
                step(write, f"{write.text} runs after each of them"),
            ]
            finding.subject = write.text
            yield finding
            break


def check_requeue(program: Program, trace: Trace) -> Iterator[Finding]:
    """W503: an error together with RequeueAfter."""
    for line, values, facts in trace.returns_with:
        if len(values) != 2 or values[0].place is None:
            continue
        literal, error = values[0].place.thing, values[1]
        has_delay = any(
            place.thing is literal and place.path[-1:] == ("RequeueAfter",) for place in trace.literal_fields
        )
        if has_delay and is_error(error, facts):
            finding = Finding(BY_CODE["W503"], trace.decl.file.path, line, "", level=BY_CODE["W503"].level)
            finding.message = (
                "an error is returned together with RequeueAfter: controller-runtime uses its backoff and ignores "
                "the delay"
            )
            finding.confidence = Confidence.MEDIUM
            finding.steps = [Step(trace.decl.file.path, line, "both results are set")]
            finding.function = trace.decl.title
            yield finding


def is_error(value: Value, facts: tuple[object, ...]) -> bool:
    if isinstance(value.what, Nothing):
        return False
    for what in value.meanings():
        if isinstance(what, ErrorOf):
            return any(getattr(f, "kind", "") == "failed" and getattr(f, "subject", None) is what.event for f in facts)
    return False
