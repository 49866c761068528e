"""Every view that a process has of one server."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import TracebackType
from typing import Any

from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.api.world import World
from fairlead.cache import consistency
from fairlead.cache.entries import Transform
from fairlead.cache.informer import Handler, Informer, Snapshot
from fairlead.cache.overlay import Flight
from fairlead.cache.reflector import Health, Reflector
from fairlead.cache.scope import Scope
from fairlead.client.client import Client


class View:
    """What is known of one kind, in some namespaces or all.

    Reads answer at once from memory, see our own writes, and hand out objects that the reader owns. They are as fresh
    as `health` says (up to which version, told when), no fresher. Before `synced` they are incomplete.
    """

    def __init__(self, kind: Kind, streams: Sequence[tuple[Informer, Reflector]]) -> None:
        self.kind = kind
        self._informers = [informer for informer, _ in streams]
        self._reflectors = [reflector for _, reflector in streams]

    def get(self, name: str, namespace: str | None = None) -> Object | None:
        """The object, or None when there is none."""
        found = self.look(name, namespace)
        return None if found is None else found.object()

    def look(self, name: str, namespace: str | None = None) -> Snapshot | None:
        """The same, not decoded yet: for those who only want to know whether it changed."""
        for informer in self._reaching(namespace):
            return informer.look(name, namespace)
        return None

    def reaches(self, namespace: str) -> bool:
        """Whether it looks at that namespace at all."""
        return any(self._reaching(namespace))

    def keys(self) -> Iterator[tuple[str | None, str]]:
        """Namespace and name of every object, as far as the streams have told."""
        for informer in self._informers:
            told = informer.store.items()
            yield from ((namespace or None, name) for (namespace, name), _ in told)

    def owned_by(self, uid: str, but: Iterable[tuple[str | None, str]] = ()) -> list[Object]:
        """The objects with an owner of that uid, except those `but`, (namespace, name) each, which are not decoded.

        The first call makes the index.
        """
        skipped = {(namespace or "", name) for namespace, name in but}
        return _decoded(informer.owned_by(uid, skipped) for informer in self._informers)

    def index(self, name: str, values: Callable[[Object], Iterable[str]]) -> None:
        """Keep an index by what `values` finds in an object. It must depend on nothing else."""
        for informer in self._informers:
            informer.index(name, values)

    def indexed(self, name: str, value: str) -> list[Object]:
        """The objects in which that index found `value`."""
        return _decoded(informer.indexed(name, value) for informer in self._informers)

    def subscribe(self, handler: Handler) -> None:
        """Call `handler` with each change, in order per object, after it can be read here.

        First with all that is there now. It must return soon: the stream waits for it. What it raises is logged.
        """
        for informer in self._informers:
            informer.subscribe(handler)

    async def synced(self) -> None:
        """Wait until everything was told once, to the reader and to each handler."""
        for informer in self._informers:
            await informer.synced.wait()

    async def wait_until(self, resource_version: str, namespace: str | None = None) -> None:
        """A barrier: wait until everything up to that version was told. See `Informer.wait_until` for its price."""
        for informer in self._reaching(namespace):
            await informer.wait_until(resource_version)

    def health(self) -> list[Health]:
        """How each stream behind it fares; also how fresh what is read here is."""
        return [reflector.health for reflector in self._reflectors]

    def list(self, namespace: str | None = None) -> list[Object]:
        """Every object, or every one in a namespace."""
        return _decoded(informer.list(namespace) for informer in self._reaching(namespace))

    def _reaching(self, namespace: str | None) -> Iterator[Informer]:
        for informer in self._informers:
            if namespace is None or informer.scope.reaches(namespace):
                yield informer


class OwnWrite:
    """A write on its way: tell what it was answered with, once it was. An unknown answer is not told."""

    def __init__(self, namespace: str | None, flights: Sequence[tuple[Informer, Flight]]) -> None:
        self._namespace = namespace
        self._flights = flights

    def wrote(self, answer: Mapping[str, Any]) -> None:
        """The answer to a create, replace, patch or apply (not of a dry run)."""
        for informer, flight in self._flights:
            informer.wrote(flight, answer)

    def deleted(self, name: str, uid: str, answer: Mapping[str, Any] | None) -> None:
        """The answer to a delete of that name and uid, which is None when there was no object in it."""
        for informer, flight in self._flights:
            informer.deleted(flight, (self._namespace or "", name), uid, answer)


class Cache:
    """The views of one server: one watch for each scope, however many use it.

    `async with cache` runs the watches, those asked for before and those asked for while it runs. They come back from
    whatever happens; `health` says how they fare. Of managedFields, the Apply entries of `field_managers` are kept.
    """

    def __init__(self, client: Client, world: World, *, field_managers: Iterable[str] = ()) -> None:
        self._client = client
        self._world = world
        self._field_managers = frozenset(field_managers)
        self._streams: dict[Scope, tuple[Informer, Reflector]] = {}
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
    ) -> View:
        """A view of that kind, in all namespaces unless some are named.

        `kind` should be one that discovery has settled: a cluster-wide kind has no namespaces to choose from.
        """
        wanted: Iterable[str | None] = [None]
        if namespaces is not None and kind.namespaced:
            wanted = dict.fromkeys(namespaces)
        scopes = [Scope(kind, namespace, labels, fields, metadata_only, transform) for namespace in wanted]
        return View(kind, [self._stream(scope) for scope in scopes])

    def covers(self, kind: Kind, namespace: str | None) -> bool:
        """Whether everything of that kind in that namespace is watched: what is not seen there is not there."""
        return any(
            scope.kind.key == kind.key and scope.whole and not scope.metadata_only and scope.reaches(namespace)
            for scope in self._streams
        )

    def writing(self, kind: Kind, namespace: str | None) -> AbstractContextManager[OwnWrite]:
        """Hold this open from before a write is sent until its answer was told: `with cache.writing(…) as own`."""
        return self._writing(kind, namespace)

    @contextmanager
    def _writing(self, kind: Kind, namespace: str | None) -> Iterator[OwnWrite]:
        with ExitStack() as stack:
            flights = []
            for scope, (informer, _) in self._streams.items():
                if scope.kind.key == kind.key and scope.reaches(namespace):
                    flight = informer.overlay.depart()
                    stack.callback(informer.overlay.land, flight)
                    flights.append((informer, flight))
            yield OwnWrite(namespace, flights)

    async def synced(self) -> None:
        """Wait until every view is."""
        for informer, _ in list(self._streams.values()):
            await informer.synced.wait()

    @property
    def caught_up(self) -> bool:
        """Every stream has listed what is there, and told all of our own writes."""
        return all(informer.synced.is_set() and not informer.overlay for informer, _ in self._streams.values())

    def health(self) -> list[Health]:
        """How each stream fares."""
        return [reflector.health for _, reflector in self._streams.values()]

    async def differences(self) -> list[str]:
        """Where it is not what the server has at the same version: nothing, unless it is broken. Lists everything."""
        found = [await consistency.differences(informer, self._client) for informer, _ in list(self._streams.values())]
        return [difference for differences in found for difference in differences]

    async def __aenter__(self) -> "Cache":
        self._tasks = {}
        for scope in self._streams:
            self._run(scope)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        tasks, self._tasks = list((self._tasks or {}).values()), None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _stream(self, scope: Scope) -> tuple[Informer, Reflector]:
        if scope not in self._streams:
            informer = Informer(scope, self._field_managers)
            self._streams[scope] = informer, Reflector(self._client, informer, self._world)
            self._run(scope)
        return self._streams[scope]

    def _run(self, scope: Scope) -> None:
        if self._tasks is not None:
            _, reflector = self._streams[scope]
            self._tasks[scope] = asyncio.create_task(reflector.run(), name=f"watch of {scope}")


def _decoded(found: Iterable[Iterator[Snapshot]]) -> list[Object]:
    return [snapshot.object() for snapshots in found for snapshot in snapshots]
