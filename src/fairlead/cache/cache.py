"""The cache of one server: one watch per scope, and readers of the cached objects."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import TracebackType
from typing import Any

from fairlead.api import selectors
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.api.world import World
from fairlead.cache import consistency
from fairlead.cache.entries import Transform
from fairlead.cache.informer import Handler, Informer, Snapshot
from fairlead.cache.overlay import PendingWrite
from fairlead.cache.reflector import Reflector, WatchHealth
from fairlead.cache.scope import Scope
from fairlead.client.client import Client


class CacheReader:
    """Reads the cached objects of one kind, in some namespaces or all. Its counterpart `LiveReader` asks the server.

    Guarantees: reads return immediately from memory, show our own writes, and return objects that belong to the caller.

    Does not guarantee: fresher objects than `health` says. Before `wait_for_sync` returned, reads are incomplete.

    Example:
        reader = cache.watch(ConfigMap, namespaces=["default"])
        async with cache:
            await reader.wait_for_sync()
            settings = reader.get("settings", "default")
    """

    def __init__(self, kind: Kind, watches: Sequence[tuple[Informer, Reflector]]) -> None:
        self.kind = kind
        self._informers = [informer for informer, _ in watches]
        self._reflectors = [reflector for _, reflector in watches]

    def get(self, name: str, namespace: str | None = None) -> Object | None:
        """Return the object, or None if it does not exist. The namespace is ignored for a cluster-scoped kind.

        Raises ValueError if the kind is namespaced and no namespace is given.
        """
        if self.kind.namespaced and not namespace:
            raise ValueError(f"{self.kind.kind} {name} needs a namespace: the kind is namespaced")
        snapshot = self.get_snapshot(name, namespace)
        return None if snapshot is None else snapshot.object()

    def get_snapshot(self, name: str, namespace: str | None = None) -> Snapshot | None:
        """Return the object without decoding it, for callers that only need its version or owners."""
        namespace = namespace if self.kind.namespaced else None
        for informer in self._informers_of(namespace):
            return informer.get(name, namespace)
        return None

    def object_keys(self) -> Iterator[tuple[str | None, str]]:
        """Yield namespace and name of every object that the watches have reported. Own writes are left out."""
        for informer in self._informers:
            yield from ((namespace or None, name) for (namespace, name), _ in informer.store.items())

    def owned_by(self, uid: str, exclude: Iterable[tuple[str | None, str]] = ()) -> list[Object]:
        """Return the objects with an owner of that uid, except those with a (namespace, name) in `exclude`.

        The first call builds the index.
        """
        excluded = {(namespace or "", name) for namespace, name in exclude}
        return _decode(informer.owned_by(uid, excluded) for informer in self._informers)

    def index(self, name: str, function: Callable[[Object], Iterable[str]]) -> None:
        """Add an index of the values that `function` returns for an object. It must depend on the object only."""
        for informer in self._informers:
            informer.index(name, function)

    def indexed(self, name: str, value: str) -> list[Object]:
        """Return the objects that the index has under `value`. Raises LookupError if there is no such index."""
        return _decode(informer.indexed(name, value) for informer in self._informers)

    def includes_namespace(self, namespace: str) -> bool:
        """Return whether it watches that namespace."""
        return any(self._informers_of(namespace))

    def subscribe(self, handler: Handler) -> None:
        """Call `handler` with each change, in order per object, after reads show it.

        The first calls are for the objects that already exist. The handler must return quickly, because the watch waits
        for it. Errors that it raises are logged. See `Informer` for all guarantees.
        """
        for informer in self._informers:
            informer.subscribe(handler)

    async def wait_for_sync(self) -> None:
        """Wait until the first list is complete and every handler was called with it."""
        for informer in self._informers:
            await informer.synced.wait()

    async def wait_until(self, resource_version: str, namespace: str | None = None) -> None:
        """Wait until the watch has reported everything up to that version. See `Informer.wait_until` for the cost."""
        for informer in self._informers_of(namespace):
            await informer.wait_until(resource_version)

    def health(self) -> list[WatchHealth]:
        """Return the health of each watch, which also says how fresh the cached objects are."""
        return [reflector.health for reflector in self._reflectors]

    def list(self, namespace: str | None = None, *, labels: str | None = None) -> list[Object]:
        """Return every object, or those in one namespace, that match the label selector."""
        namespace = namespace if self.kind.namespaced else None
        objects = _decode(informer.list(namespace) for informer in self._informers_of(namespace))
        if not labels:
            return objects
        selector = selectors.parse_labels(labels)
        return [obj for obj in objects if selector.matches(obj.labels)]

    def _informers_of(self, namespace: str | None) -> Iterator[Informer]:
        for informer in self._informers:
            if namespace is None or informer.scope.includes_namespace(namespace):
                yield informer


class OwnWrite:
    """A write that is on its way. Record its answer when it arrives. Do not record an unknown outcome."""

    def __init__(self, namespace: str | None, writes: Sequence[tuple[Informer, PendingWrite]]) -> None:
        self._namespace = namespace
        self._writes = writes

    def record(self, answer: Mapping[str, Any]) -> None:
        """Record the object that the server returned for a create, replace, patch or apply (not of a dry run)."""
        for informer, write in self._writes:
            informer.record_write(write, answer)

    def record_delete(self, name: str, uid: str, answer: Mapping[str, Any] | None) -> None:
        """Record the answer of a DELETE of that name and uid. `answer` is None if it does not hold the object."""
        for informer, write in self._writes:
            informer.record_delete(write, (self._namespace or "", name), uid, answer)


class Cache:
    """The cached objects of one server: one watch per scope, shared by all readers.

    `async with cache` runs the watches, also those that `watch` adds while it runs.

    Guarantees: a watch recovers from every error, and `health` reports its state. The cache keeps the managedFields
    entries with the operation Apply of the given `field_managers`.

    Does not guarantee: managedFields of other field managers; they are dropped to save memory.
    """

    def __init__(self, client: Client, world: World, *, field_managers: Iterable[str] = ()) -> None:
        self._client = client
        self._world = world
        self._field_managers = frozenset(field_managers)
        self._watches: dict[Scope, tuple[Informer, Reflector]] = {}
        self._tasks: dict[Scope, asyncio.Task[None]] | None = None

    def watch(
        self,
        kind: Kind,
        *,
        namespaces: Iterable[str] | None = None,
        labels: str | None = None,
        fields: str | None = None,
        metadata_only: bool = False,
        transform: Transform | None = None,
    ) -> CacheReader:
        """Watch that kind, in all namespaces or in those named, and return its reader.

        `kind` should be resolved by discovery: the namespaces of a cluster-scoped kind are ignored.
        """
        names: Iterable[str | None] = [None]
        if namespaces is not None and kind.namespaced:
            names = dict.fromkeys(namespaces)
        scopes = [Scope(kind, namespace, labels, fields, metadata_only, transform) for namespace in names]
        return CacheReader(kind, [self._watch(scope) for scope in scopes])

    def covers(self, kind: Kind, namespace: str | None) -> bool:
        """Return whether every object of that kind and namespace is watched: one that is not cached does not exist."""
        return any(
            scope.kind.key == kind.key
            and scope.is_unfiltered
            and not scope.metadata_only
            and scope.includes_namespace(namespace)
            for scope in self._watches
        )

    def writing(self, kind: Kind, namespace: str | None) -> AbstractContextManager[OwnWrite]:
        """Open this before a write is sent, and record its answer inside: `with cache.writing(…) as own`."""
        return self._writing(kind, namespace)

    @contextmanager
    def _writing(self, kind: Kind, namespace: str | None) -> Iterator[OwnWrite]:
        with ExitStack() as stack:
            writes = []
            for scope, (informer, _) in self._watches.items():
                if scope.kind.key == kind.key and scope.includes_namespace(namespace):
                    write = informer.overlay.begin_write()
                    stack.callback(informer.overlay.end_write, write)
                    writes.append((informer, write))
            yield OwnWrite(namespace, writes)

    async def wait_for_sync(self) -> None:
        """Wait until the first list of every watch is complete."""
        for informer, _ in list(self._watches.values()):
            await informer.synced.wait()

    @property
    def is_caught_up(self) -> bool:
        """Whether every watch has listed its objects and reported all of our own writes."""
        return all(informer.synced.is_set() and not informer.overlay for informer, _ in self._watches.values())

    def health(self) -> list[WatchHealth]:
        """Return the health of each watch."""
        return [reflector.health for _, reflector in self._watches.values()]

    async def find_differences(self) -> list[str]:
        """Return where the cache differs from the server at the same version. Costs a full list of every scope."""
        watches = list(self._watches.values())
        found = [await consistency.find_differences(informer, self._client) for informer, _ in watches]
        return [difference for differences in found for difference in differences]

    async def __aenter__(self) -> "Cache":
        self._tasks = {}
        for scope in self._watches:
            self._start(scope)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        tasks, self._tasks = list((self._tasks or {}).values()), None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _watch(self, scope: Scope) -> tuple[Informer, Reflector]:
        if scope not in self._watches:
            informer = Informer(scope, self._field_managers)
            self._watches[scope] = informer, Reflector(self._client, informer, self._world)
            self._start(scope)
        return self._watches[scope]

    def _start(self, scope: Scope) -> None:
        if self._tasks is not None:
            _, reflector = self._watches[scope]
            self._tasks[scope] = asyncio.create_task(reflector.run(), name=f"watch of {scope}")


def _decode(snapshots: Iterable[Iterator[Snapshot]]) -> list[Object]:
    return [snapshot.object() for informer_snapshots in snapshots for snapshot in informer_snapshots]
