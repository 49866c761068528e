"""What the write disciplines ask of a local view, and tell it. A cache satisfies it by shape; none is needed."""

from typing import Protocol

from fairlead.api.kinds import Kind
from fairlead.api.objects import Object


class Seen(Protocol):
    """A local view that shows at least the writes of the writer's client (a `RecordingClient`)."""

    def covers(self, kind: Kind, namespace: str | None) -> bool:
        """Whether an object of that kind there, once it exists, is known here: what is not known is then not there."""

    def version(self, kind: Kind, name: str, namespace: str | None) -> tuple[str, str] | None:
        """(uid, resourceVersion) of the object, without decoding it; None when it is not known."""

    def peek(self, kind: Kind, name: str, namespace: str | None) -> Object | None:
        """The object with, for kinds we apply, at least our own managedFields entry; None when it is not known."""

    def observe_removal(self, kind: Kind, name: str, namespace: str | None, uid: str) -> None:
        """Hide the object with this uid: the server answered that it does not exist any more."""


class Nothing:
    """A view that knows nothing: each write then starts from what it is given, or from a live read."""

    def covers(self, kind: Kind, namespace: str | None) -> bool:
        return False

    def version(self, kind: Kind, name: str, namespace: str | None) -> tuple[str, str] | None:
        return None

    def peek(self, kind: Kind, name: str, namespace: str | None) -> Object | None:
        return None

    def observe_removal(self, kind: Kind, name: str, namespace: str | None, uid: str) -> None:
        pass
