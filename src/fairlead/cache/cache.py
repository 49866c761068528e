"""The cached objects of one API server: one watch per scope, and readers of the cached objects."""

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
from fairlead.cache.own_versions import OwnVersions
from fairlead.cache.reflector import Reflector, WatchHealth
from fairlead.cache.scope import Scope
from fairlead.client.client import Client


class CacheReader:
    """Reads the cached objects of one kind, in all namespaces or in some. `LiveReader` reads from the server instead.

    Guarantees: reads return immediately from memory and show our own writes. The caller may change a returned object.

    Does not guarantee: the newest objects (`health` says how old they may be), or complete results before
    `wait_for_sync` returned.

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
        """Return the cached object, or None if there is none. The namespace is ignored for a cluster-scoped kind.

        Raises ValueError if the kind is namespaced and no namespace is given.
        """
        if self.kind.namespaced and not namespace:
            raise ValueError(f"{self.kind.kind} {name} needs a namespace: the kind is namespaced")
        snapshot = self.get_snapshot(name, namespace)
        return None if snapshot is None else snapshot.object()

    def get_snapshot(self, name: str, namespace: str | None = None) -> Snapshot | None:
        """Return the cached object undecoded, for callers that need only its version or its owners, or None."""
        namespace = namespace if self.kind.namespaced else None
        for informer in self._get_informers(namespace):
            return informer.get(name, namespace)
        return None

    def object_keys(self) -> Iterator[tuple[str | None, str]]:
        """Yield (namespace, name) of every object that the watches have reported. Newer own writes are left out."""
        for informer in self._informers:
            yield from ((namespace or None, name) for (namespace, name), _ in informer.store.items())

    def owned_by(self, uid: str, exclude: Iterable[tuple[str | None, str]] = ()) -> list[Object]:
        """Return the objects that have an ownerReference with that uid.

        `exclude` contains the (namespace, name) of objects to leave out.

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
        """Return whether this reader covers the objects of that namespace."""
        return any(self._get_informers(namespace))

    def subscribe(self, handler: Handler) -> None:
        """Call `handler` with each change, after reads show the change. The changes of one object are in order.

        The first calls are for the objects that already exist. The handler must return quickly, because the watch waits
        for it. Errors that it raises are logged. See `Informer` for all guarantees.
        """
        for informer in self._informers:
            informer.subscribe(handler)

    @property
    def is_served(self) -> bool:
        """Return whether the server serves the kind. Always True for a kind that is not optional."""
        return all(reflector.health.served for reflector in self._reflectors)

    def on_served_change(self, handler: Callable[[], None]) -> None:
        """Call `handler` when the server starts or stops to serve an optional kind."""
        for reflector in self._reflectors:
            reflector.served_handlers.append(handler)

    async def wait_for_sync(self) -> None:
        """Wait until the first list is stored and every handler was called with its objects."""
        for informer in self._informers:
            await informer.synced.wait()

    async def wait_until(self, resource_version: str, namespace: str | None = None) -> None:
        """Wait until the watch has reported all changes up to that version. See `Informer.wait_until` for the cost."""
        for informer in self._get_informers(namespace):
            await informer.wait_until(resource_version)

    def health(self) -> list[WatchHealth]:
        """Return the health of each watch, with the time of the last message from the server."""
        return [reflector.health for reflector in self._reflectors]

    def list(self, namespace: str | None = None, *, labels: str | None = None) -> list[Object]:
        """Return the cached objects that match the label selector, in one namespace or in all."""
        namespace = namespace if self.kind.namespaced else None
        objects = _decode(informer.list(namespace) for informer in self._get_informers(namespace))
        if not labels:
            return objects
        selector = selectors.parse_labels(labels)
        return [obj for obj in objects if selector.matches(obj.labels)]

    def _get_informers(self, namespace: str | None) -> Iterator[Informer]:
        for informer in self._informers:
            if namespace is None or informer.scope.includes_namespace(namespace):
                yield informer


