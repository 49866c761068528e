"""A small controller loop in the style of controller-runtime, for the legacy operators.

Reads come from a cache that sees the controller's own writes only through the watch. After every error, including a
conflict, the key waits for an exponential backoff: 5 ms, doubled after each failure, at most 1000 s, reset by a
success. These are the defaults of controller-runtime.
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

BASE_DELAY, MAX_DELAY = 0.005, 1000.0
Key = tuple[str | None, str]
"""The namespace and the name of an object."""


class ClassicContext:
    """The context of a legacy reconcile function: a cache that may be stale, and a client for writes."""

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
        namespaces = [namespace] if namespace else None
        self.caches = {
            kind: self.cache.watch(kind, namespaces=namespaces, labels=(labels or {}).get(kind)) for kind in kinds
        }
        self.enqueue: Callable[[Key], None] = lambda key: None
        """Adds a key to the queue. For events that do not come from this context's own watches."""

    def get(self, kind: fl.Kind, key: Key) -> fl.Object | None:
        """Return the cached object, or None."""
        return self.caches[kind].get(key[1], key[0])

    def list_by_index(
        self, kind: fl.Kind, index_function: Callable[[fl.Object], Iterable[str]], value: str
    ) -> list[fl.Object]:
        """Return the cached objects for which `index_function` yields `value`."""
        self.caches[kind].index(index_function.__name__, index_function)
        return self.caches[kind].indexed(index_function.__name__, value)

    def list(self, kind: fl.Kind, namespace: str | None = None) -> list[fl.Object]:
        """Return the cached objects of a kind, in one namespace or in all."""
        return self.caches[kind].list(namespace)

    async def create_or_update(
        self, desired: fl.Object, mutate: Callable[[fl.Object], fl.Object], kind: fl.Kind
    ) -> fl.Object:
        """Read the cached copy, mutate it, and POST or PUT the result with the cached resourceVersion."""
        cached = self.get(kind, (desired.namespace, desired.name))
        if cached is None:
            return await self.client.create(mutate(desired))
        changed_object = mutate(cached)
        return cached if changed_object == cached else await self.client.replace(changed_object)

    async def replace_and_cache(self, obj: fl.Object, *, subresource: str | None = None) -> fl.Object:
        """Replace the object and put the response into the cache.

        Only the second writers of the demos call this method. Their cache is never stale, because the demos measure the
        effects of the operator's stale cache.
        """
        with self.cache.writing(fl.kind(obj.api_version, obj.kind), obj.namespace) as own_write:
            answer = await self.client.replace(obj, subresource=subresource)
            own_write.record(answer)
        return answer


Reconcile = Callable[[Key, ClassicContext], Awaitable[float | None]]
"""Returns the seconds until the next reconcile, or None."""


@asynccontextmanager
async def running(
    client: Client,
    world: fl.World,
    reconcile: Reconcile,
    *,
    namespace: str | None = None,
    primary: fl.Kind,
    owns: Iterable[fl.Kind] = (),
    watches: Mapping[fl.Kind, Callable[[fl.Object, ClassicContext], Iterable[Key]]] | None = None,
    labels: Mapping[fl.Kind, str] | None = None,
    workers: int = 1,
    on_reconcile: Callable[[str, bool], None] = lambda name, failed: None,
) -> AsyncIterator[ClassicContext]:
    """Run a controller until the block ends.

    The controller watches one namespace, or all if `namespace` is None. `labels` maps a kind to a label selector.
    `on_reconcile` is called after each reconcile with the object's name and whether the reconcile failed.
    """
    mappers = dict(watches or {})
    ctx = ClassicContext(client, world, [primary, *owns, *mappers], namespace, labels)
    queue: Queue[Key] = Queue(world)
    ctx.enqueue = queue.add
    failures: dict[Key, int] = {}

    def on_primary(change: Change) -> None:
        queue.add((change.namespace, change.name))

    def on_owned(change: Change) -> None:
        for snapshot in filter(None, (change.old, change.new)):
            for owner in snapshot.owners():
                if owner.controller and owner.kind == primary.kind:
                    queue.add((change.namespace, owner.name))

    def on_watched(mapper: Callable[[fl.Object, ClassicContext], Iterable[Key]]) -> Callable[[Change], None]:
        def handle(change: Change) -> None:
            for snapshot in filter(None, (change.new or change.old,)):
                for key in mapper(snapshot.object(), ctx):
                    queue.add(key)

        return handle

    stopping = asyncio.Event()

    async def work() -> None:
        while not stopping.is_set():  # An error in a `finally` block of a reconcile can replace the cancellation.
            key = await queue.get()
            try:
                after = await reconcile(key, ctx)
                failures.pop(key, None)
            except (ApiError, OSError) as error:
                failures[key] = failures.get(key, 0) + 1
                after = min(MAX_DELAY, BASE_DELAY * 2.0 ** (failures[key] - 1))
                log.debug("reconcile of %s failed %d times, retrying in %.3f s: %s", key, failures[key], after, error)
            on_reconcile(key[1], after is not None and key in failures)
            queue.done(key)
            if after is not None:
                queue.add(key, after=after)

    ctx.caches[primary].subscribe(on_primary)
    for kind in owns:
        ctx.caches[kind].subscribe(on_owned)
    for kind, mapper in mappers.items():
        ctx.caches[kind].subscribe(on_watched(mapper))
    async with ctx.cache:
        for cache in ctx.caches.values():
            await cache.wait_for_sync()
        tasks = [asyncio.create_task(work(), name=f"{primary.kind.lower()}-{i}") for i in range(workers)]
        try:
            yield ctx
        finally:
            stopping.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def with_metadata(obj: fl.Object, **fields: Any) -> fl.Object:
    """Return a copy of the object with other values for some fields of its metadata."""
    return fl.Object({**obj, "metadata": {**obj.metadata, **fields}})


def with_finalizer(obj: fl.Object, finalizer: str) -> fl.Object:
    """Return the object with the finalizer added, if it is missing."""
    if finalizer in obj.finalizers:
        return obj
    return with_metadata(obj, finalizers=[*obj.finalizers, finalizer])


def without_finalizer(obj: fl.Object, finalizer: str) -> fl.Object:
    """Return a copy of the object without the finalizer."""
    return with_metadata(obj, finalizers=[name for name in obj.finalizers if name != finalizer])


def controller_of(obj: fl.Object) -> dict[str, Any] | None:
    """Return the owner reference with `controller: true`, or None."""
    return next((ref for ref in obj.metadata.get("ownerReferences") or () if ref.get("controller")), None)


def owned_by(obj: fl.Object, owner: fl.Object) -> fl.Object:
    """Return the object with an owner reference to `owner` as its controller, unless it already has a controller."""
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
