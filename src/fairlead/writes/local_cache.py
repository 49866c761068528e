"""The cache methods that the write functions call, and an empty cache for programs without one."""

from typing import Protocol

from fairlead.api.kinds import Kind
from fairlead.api.objects import Object


class LocalCache(Protocol):
    """A cache of the server's objects. It must show the writes that the writer's client has made."""

    def covers(self, kind: Kind, namespace: str | None) -> bool:
        """Return whether the cache has every object of that kind and namespace, so that others do not exist."""

    def version(self, kind: Kind, name: str, namespace: str | None) -> tuple[str, str] | None:
        """Return (uid, resourceVersion) of the object without decoding it, or None if it is not cached."""

    def peek(self, kind: Kind, name: str, namespace: str | None) -> Object | None:
        """Return the cached object, or None.

        For the kinds that we apply, the object has at least our own managedFields entry.
        """

    def observe_removal(self, kind: Kind, name: str, namespace: str | None, uid: str) -> None:
        """Hide the object with this uid from readers, because the server answered that it does not exist any more."""


class NoCache:
    """An empty cache. Writes start from the object that the caller passes, or read the object from the server."""

    def covers(self, kind: Kind, namespace: str | None) -> bool:
        return False

    def version(self, kind: Kind, name: str, namespace: str | None) -> tuple[str, str] | None:
        return None

    def peek(self, kind: Kind, name: str, namespace: str | None) -> Object | None:
        return None

    def observe_removal(self, kind: Kind, name: str, namespace: str | None, uid: str) -> None:
        pass
