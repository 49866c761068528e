"""W201, W202 and W203: a list that was read, changed and sent back by a merge patch that has no lock."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.tools.lint.analysis.history import (
    history,
    is_refreshed,
    pending,
    relative,
    resets_list,
    was_persisted,
)
from fairlead.tools.lint.analysis.places import list_path
from fairlead.tools.lint.analysis.program import Program
from fairlead.tools.lint.analysis.values import ITEM, Mutation, PatchOf, Trace, Write
from fairlead.tools.lint.findings import Confidence, Finding, Level, Replacement, Rule, Step
from fairlead.tools.lint.golang.syntax import Call
from fairlead.tools.lint.rules.steps import is_own, kind_name, step
from fairlead.tools.lint.rules.table import BY_CODE

LISTS = {"Finalizers": BY_CODE["W201"], "OwnerReferences": BY_CODE["W202"]}
OTHER_LIST = BY_CODE["W203"]
RAW_KEYS = {
    "finalizers": ("Finalizers",),
    "ownerReferences": ("OwnerReferences",),
    "conditions": ("Status", "Conditions"),
}


def check(program: Program, trace: Trace) -> Iterator[Finding]:
    for event in trace.events:
        if not isinstance(event, Write) or event.verb not in ("patch", "create-or-patch"):
            continue
        for patch in event.patches:
            if patch.kind == "merge" and not patch.is_locked:
                found = list(check_patch(program, trace, event, patch))
                yield from found
                if found:
                    break


def check_patch(program: Program, trace: Trace, write: Write, patch: PatchOf) -> Iterator[Finding]:
    changes: dict[tuple[str, ...], Mutation] = {}
    if patch.base is not None:
        if patch.modified is not None and patch.modified != write.place:
            changed = [m for m in pending_between(trace, write, patch) if is_hazard(trace, m, write)]
        else:
            changed = [m for m in pending(trace, write, patch.base) if is_hazard(trace, m, write)]
        if is_refreshed(trace, write, patch):
            return
        for change in changed:
            changes.setdefault(list_path(relative(change, write.place)), change)
    else:
        yield from check_raw(program, trace, write, patch)
        return
    by_rule: dict[str, list[tuple[tuple[str, ...], Mutation]]] = {}
    for path, change in changes.items():
        by_rule.setdefault(rule_for(path).code, []).append((path, change))
    for code in sorted(by_rule):
        path, change = by_rule[code][0]
        if not is_own(trace, [change, write], write):
            continue
        yield report(trace, write, patch, path, change, BY_CODE[code])


def pending_between(trace: Trace, write: Write, patch: PatchOf) -> list[Mutation]:
    assert patch.base is not None
    assert patch.modified is not None
    known = set(history(trace, patch.base, write))
    return [m for m in history(trace, patch.modified, write) if m not in known]


def rule_for(path: tuple[str, ...]) -> Rule:
    return LISTS.get(path[0], OTHER_LIST) if path else OTHER_LIST


def is_hazard(trace: Trace, change: Mutation, write: Write) -> bool:
    """Return whether a change replaces a list by one that was computed from what was read."""
    if not change.path_is_list:
        return False
    path = relative(change, write.place)
    if write.is_status and path[:1] != ("Status",):
        return False  # the status endpoint ignores everything else
    is_item_of_list = ITEM in change.place.path
    if not (change.is_rmw or change.is_append or is_item_of_list):
        return False
    if was_persisted(trace, change, write) or resets_list(trace, change, write):
        return False
    return not is_new_object(change)


def is_new_object(change: Mutation) -> bool:
    """Return whether the object was only built in memory: its list has nobody else's items."""
    return change.place.thing.origin == "literal" and change.place.thing.copy_of is None


def check_raw(program: Program, trace: Trace, write: Write, patch: PatchOf) -> Iterator[Finding]:
    """Check a merge patch that is written by hand."""
    text = " ".join(patch.texts)
    for key, path in RAW_KEYS.items():
        if f'"{key}"' not in text and key not in patch.texts:
            continue
        source = next((s for s in patch.sources if s.path[-1:] == path[-1:]), None)
        if source is None:
            continue
        rule = rule_for(path)
        finding = Finding(rule, write.site[0].path, write.line, "", confidence=Confidence.MEDIUM, level=rule.level)
        finding.message = (
            f"this merge patch replaces {key} with a list computed from the object that was read, and carries no "
            f"resourceVersion: entries that others added meanwhile are lost"
        )
        finding.steps = [step(write, f"{write.text} sends {key} without metadata.resourceVersion")]
        finding.fix = "Add metadata.resourceVersion of the object that was read to the patch."
        yield finding


def report(trace: Trace, write: Write, patch: PatchOf, path: tuple[str, ...], change: Mutation, rule: Rule) -> Finding:
    field = ".".join(path)
    kind = kind_name(write.kind)
    what = field if kind == "object" else f"{kind}.{field}"
    finding = Finding(rule, trace.decl.file.path, write.line, "", level=rule.level)
    finding.message = (
        f"{what} is read, changed and replaced by a merge patch without a resourceVersion: "
        f"an entry that another writer adds in between is lost without an error"
    )
    base = patch.base.thing if patch.base is not None else None
    if base is not None and base.line:
        path_of_base = base.file.path if base.file is not None else trace.decl.file.path
        finding.steps.append(Step(path_of_base, base.line, "the base of the patch is copied"))
    how = f"{change.helper} changes {field}" if change.helper else f"{field} gets a value computed from itself"
    finding.steps.append(step(change, how))
    finding.steps.append(step(write, f"{write.text} sends the whole list"))
    finding.steps.append(step(write, "client.MergeFrom without MergeFromWithOptimisticLock sends no resourceVersion"))
    finding.confidence = Confidence.HIGH if len(write.frames) == 1 else Confidence.MEDIUM
    if write.client_name == "patch helper":
        finding.fix = "Patch this list on its own, with client.MergeFromWithOptions and the optimistic lock."
        finding.confidence = Confidence.MEDIUM
    is_helpers_list = write.client_name == "patch helper" and path == ("Status", "Conditions")
    if write.verb == "create-or-patch" or is_helpers_list:
        finding.level = Level.INFO
        finding.confidence = Confidence.LOW
    if isinstance(patch.call, Call) and patch.file is not None and patch.function is not None:
        old = patch.function.text[patch.call.start : patch.call.end].decode("utf-8", "replace")
        inner = old[old.find("(") + 1 : old.rfind(")")].strip().rstrip(",")
        package = old.partition(".")[0] if "." in old.partition("(")[0] else ""
        prefix = f"{package}." if package else ""
        new = f"{prefix}MergeFromWithOptions({inner}, {prefix}MergeFromWithOptimisticLock{{}})"
        if "MergeFrom(" in old and "\n" not in inner:
            before = patch.function.text[: patch.call.start]
            line = patch.function.line + before.count(b"\n")
            column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
            finding.replacement = Replacement(patch.file.path, line, column, old, new)
    finding.function = trace.decl.title
    finding.subject = f"{write.text} {field}"
    return finding
