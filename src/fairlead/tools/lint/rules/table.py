"""The table of rules. A rule's code groups it: 1 creates and updates, 2 patches and status, 3 retries, 4 caches, …"""

from __future__ import annotations

import re

from fairlead.api.errors import UserError
from fairlead.hazards import Severity
from fairlead.tools.lint.findings import Level, Rule
from fairlead.tools.lint.python_rules.table import PYTHON_RULES

CORRUPTS, STALLS, NOISE = Severity.CORRUPTS, Severity.STALLS, Severity.NOISE
WARN, INFO = Level.WARN, Level.INFO

ADD_LOCK = "Keep the patch and add the lock: client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})."

SUPPRESSION_WITHOUT_REASON = Rule(
    "W001", "suppression-without-reason", "A comment that silences a finding has no reason", NOISE, WARN, "",
    "Add the reason: //fairlead:ignore W201 -- the only writer of this list.",
)  # fmt: skip
SUPPRESSION_UNUSED = Rule(
    "W002", "suppression-unused", "A comment silences nothing", NOISE, INFO, "", "Remove the comment."
)

RULES: tuple[Rule, ...] = (
    SUPPRESSION_WITHOUT_REASON,
    SUPPRESSION_UNUSED,
    Rule("W101", "create-exists-blind-update", "After AlreadyExists the object is replaced without a resourceVersion",
         CORRUPTS, WARN, "put-without-resource-version",
         "Read the existing object, change the fields that you own, and update that object; or use server-side apply."),
    Rule("W102", "create-exists-rv-copied", "The resourceVersion is copied only to get past the lock",
         CORRUPTS, WARN, "fresh-version-on-old-values",
         "Change the fields that you own in the object that was read, and update that; or use server-side apply."),
    Rule("W103", "get-then-blind-update", "An object is read, and another one without a resourceVersion is sent",
         CORRUPTS, INFO, "put-without-resource-version",
         "Update the object that was read, or set its resourceVersion on the object that is sent."),
    Rule("W104", "create-or-update-rmw", "A child is read from the cache, changed and replaced",
         STALLS, INFO, "update-from-stale-copy",
         "Use server-side apply with the fields that you own: it does not depend on what was read."),
    Rule("W105", "create-exists-skip", "Create, and skip if the object exists",
         NOISE, INFO, "create-over-terminating-object",
         "Check that the existing object has your owner reference and is not being deleted, before you rely on it."),
    Rule("W106", "already-exists-tested-as-conflict", "The error of a Create is tested with IsConflict",
         STALLS, INFO, "create-over-terminating-object",
         "A Create of an existing name fails with AlreadyExists: test with apierrors.IsAlreadyExists.",
         why="Both errors have status 409. A Create never fails with Conflict, so the branch for it never runs."),
    Rule("W201", "finalizers-unlocked-merge-patch", "Finalizers are replaced by a merge patch without a lock",
         CORRUPTS, WARN, "finalizer-merge-patch-unlocked", ADD_LOCK),
    Rule("W202", "ownerrefs-unlocked-merge-patch", "Owner references are replaced by a merge patch without a lock",
         CORRUPTS, WARN, "patch-without-precondition", ADD_LOCK,
         why="A merge patch replaces the whole list: references that others added since the read are removed."),
    Rule("W203", "list-rmw-unlocked-merge-patch", "A list that was read is replaced by a merge patch without a lock",
         CORRUPTS, WARN, "conditions-merge-patch-unlocked", ADD_LOCK),
    Rule("W204", "status-unlocked-and-decides", "A status field that decides is written without a lock",
         CORRUPTS, WARN, "patch-without-precondition", ADD_LOCK),
    Rule("W205", "status-update-from-cache", "The status of a cached copy is updated",
         STALLS, INFO, "update-from-stale-copy",
         "The update is locked, so it can only fail. Treat the conflict as a reason to requeue, or apply the status."),
    Rule("W206", "finalizer-update-from-cache", "A finalizer is persisted by an update of a cached copy",
         STALLS, INFO, "update-from-stale-copy",
         "The update is locked, so it can only fail. A locked patch of the finalizers conflicts less often."),
    Rule("W207", "user-spec-full-update", "The spec of a user's resource is changed by a full update",
         CORRUPTS, WARN, "update-takes-applied-field",
         "Do not write the spec of a resource that users apply. Keep computed values in status, or use a webhook."),
    Rule("W208", "finalizer-added-while-deleting", "A finalizer is added to an object that is being deleted",
         STALLS, INFO, "finalizer-on-deleting-object",
         "Check obj.GetDeletionTimestamp().IsZero() before you add a finalizer."),
    Rule("W301", "dead-retry-on-conflict", "RetryOnConflict runs a write that cannot conflict",
         CORRUPTS, WARN, "patch-without-precondition",
         ADD_LOCK + " If lost updates are acceptable, remove the retry.",
         why="The retry waits for a conflict that the server never returns."),
    Rule("W302", "retry-lock-defeated", "A retry writes values from before the conflict",
         CORRUPTS, WARN, "fresh-version-on-old-values",
         "Compute the change inside the retry, from the object that was read there."),
    Rule("W303", "retry-without-reread", "A retry sends the same object again",
         STALLS, INFO, "update-from-stale-copy",
         "Read the object inside the retry. Without that, every attempt has the same resourceVersion."),
    Rule("W304", "retry-cached-reread", "A retry reads the object from the cache",
         NOISE, INFO, "update-from-stale-copy",
         "Read with the API reader inside the retry: the cache may still hold the version that conflicted."),
    Rule("W401", "cached-object-mutation", "An object of a shared cache is changed without a copy",
         CORRUPTS, WARN, "cached-object-changed",
         "Call DeepCopy before you change an object of a lister, an indexer or an event."),
    Rule("W501", "get-error-as-absent", "Any error of a Get is taken for absence",
         CORRUPTS, INFO, "failed-read-taken-for-absence",
         "Test with apierrors.IsNotFound, and return every other error."),
    Rule("W502", "status-write-error-ignored", "The error of a status write is dropped",
         STALLS, INFO, "update-from-stale-copy",
         "Return the error, or join it with the one that is returned, so that the write is retried.",
         why="A status write fails with a conflict in normal operation. Without a retry the status stays old."),
    Rule("W503", "error-with-requeue-after", "An error is returned together with RequeueAfter",
         NOISE, INFO, "immutable-field-retried",
         "controller-runtime ignores the result if there is an error: return one of the two.",
         why="The author wants to wait after a failure that no retry repairs. The backoff starts at milliseconds."),
    Rule("W602", "apply-from-read-object", "An apply payload is built from an object that was read",
         CORRUPTS, INFO, "apply-from-stale-read",
         "Build the payload from nothing, with the fields that you own."),
    Rule("W603", "forced-apply-of-read-values", "A forced apply sends values that were only read",
         CORRUPTS, INFO, "forced-apply-overwrites-other-writers",
         "Leave out the fields that others own. A forced apply takes them over, with a value that may be old."),
    Rule("W701", "delete-without-precondition", "A delete has no precondition",
         CORRUPTS, INFO, "delete-without-uid",
         "Add client.Preconditions{UID: ptr.To(obj.GetUID())}.", is_default=False),
    Rule("W802", "unconditional-update", "An object is written although nothing may have changed",
         NOISE, INFO, "repeated-apply-sent",
         "Compare with the object that was read, and skip the request if nothing changed.",
         why="An equal Update costs a request too, and one with a new time in it starts the next reconcile."),
)  # fmt: skip

BY_CODE = {rule.code: rule for rule in RULES}


def find_rule(name: str) -> Rule:
    """Return the rule with that id, code or name. Raise UserError if there is none."""
    for rule in (*RULES, *PYTHON_RULES.values()):
        if name in (rule.id, rule.name) or name.upper() == rule.code:
            return rule
    raise UserError(f"there is no rule {name!r}: the rules are {', '.join(rule.id for rule in RULES)}")


def select_rules(selected: tuple[str, ...]) -> tuple[Rule, ...]:
    """Return the rules that are named by id, code, name, the start of a code, a level, or "all".

    Without names: the default rules. Raise UserError if a name matches no rule.
    """
    if not selected:
        return tuple(rule for rule in RULES if rule.is_default)
    chosen: dict[str, Rule] = {}
    for name in (part.strip() for names in selected for part in names.split(",")):
        found = [
            r
            for r in RULES
            if name in ("all", r.level) or (re.fullmatch(r"W\d+", name.upper()) and r.code.startswith(name.upper()))
        ]
        for rule in found or [find_rule(name)]:
            chosen[rule.id] = rule
    return tuple(chosen.values())
