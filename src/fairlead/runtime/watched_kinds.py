"""The kinds that an operator watches on one cluster, and their cached objects."""

import asyncio
import itertools
import logging
from collections.abc import Iterable

from fairlead.api import backoff
from fairlead.api.errors import ApiError
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.api.world import World
from fairlead.cache import Cache, CacheReader
from fairlead.client.client import Client
from fairlead.client.credentials import CredentialsError
from fairlead.client.discovery import NotServed
from fairlead.runtime.sources import DeclarationError, Source

log = logging.getLogger("fairlead.watched_kinds")

# A watch receives a bookmark about once a minute. After three minutes without one, the cached objects may be old.
STALE = 180.0
# A server that restarts is back within seconds. One request every half minute is no burden for a server that is down.
_DISCOVERY_BACKOFF = 0.25, 30.0


class NotWatched(LookupError):
    """A handler reads a kind or namespace from the cache that the operator does not watch.

    Add the kind to `owns=` or `watches=`, or the namespace to those of the run, or read with `ctx.live`. A clean-up
    handler does not see this error: the runtime reads the objects from the server and calls the handler again.
    """

    def __init__(self, kind: Kind, namespace: str | None, *, is_kind_watched: bool) -> None:
        if is_kind_watched:
            problem = f"the namespace {namespace} is not watched: run with -n {namespace} too, or with -A"
        else:
            problem = (
                f"{kind.kind} is not watched: name it in owns= or watches= (watches={{{kind.kind}: None}} wakes nobody)"
            )
        super().__init__(f"{problem}, or ask the server with ctx.live")
        self.kind = kind
        self.namespace = namespace


class WatchedKinds:
    """The cache of the kinds that an operator watches on one cluster, in the operator's namespaces.

    The class implements the `LocalCache` protocol, which the write functions use.
    """

    def __init__(self, client: Client, world: World, namespaces: Iterable[str], field_managers: Iterable[str]) -> None:
        self.cache = Cache(client, world, field_managers=field_managers)
        self._client = client
        self._world = world
        self._clock = world.clock
        self._selectors: dict[tuple[str, str], tuple[str | None, str | None]] = {}
        self._namespaces = tuple(namespaces) or None
        self._readers: dict[tuple[str, str], CacheReader] = {}

    async def watch(self, source: Source) -> None:
        """Start to watch a source. If discovery fails, wait and try again.

        Raises DeclarationError if the kind is already watched with other selectors.
        """
        kind, selector = source.kind, (source.labels, source.fields)
        if self._selectors.setdefault(kind.key, selector) != selector:
            raise DeclarationError(
                f"{kind} has two different selectors: use one, or watch all objects and filter them with when="
            )
        if kind.key not in self._readers:
            kind = await self._resolve(kind)
            self._readers[kind.key] = self.cache.watch(
                kind,
                namespaces=self._namespaces,
                labels=source.labels,
                fields=source.fields,
                optional=source.optional,
            )

    async def _resolve(self, kind: Kind) -> Kind:
        """Return the kind with the plural and scope from discovery, or unchanged if it is not served yet."""
        for failures in itertools.count(1):
            try:
                return await self._client.resolve(kind)
            except NotServed:
                break  # its watch logs the error and tries again until the kind is served
            except (ApiError, OSError) as error:
                is_permanent = error.code < 500 and error.code != 429 if isinstance(error, ApiError) else False
                if is_permanent or isinstance(error, CredentialsError):
                    raise
                delay = backoff.delay(failures, *_DISCOVERY_BACKOFF, self._world)
                log.warning("cannot discover the served kinds, trying again in %.1f s: %s", delay, error)
                await asyncio.sleep(delay)
        return kind

    def is_watched(self, kind: Kind) -> bool:
        """Return whether the operator watches the kind on this cluster."""
        return kind.key in self._readers

    def reader(self, kind: Kind, namespace: str | None = None) -> CacheReader:
        """Return the reader of the cached objects of that kind.

        Raises NotWatched if the operator does not watch the kind, or not in that namespace.
        """
        reader = self._readers.get(kind.key)
        if reader is None:
            raise NotWatched(kind, namespace, is_kind_watched=False)
        if namespace and reader.kind.namespaced and not reader.includes_namespace(namespace):
            raise NotWatched(kind, namespace, is_kind_watched=True)
        return reader

    # The `LocalCache` protocol of the writes

    def covers(self, kind: Kind, namespace: str | None) -> bool:
        return self.cache.covers(kind, namespace)

    def version(self, kind: Kind, name: str, namespace: str | None) -> tuple[str, str] | None:
        reader = self._readers.get(kind.key)
        snapshot = reader.get_snapshot(name, namespace) if reader is not None else None
        return (snapshot.uid, str(snapshot.version)) if snapshot is not None and snapshot.version else None

    def peek(self, kind: Kind, name: str, namespace: str | None) -> Object | None:
        reader = self._readers.get(kind.key)
        snapshot = reader.get_snapshot(name, namespace) if reader is not None else None
        return snapshot.object() if snapshot is not None else None

    def observe(self, kind: Kind, obj: Object) -> None:
        """Record an object from a live read, so that cache reads return this version or a newer one."""
        with self.cache.writing(kind, obj.namespace) as own:
            own.record(obj)

    def observe_removal(self, kind: Kind, name: str, namespace: str | None, uid: str) -> None:
        """Hide the object with this uid from cache reads, because the server does not have it any more."""
        reader = self._readers.get(kind.key)
        snapshot = reader.get_snapshot(name, namespace) if reader is not None else None
        # If the watch has already reported the deletion, it will not report it again.
        if snapshot is not None and snapshot.uid == uid:
            with self.cache.writing(kind, namespace) as own:
                own.record_delete(name, uid, None)

    # Health

    def problems(self) -> dict[str, str]:
        """Return a message for each watch that has not listed its objects yet or is stale."""
        problems, now = {}, self._clock.monotonic()
        for health in self.cache.health():
            if not health.synced:
                problems[health.scope] = health.error or "not listed yet"
            elif health.fed_at is not None and now - health.fed_at > STALE:
                problems[health.scope] = f"no event for {now - health.fed_at:.0f} s: {health.error or 'no error'}"
        return problems

    def staleness(self) -> dict[str, float]:
        """Return the seconds since the last message from the server, for each watch."""
        now = self._clock.monotonic()
        return {health.scope: now - health.fed_at for health in self.cache.health() if health.fed_at is not None}
