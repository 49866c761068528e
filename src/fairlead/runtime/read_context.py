"""The reads of a handler: from the operator's cache, or live from the server."""

import logging
from contextlib import suppress
from typing import Any

from fairlead.api.errors import NotFound
from fairlead.api.history import READ, ObjectRef
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.api.world import World
from fairlead.cache import CacheReader
from fairlead.client.client import Client
from fairlead.runtime.live_copy import LiveCopy
from fairlead.runtime.services import Services


class ReadContext:
    """Reads from the operator's cache, for timers and for `watches=` functions that take a second argument.

    Guarantees: reads see this process's own writes.

    Does not guarantee: that a read sees a write of another process. The watch may not have delivered it yet; use
    `live` where that matters.
    """

    def __init__(self, services: Services, namespace: str | None = None) -> None:
        self._services = services
        self._namespace = namespace

    def cluster(self, name: str) -> "ReadContext":
        """Return the read context of another cluster of this run (`clusters=`).

        Raises: LookupError if the run has no cluster of that name.
        """
        return ReadContext(services_of_cluster(self._services, name), self._namespace)

    @property
    def clusters(self) -> tuple[str, ...]:
        """The names of the other clusters of this run."""
        return tuple(self._services.clusters)

    @property
    def dry_run(self) -> bool:
        """Whether this is a dry run, in which the server validates each write and does not store it."""
        return self._services.dry_run

    @property
    def world(self) -> World:
        """The clock and the random source. Use them instead of `time` and `random`, so that tests can control them."""
        return self._services.world

    @property
    def log(self) -> logging.Logger:
        """The operator's logger. Lines that are logged in a pass contain the object's key and the id of the pass."""
        return self._services.log

    @property
    def resources(self) -> dict[str, Any]:
        """The dict that the startup hooks filled, for example with a connection to a database."""
        return self._services.resources

    @property
    def live(self) -> "LiveReader":
        """A reader that asks the server instead of the cache."""
        return LiveReader(self._services, self._namespace)

    @property
    def unguarded(self) -> Client:
        """The plain client, for eviction, scale, tokens and logs. Its writes have no protection against conflicts."""
        return self._services.client

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        """Return an object from the cache, or None if the cache has no such object.

        The default namespace is that of the reconciled object.

        Raises: NotWatched if the operator does not watch the kind. ValueError if the namespace is missing.
        """
        namespace = namespace or self._namespace
        obj = self._reader(kind, namespace).get(name, namespace)
        record_get(self._services, "cache", kind, namespace, name, obj)
        return obj

    def _reader(self, kind: Kind, namespace: str | None) -> CacheReader | LiveCopy:
        return self._services.watched.reader(kind, namespace)

    def is_served(self, kind: Kind) -> bool:
        """Return whether the server serves a watched kind. False only for `fl.select(kind, optional=True)`.

        Raises: NotWatched if the operator does not watch the kind.
        """
        return self._services.watched.reader(kind).is_served

    def indexed(self, kind: Kind, name: str, value: str) -> "list[Object]":
        """Return the objects of all namespaces for which the index `name` (see `@op.index`) contains `value`.

        Raises: NotWatched if the operator does not watch the kind.
        """
        objects = self._services.watched.reader(kind).indexed(name, value)
        record_list(self._services, "cache", kind, None, objects)
        return objects

    def list(
        self, kind: Kind, namespace: str | None = None, *, labels: str | None = None, everywhere: bool = False
    ) -> "list[Object]":
        """Return the objects of a watched kind from the cache.

        The default namespace is that of the reconciled object. `everywhere=True` returns the objects of all namespaces.
        `labels` is a label selector such as `app=web,tier!=test`.

        Raises: NotWatched if the operator does not watch the kind or the namespace.
        """
        namespace = None if everywhere else namespace or self._namespace
        objects = self._reader(kind, namespace).list(namespace, labels=labels)
        record_list(self._services, "cache", kind, namespace, objects)
        return objects


class LiveReader:
    """A reader that asks the server instead of the cache.

    Guarantees: the result is at least as new as every write that the server acknowledged before the call.

    Raises: `fl.ApiError` if the server rejects the request, OSError if it cannot be reached.
    """

    def __init__(self, services: Services, namespace: str | None) -> None:
        self._services = services
        self._namespace = namespace

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        """Read an object from the server. Return None if it does not exist."""
        namespace = namespace or self._namespace
        obj = None
        with suppress(NotFound):
            obj = await self._services.client.get(kind, name, namespace)
        record_get(self._services, "live", kind, namespace, name, obj)
        return obj

    async def list(
        self, kind: Kind, namespace: str | None = None, *, labels: str | None = None, everywhere: bool = False
    ) -> list[Object]:
        """List objects from the server, in the reconciled object's namespace unless another is given."""
        within = None if everywhere else namespace or self._namespace
        objects = (await self._services.client.list(kind, within, labels=labels)).items
        record_list(self._services, "live", kind, within, objects)
        return objects


def record_get(
    services: Services, source: str, kind: Kind, namespace: str | None, name: str, obj: Object | None
) -> None:
    """Record a read of one object in the history."""
    if services.history.wants(READ):
        ref = ObjectRef(kind.kind, namespace if kind.namespaced else None, name, kind.api_version, services.cluster)
        outcome, version = ("absent", "") if obj is None else ("found", obj.resource_version)
        services.history.record(READ, "get", object=ref, source=source, outcome=outcome, version=version)


def record_list(services: Services, source: str, kind: Kind, namespace: str | None, objects: list[Object]) -> None:
    """Record a read of several objects in the history."""
    if services.history.wants(READ):
        ref = ObjectRef(kind.kind, namespace if kind.namespaced else None, "", kind.api_version, services.cluster)
        services.history.record(READ, "list", object=ref, source=source, outcome=str(len(objects)))


def services_of_cluster(services: Services, name: str) -> Services:
    try:
        return services.clusters[name]
    except KeyError:
        raise LookupError(f"this run has no cluster {name!r}: add it with clusters={{{name!r}: …}}") from None
