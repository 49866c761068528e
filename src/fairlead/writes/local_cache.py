"""What the write functions need from a cache of the server's objects. They also work without one."""

from typing import Protocol

from fairlead.api.kinds import Kind
from fairlead.api.objects import Object


class LocalCache(Protocol):
    """A cache that shows at least the writes of the writer's client (a `RecordingClient`)."""

    def covers(self, kind: Kind, namespace: str | None) -> bool:
        """Return whether the cache holds every object of that kind there: an object it lacks does not exist."""

    def version(self, kind: Kind, name: str, namespace: str | None) -> tuple[str, str] | None:
        """Return (uid, resourceVersion) of the object without decoding it, or None if it is not cached."""

    def peek(self, kind: Kind, name: str, namespace: str | None) -> Object | None:
        """Return the object, or None if it is not cached.

        For the kinds that we apply, it has at least our own managedFields entry.
        """

    def observe_removal(self, kind: Kind, name: str, namespace: str | None, uid: str) -> None:
        """Hide the object with this uid, because the server answered that it does not exist any more."""


class NoCache:
    """An empty cache: each write starts from the object it is given, or from a live read."""

    def covers(self, kind: Kind, namespace: str | None) -> bool:
        return False

    def version(self, kind: Kind, name: str, namespace: str | None) -> tuple[str, str] | None:
        return None

    def peek(self, kind: Kind, name: str, namespace: str | None) -> Object | None:
        return None

    def observe_removal(self, kind: Kind, name: str, namespace: str | None, uid: str) -> None:
        pass
