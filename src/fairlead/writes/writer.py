"""The writer: a client, a field manager, object locks and the last writes of this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace

from fairlead.api.errors import NotFound
from fairlead.api.history import SKIPPED, History, ObjectRef
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object, as_integer, is_removed
from fairlead.api.text import reject_single_string
from fairlead.api.world import World
from fairlead.client.client import Client
from fairlead.writes.errors import ObjectDeleted, ObjectReplaced
from fairlead.writes.local_cache import LocalCache, NoCache
from fairlead.writes.no_op import find_apply_entry

# The kind that a server sets on an object when the client requested only its metadata.
METADATA_ONLY = "PartialObjectMetadata"

Key = tuple[str, str, str | None, str]

# The limit keeps objects that others deleted from accumulating. A forgotten name costs what a restart costs: nothing,
# or one request if the server stores something else than was sent, or three requests without a cache.
MAX_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class LastWrite:
    """The last write of this process to a name: the uid of the object, and a hash of what the server stored."""

    uid: str
    resource_version: str = ""
    payload: bytes = b""  # Digest of what was sent.
    outcome: bytes = b""  # Digest of our fields in the answer, as the server normalized them.


class ObjectLocks:
    """One lock per object: writes to one object run one after another, writes to different objects concurrently."""

    def __init__(self) -> None:
        self._locks: dict[Key, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def lock(self, key: Key) -> AsyncIterator[None]:
        lock, waiting = self._locks.get(key) or (asyncio.Lock(), 0)
        self._locks[key] = lock, waiting + 1
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._locks.pop(key)
            if waiting > 1:
                self._locks[key] = lock, waiting - 1


@dataclass(frozen=True)
class Writer:
    """The first argument of every write function: the client, the field manager, the locks and the last writes.

    Create one writer per process and server. `with_manager` returns a writer for another field manager that shares the
    locks and the last writes. Two independent writers for one server would not wait for each other's locks.

    Example:
        writer = Writer(client, World(), "my-operator")
        await apply(writer, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {...}, "data": {...}})
    """

    client: Client
    world: World
    manager: str
    """The field manager."""
    cache: LocalCache = field(default_factory=NoCache)
    locks: ObjectLocks = field(default_factory=ObjectLocks)
    last_writes: dict[Key, dict[tuple[str, str], LastWrite]] = field(default_factory=dict)
    former_managers: tuple[str, ...] = ()
    """Field managers of earlier releases. Fields they applied count as ours, and become ours at the next apply."""
    history: History | None = None
    """Where writes that were skipped are recorded. The client records those that were sent."""
    cluster: str = ""
    """The name of the cluster in the history; empty for the operator's own."""

    def __post_init__(self) -> None:
        validate_field_manager(self.manager)
        reject_single_string("former_managers", self.former_managers)

    def with_manager(self, manager: str) -> "Writer":
        """Return a writer for another field manager that shares the locks and the last writes of this writer."""
        return replace(self, manager=manager)

    def has_applied(self, obj: Object) -> bool:
        """Return whether the object has an Apply entry of our field manager or of one of its former names."""
        return any(find_apply_entry(obj, manager) is not None for manager in (self.manager, *self.former_managers))

    def lock(self, kind: Kind, name: str, namespace: str | None) -> AbstractAsyncContextManager[None]:
        """Return an async context manager that holds the lock of the object while its body runs."""
        return self.locks.lock(object_key(kind, name, namespace))

    def last_writes_of(self, kind: Kind, name: str, namespace: str | None) -> dict[tuple[str, str], LastWrite]:
        """Return the last writes to an object name, by (field manager, part of the object that was written)."""
        key = object_key(kind, name, namespace)
        if key not in self.last_writes and len(self.last_writes) >= MAX_REMEMBERED:
            del self.last_writes[next(iter(self.last_writes))]
        return self.last_writes.setdefault(key, {})

    def newest(self, kind: Kind, obj: Object) -> Object:
        """Return the cached version of `obj` if it has the same uid and is not older, else `obj`."""
        cached = self.cache.peek(kind, obj.name, obj.namespace)
        if cached is None or cached.uid != obj.uid:
            return obj
        return obj if as_integer(obj.resource_version) > as_integer(cached.resource_version) else cached

    async def read_live(self, kind: Kind, obj: Object) -> Object:
        """Read `obj` again from the server. Raise ObjectDeleted or ObjectReplaced if it no longer exists."""
        try:
            live = await self.client.get(kind, obj.name, obj.namespace)
        except NotFound:
            self.observe_removal(kind, obj)
            raise ObjectDeleted(describe_object(kind, obj.name, obj.namespace)) from None
        if live.uid != obj.uid:
            self.observe_removal(kind, obj)
            raise ObjectReplaced(describe_object(kind, obj.name, obj.namespace))
        return live

    def skip(self, verb: str, kind: Kind, obj: Object, subresource: str = "") -> Object:
        """Record that nothing was sent, because the object already has the values. Return the object."""
        if self.history is not None and self.history.wants(SKIPPED):
            ref = ObjectRef(kind.kind, obj.namespace, obj.name, kind.api_version, self.cluster)
            version = obj.resource_version
            self.history.record(SKIPPED, verb, object=ref, version=version, subresource=subresource)
        return obj

    def forget_removed(self, kind: Kind, obj: Object) -> Object:
        """Return `obj`, the response of a write. If the write removed the object, forget its last writes.

        The writer does not record the response in the cache, because its client does that (`RecordingClient`).
        """
        if is_removed(obj):
            self.forget(kind, obj)
        return obj

    def forget(self, kind: Kind, obj: Object) -> None:
        """Forget the last writes to an object that was removed."""
        self.last_writes.pop(object_key(kind, obj.name, obj.namespace), None)

    def observe_removal(self, kind: Kind, obj: Object) -> None:
        """Forget the last writes to an object, and hide it in the cache: the server does not have it any more."""
        self.forget(kind, obj)
        self.cache.observe_removal(kind, obj.name, obj.namespace, obj.uid)


def validate_field_manager(manager: str) -> None:
    """Raise ValueError for a field manager name that servers treat specially."""
    if manager == "kubectl":  # The server rewrites the last-applied annotation for it and may force its applies.
        raise ValueError("the field manager 'kubectl' is special to servers: use the operator's own name")


def object_key(kind: Kind, name: str, namespace: str | None) -> Key:
    return kind.group, kind.kind, namespace if kind.namespaced else None, name


def require_uid(kind: Kind, obj: Object) -> None:
    """Raise ValueError if the object has no uid or is of another kind.

    Without a uid the write would reach any object of that name.
    """
    target = describe_object(kind, obj.name, obj.namespace)
    if obj.kind not in ("", METADATA_ONLY, kind.kind):
        raise ValueError(f"{target} was expected, but the object is a {obj.kind}: pass an object of that kind")
    if not obj.uid:
        raise ValueError(f"{target} has no uid: pass the object as the server returned it, not one built by hand")


def describe_object(kind: Kind, name: str, namespace: str | None) -> str:
    """Return an object's name for a message, such as `Deployment default/web`."""
    return f"{kind.kind} {namespace}/{name}" if namespace else f"{kind.kind} {name}"
