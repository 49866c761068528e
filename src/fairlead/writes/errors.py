"""The errors of the write functions. Each message names the object, the problem and the fix.

A reconcile function may catch these errors. Otherwise the runtime repeats the pass after a `retryable` error, and
reports any other error in a condition with the class name as its reason.
"""

from typing import Any


class WriteError(Exception):
    """The base class of errors for writes that would be unsafe, or that the server can never accept."""

    reason = "WriteError"
    """The reason of the condition."""

    retryable = False
    """Whether a retry on a fresh read may succeed without anyone's help."""

    hint = ""
    """What the operator's code can do about it. It goes to the log; `str()` is for people who only have kubectl."""


class ForeignObject(WriteError):
    """An object of that name exists and is not ours. Nothing was written.

    Choose another name, or delete the existing object.
    """

    reason = "ForeignObject"
    hint = "adopt=True takes over an object that has no controller"

    def __init__(self, target: str, holder: str) -> None:
        super().__init__(
            f"{target} already exists and {holder}: delete it if it is not needed, or choose another name for the new "
            "one"
        )


class ImmutableField(WriteError):
    """A write changes immutable fields of an existing object. Undo the change, or recreate the object."""

    reason = "ImmutableField"
    hint = "recreate=True deletes the object and creates it again"

    def __init__(self, target: str, causes: list[dict[str, Any]]) -> None:
        fields = ", ".join(sorted({str(cause.get("field") or "?") for cause in causes}))
        messages = "; ".join(dict.fromkeys(str(cause.get("message") or "") for cause in causes))
        super().__init__(
            f"{target} cannot change {fields} ({messages}): revert the change, or delete the object so that it is "
            "created again"
        )
        self.causes = causes


class DuplicatePayload(WriteError):
    """Two payloads are for the same child, so each would remove the fields that only the other sets. Combine them."""

    reason = "DuplicatePayload"

    def __init__(self, target: str) -> None:
        super().__init__(
            f"{target} is in two payloads, and each apply would remove the fields that only the other one sets: "
            "merge them into one payload"
        )


class ObjectDeleted(WriteError):
    """The object of the write no longer exists. Nothing was written or recreated. List or read the objects again."""

    reason = "ObjectDeleted"
    retryable = True

    def __init__(self, target: str, event: str = "was deleted") -> None:
        super().__init__(f"{target} {event}: read it again")


class ObjectReplaced(ObjectDeleted):
    """The object was deleted, and a new object has its name. Nothing was written. Read the new object first."""

    reason = "ObjectReplaced"

    def __init__(self, target: str) -> None:
        super().__init__(target, "was deleted and recreated by someone else")


class ObjectDeleting(ObjectDeleted):
    """The object is being deleted, so no finalizer or field may be added to it. Wait until it is removed."""

    reason = "ObjectDeleting"

    def __init__(self, target: str) -> None:
        super().__init__(target, "is being deleted")


class ObjectChanged(WriteError):
    """The object changed after it was read, and the write depends on its content. Read the object and decide again."""

    reason = "ObjectChanged"
    retryable = True

    def __init__(self, target: str) -> None:
        super().__init__(f"{target} changed since it was read: read it again, then decide again")


class StatusSuperseded(WriteError):
    """The stored status has a newer observedGeneration, so this status report was not written.

    The next pass reports on the newer generation.
    """

    reason = "StatusSuperseded"
    retryable = True

    def __init__(self, target: str, our_generation: int, stored_generation: int) -> None:
        super().__init__(
            f"{target}: the status already reports on generation {stored_generation}, and this report is about "
            f"generation {our_generation}: read the object again"
        )


class DecisionContention(WriteError):
    """Other writers changed the fields that a decision read, before each of its attempts to write.

    Read fewer fields in the decision function, or retry later.
    """

    reason = "DecisionContention"
    retryable = True

    def __init__(self, target: str, attempts: int) -> None:
        super().__init__(
            f"{target}: others changed the fields that this write depends on {attempts} times in a row: find out who "
            "writes them (kubectl get --show-managed-fields), or read fewer fields"
        )


class PatchTestMismatch(WriteError):
    """The server reports a failed JSON patch test, although every test passes on the object that it returns.

    This is not a conflict with another writer. Either the server encodes a value differently, or the patch does not
    fit the object.
    """

    reason = "PatchTestMismatch"

    def __init__(self, target: str, patch: list[dict[str, Any]]) -> None:
        paths = ", ".join(op["path"] for op in patch)
        super().__init__(
            f"{target}: the server rejects a JSON patch whose tests all pass on the live object ({paths}): please "
            "report this as a bug of fairlead"
        )
        self.patch = patch


class ImpureDecision(WriteError):
    """A decision function depends on something other than the object, such as the time or a random id.

    Compute such values before the decision.
    """

    reason = "ImpureDecision"

    def __init__(
        self,
        name: str,
        problem: str,
        remedy: str = "compute times, ids and counters before the decision and let the function capture them",
    ) -> None:
        super().__init__(f"{name} is not pure: {problem}; {remedy}")


class UndeclaredField(WriteError):
    """A decision function changed a field that is not listed in `only`. Add it to `only`, or do not change it."""

    reason = "UndeclaredField"

    def __init__(self, target: str, path: str, only: list[str]) -> None:
        super().__init__(
            f"{target}: the decision changes {path}, but only= allows {', '.join(only)}: add the field to only="
        )


class ReadValueInPayload(WriteError):
    """A payload contains a part of an object that was read from the server. Build payloads from your own values."""

    reason = "ReadValueInPayload"

    def __init__(self, target: str, path: str) -> None:
        super().__init__(
            f"{target}: {path} was read from the server: build the payload from scratch, with only the fields you own"
        )
