"""Controllers as they are usually written, in small: what the legacy operators run on.

A local view that learns of our own writes only when the watch tells, a queue, and back-off on every error, a conflict
being one of them: 5 ms doubling up to 1000 s, forgotten after a success. The defaults of controller-runtime.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import fairlead as fl
from fairlead.api.errors import ApiError
from fairlead.cache import Cache, Change
from fairlead.client.client import Client
from fairlead.queue.queue import Queue

log = logging.getLogger("operators")

BASE, CAP = 0.005, 1000.0
Key = tuple[str | None, str]


class View:
    """What a legacy reconcile reads and writes with: a cache that may be stale, and the bare verbs."""

    def __init__(
        self,
        client: Client,
        world: fl.World,
        kinds: Iterable[fl.Kind],
        namespace: str | None,
        labels: Mapping[fl.Kind, str] | None = None,
    ) -> None:
        self.client = client
        self.world = world
        self.cache = Cache(client, world)
        within = [namespace] if namespace else None
        self.views = {
            kind: self.cache.watch(kind, namespaces=within, labels=(labels or {}).get(kind)) for kind in kinds
        }
        self.wake: Callable[[Key], None] = lambda key: None
        """Have a key looked at: for what is learnt from elsewhere than this view."""

    def get(self, kind: fl.Kind, key: Key) -> fl.Object | None:
        return self.views[kind].get(key[1], key[0])

    def indexed(self, kind: fl.Kind, values: Callable[[fl.Object], Iterable[str]], value: str) -> list[fl.Object]:
        """Those in which `values` finds `value`, by an index of that function's name."""
        self.views[kind].index(values.__name__, values)
        return self.views[kind].indexed(values.__name__, value)

    def list(self, kind: fl.Kind, namespace: str | None = None) -> list[fl.Object]:
        return self.views[kind].list(namespace)

    async def create_or_update(
        self, desired: fl.Object, mutate: Callable[[fl.Object], fl.Object], kind: fl.Kind
    ) -> fl.Object:
        """Cached GET, mutate, compare, then POST or PUT with the version that was cached."""
        cached = self.get(kind, (desired.namespace, desired.name))
        if cached is None:
            return await self.client.create(mutate(desired))
        changed = mutate(cached)
        return cached if changed == cached else await self.client.replace(changed)

    async def put(self, obj: fl.Object, *, subresource: str | None = None) -> fl.Object:
        """Replace, and see it at once: for a second writer, whose own stale cache is not what is on trial."""
        with self.cache.writing(fl.kind(obj.api_version, obj.kind), obj.namespace) as own:
            answer = await self.client.replace(obj, subresource=subresource)
            own.wrote(answer)
        return answer


Reconcile = Callable[[Key, View], Awaitable[float | None]]
"""Returns the seconds after which to look again, if any."""


@asynccontextmanager
async def running(
    client: Client,
    world: fl.World,
    reconcile: Reconcile,
    *,
    namespace: str | None = None,
    primary: fl.Kind,
    owns: Iterable[fl.Kind] = (),
    watches: Mapping[fl.Kind, Callable[[fl.Object, View], Iterable[Key]]] | None = None,
    labels: Mapping[fl.Kind, str] | None = None,
    workers: int = 1,
    seen: Callable[[str, bool], None] = lambda name, failed: None,
) -> AsyncIterator[View]:
    """A controller at work for as long as the block lasts, in one namespace or all, on the objects that `labels` select
    of a kind, all where it names none.

    `seen` is told of each pass: the object's name, and whether it failed.
    """
    mappers = dict(watches or {})
    view = View(client, world, [primary, *owns, *mappers], namespace, labels)
    queue: Queue[Key] = Queue(world)
    view.wake = queue.add
    failures: dict[Key, int] = {}

    def on_primary(change: Change) -> None:
        queue.add((change.namespace, change.name))

    def on_owned(change: Change) -> None:
        for snapshot in filter(None, (change.old, change.new)):
            for owner in snapshot.owners():
                if owner.controller and owner.kind == primary.kind:
                    queue.add((change.namespace, owner.name))

    def on_watched(mapper: Callable[[fl.Object, View], Iterable[Key]]) -> Callable[[Change], None]:
        def handle(change: Change) -> None:
            for snapshot in filter(None, (change.new or change.old,)):
                for key in mapper(snapshot.object(), view):
                    queue.add(key)

        return handle

    stopping = asyncio.Event()

    async def work() -> None:
        while not stopping.is_set():  # a deferred write that fails swallows a cancellation
            key = await queue.get()
            try:
                after = await reconcile(key, view)
                failures.pop(key, None)
            except (ApiError, OSError) as error:
                failures[key] = failures.get(key, 0) + 1
                after = min(CAP, BASE * 2.0 ** (failures[key] - 1))
                log.debug("%s failed for the %d. time, again in %.3f s: %s", key, failures[key], after, error)
            seen(key[1], after is not None and key in failures)
            queue.done(key)
            if after is not None:
                queue.add(key, after=after)

    view.views[primary].subscribe(on_primary)
    for kind in owns:
        view.views[kind].subscribe(on_owned)
    for kind, mapper in mappers.items():
        view.views[kind].subscribe(on_watched(mapper))
    async with view.cache:
        for each in view.views.values():
            await each.synced()
        tasks = [asyncio.create_task(work(), name=f"{primary.kind.lower()}-{i}") for i in range(workers)]
        try:
            yield view
        finally:
            stopping.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def with_metadata(obj: fl.Object, **fields: Any) -> fl.Object:
    """A copy with these fields of metadata replaced."""
    return fl.Object({**obj, "metadata": {**obj.metadata, **fields}})


def with_finalizer(obj: fl.Object, finalizer: str) -> fl.Object:
    """A copy that carries the finalizer."""
    if finalizer in obj.finalizers:
        return obj
    return with_metadata(obj, finalizers=[*obj.finalizers, finalizer])


def controller_of(obj: fl.Object) -> dict[str, Any] | None:
    """The owner reference that controls it."""
    return next((o for o in obj.metadata.get("ownerReferences") or () if o.get("controller")), None)


def owned_by(obj: fl.Object, owner: fl.Object) -> fl.Object:
    """A copy controlled by `owner`."""
    if controller_of(obj):
        return obj
    reference = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return with_metadata(obj, ownerReferences=[*(obj.metadata.get("ownerReferences") or ()), reference])
