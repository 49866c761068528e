"""What can stop a write, each with its remedy. A reconcile may catch them; the runtime makes conditions of the rest."""

from typing import Any


class WriteError(Exception):
    """A write that a discipline did not make, or that a server will never take as it is.

    `reason` is the word for a condition; `again` says whether a fresh look may do better without anyone's help.
    """

    reason = "WriteRefused"
    again = False
    hint = ""
    """What the operator's code could do about it: for the log. `str()` is for conditions, so for who has kubectl."""


class ForeignObject(WriteError):
    """Something of that name is there and is not ours. Nothing was written."""

    reason = "ForeignObject"
    hint = "adopt=True takes over what nobody controls"

    def __init__(self, what: str, holder: str) -> None:
        super().__init__(f"{what} is there and {holder}: delete that, if it is not needed, or choose another name")


class ImmutableField(WriteError):
    """The server refuses to change these fields on an object that exists."""

    reason = "ImmutableField"
    hint = "recreate=True deletes it and makes it anew"

    def __init__(self, what: str, causes: list[dict[str, Any]]) -> None:
        fields = ", ".join(sorted({str(cause.get("field") or "?") for cause in causes}))
        said = "; ".join(dict.fromkeys(str(cause.get("message") or "") for cause in causes))
        super().__init__(
            f"{what} cannot change {fields} ({said}): change that back, or delete it, to have it made anew"
        )
        self.causes = causes


class DuplicatePayload(WriteError):
    """One child is to be two things at once."""

    reason = "DuplicatePayload"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} is in two payloads, and each would take away what only the other says: make one of them, so that "
            "a pass has one payload a child"
        )


class ObjectDeleted(WriteError):
    """The object that was meant is not there any more. Nothing was written, nothing revived."""

    reason = "ObjectDeleted"
    again = True

    def __init__(self, what: str, said: str = "was deleted") -> None:
        super().__init__(f"{what} {said}: look again")


class ObjectReplaced(ObjectDeleted):
    """The name now belongs to another object (its uid differs)."""

    reason = "ObjectReplaced"

    def __init__(self, what: str) -> None:
        super().__init__(what, "was deleted and made anew by someone")


class ObjectDeleting(ObjectDeleted):
    """The object is being deleted, so nothing may be added to it."""

    reason = "ObjectDeleting"

    def __init__(self, what: str) -> None:
        super().__init__(what, "is being deleted")


class ObjectChanged(WriteError):
    """The object changed after it was looked at, and the write depended on its content."""

    reason = "ObjectChanged"
    again = True

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} changed since it was read: decide again on what it is now")


class StatusSuperseded(WriteError):
    """A newer generation has been reported on already; this report is dropped."""

    reason = "StatusSuperseded"
    again = True

    def __init__(self, what: str, ours: int, theirs: int) -> None:
        super().__init__(f"{what}: generation {theirs} is reported, this report is about {ours}: look again")


class DecisionContention(WriteError):
    """What the decision reads changed before each of its writes."""

    reason = "DecisionContention"
    again = True

    def __init__(self, what: str, runs: int) -> None:
        super().__init__(
            f"{what}: what the decision reads changed {runs} times in a row: read less, or look again later"
        )


class PatchTestMismatch(WriteError):
    """The server says that a guard failed, yet every guard holds on its own live copy: never a conflict.

    Either a value is encoded in another way than the server does, or the patch does not fit the object.
    """

    reason = "PatchTestMismatch"

    def __init__(self, what: str, patch: list[dict[str, Any]]) -> None:
        paths = ", ".join(op["path"] for op in patch)
        super().__init__(f"{what}: the server refuses a patch whose tests all hold ({paths}): please report this")
        self.patch = patch


class ImpureDecision(WriteError):
    """A function that decides must depend on the object alone: it may be run again."""

    reason = "ImpureDecision"

    def __init__(
        self, name: str, seen: str, remedy: str = "make times, ids and counters before it and let it capture them"
    ) -> None:
        super().__init__(f"{name} is not pure: {seen}; {remedy}")


class UndeclaredField(WriteError):
    """A decision changed a field that it was not allowed to."""

    reason = "UndeclaredField"

    def __init__(self, what: str, path: str, only: list[str]) -> None:
        super().__init__(f"{what}: the decision changes {path}, but only {', '.join(only)} may change: name it too")


class ReadValueInPayload(WriteError):
    """A payload carries something that was read from a server. Applying it would take it over, or revert it."""

    reason = "ReadValueInPayload"

    def __init__(self, what: str, path: str) -> None:
        super().__init__(f"{what}: {path} was read from a server: build the payload from scratch, with what you own")