class OwnWrite:
    """A write that was sent by this process and has not been answered. The caller records the response in the cache.

    If the outcome of the write is unknown, record nothing.
    """

    def __init__(self, namespace: str | None, writes: Sequence[tuple[Informer, PendingWrite]]) -> None:
        self._namespace = namespace
        self._writes = writes

    def record(self, answer: Mapping[str, Any]) -> None:
        """Record the object in the response of a create, replace, patch or apply (not of a dry run)."""
        for informer, write in self._writes:
            informer.record_write(write, answer)

    def record_delete(self, name: str, uid: str, answer: Mapping[str, Any] | None) -> None:
        """Record the response of a DELETE of that name and uid. `answer` is None if the response has no object."""
        for informer, write in self._writes:
            informer.record_delete(write, (self._namespace or "", name), uid, answer)


class Cache:
    """The cached objects of one server: one watch per scope, shared by all readers.

    `async with cache` runs the watches, also the watches that `watch` adds later.

    Guarantees: a watch recovers from every error, and `health` reports its state. Cached objects have the managedFields
    entries of `field_managers` with the operation Apply.

    Does not guarantee: other managedFields entries. They are dropped to save memory.
    """

    def __init__(self, client: Client, world: World, *, field_managers: Iterable[str] = ()) -> None:
        self._client = client
        self._world = world
        self._field_managers = frozenset(field_managers)
        self.own_versions = OwnVersions()
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
        optional: bool = False,
    ) -> CacheReader:
        """Watch a kind, in all namespaces or in `namespaces`, and return a reader of the cached objects.

        An `optional` kind has no objects while the server does not serve it. For other kinds that is an error.
        Resolve `kind` by discovery first: `namespaces` is ignored only if the kind is known to be cluster-scoped.
        """
        names: Iterable[str | None] = [None]
        if namespaces is not None and kind.namespaced:
            names = dict.fromkeys(namespaces)
        scopes = [Scope(kind, namespace, labels, fields, metadata_only, transform) for namespace in names]
        return CacheReader(kind, [self._watch(scope, optional=optional) for scope in scopes])

    def covers(self, kind: Kind, namespace: str | None) -> bool:
        """Return whether a watch covers all objects of that kind and namespace, without selectors.

        Then an object that is not cached does not exist on the server.
        """
        return any(
            scope.kind.key == kind.key
            and scope.is_unfiltered
            and not scope.metadata_only
            and scope.includes_namespace(namespace)
            for scope in self._watches
        )

    def find(self, kind: Kind, name: str, namespace: str | None) -> Snapshot | None:
        """Return the cached object, or None if no watch without `metadata_only` has it."""
        for scope, (informer, _) in self._watches.items():
            if scope.kind.key == kind.key and not scope.metadata_only and scope.includes_namespace(namespace):
                snapshot = informer.get(name, namespace if kind.namespaced else None)
                if snapshot is not None:
                    return snapshot
        return None

    def writing(self, kind: Kind, namespace: str | None) -> AbstractContextManager[OwnWrite]:
        """Return a context manager for one write: send the request inside it and record the response.

        Example:
            with cache.writing(ConfigMap, "default") as own_write:
                own_write.record(await client.apply(payload, field_manager="me"))
        """
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
        """Return one line for each object that differs between cache and server. Lists every scope completely."""
        watches = list(self._watches.values())
        differences_by_watch = [await consistency.find_differences(informer, self._client) for informer, _ in watches]
        return [difference for differences in differences_by_watch for difference in differences]

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

    def _watch(self, scope: Scope, *, optional: bool) -> tuple[Informer, Reflector]:
        if scope not in self._watches:
            informer = Informer(scope, self._field_managers, self.own_versions)
            self._watches[scope] = informer, Reflector(self._client, informer, self._world, optional=optional)
            self._start(scope)
        return self._watches[scope]

    def _start(self, scope: Scope) -> None:
        if self._tasks is not None:
            _, reflector = self._watches[scope]
            self._tasks[scope] = asyncio.create_task(reflector.run(), name=f"watch of {scope}")


def _decode(snapshots: Iterable[Iterator[Snapshot]]) -> list[Object]:
    return [snapshot.object() for informer_snapshots in snapshots for snapshot in informer_snapshots]
