"""Keeps one informer fed: list or stream what is there, watch from there on, come back whatever happens."""

import asyncio
import logging
from dataclasses import dataclass

import msgspec

from fairlead.api import backoff
from fairlead.api.errors import ApiError, BadRequest, Expired, Gone, Invalid
from fairlead.api.objects import as_integer
from fairlead.api.world import World
from fairlead.cache.informer import Informer, WentBackwards
from fairlead.cache.store import Objects
from fairlead.client.client import Client, RawList
from fairlead.client.watching import Watch, WatchSilent

log = logging.getLogger("fairlead.cache")

# A server that is down is not helped by more requests, and one that is back should be noticed within half a minute.
BASE, CAP = 0.8, 30.0
# A stream that held this long shows that whatever was wrong before is over.
HELD = CAP
# A stream that ends so soon with nothing told is not a stream: something between here and the server ends it.
SHORT = 1.0
# How long a server may take between two of its first events before it is listed instead: one too old to know them
# never ends them.
STALL = 10.0
PAGE = 500  # what kubectl and client-go ask for
# Servers end watches after half an hour to an hour; a few minutes spread the load of many clients evenly.
SHORTEST_WATCH, LONGEST_WATCH = 300, 600

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(slots=True)
class Health:
    """How a stream fares. `fed_at` is the world's monotonic time at which the server last showed that it is there."""

    scope: str
    synced: bool = False
    fed_at: float | None = None
    failures: int = 0
    error: str | None = None
    resource_version: str = ""


class _Meta(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""
    annotations: dict[str, str] = {}


class _Bookmark(msgspec.Struct, gc=False):
    metadata: _Meta


_decode_bookmark = msgspec.json.Decoder(_Bookmark).decode


class _Interrupted(ConnectionError):
    """The stream ended before it had told what it should."""


class _Stalled(ConnectionError):
    """The initial events do not end."""


class Reflector:
    """Feeds an informer from a server, for ever.

    - The state comes as a stream of initial events where the server offers them, as pages otherwise, both at the
      newest version there is. A stream that ends in the middle of them starts over.
    - From then on it watches, and resumes where it was: after the server ended the watch, a broken or half-open
      connection, 429, 5xx, refused connections; each after a back-off where something was wrong.
    - It lists again only when the server no longer knows the version (410, as an answer or as an event) or knows only
      older ones (it was restored from a backup).
    """

    def __init__(self, client: Client, informer: Informer, world: World) -> None:
        self._client = client
        self._informer = informer
        self._world = world
        self._relist = True
        self._doubt = False  # the last stream ended before its time: is it still the server that we knew?
        self._offers_stream = True
        self._stalled = False  # it did not end its initial events last time
        self._failed = 0  # in a row, for the back-off
        self._expired = False  # the last failure asked for a list
        self._told = 0
        self.health = Health(str(informer.scope))

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                await self._turn()
            except Exception as error:
                self._doubt = True
                self._failed = 1 if loop.time() - started >= HELD else self._failed + 1
                await asyncio.sleep(self._pause(error))

    def _pause(self, error: Exception) -> float:
        """Note what went wrong, and say how long to wait before the next try."""
        scope, health = self._informer.scope, self.health
        health.failures += 1
        health.error = f"{type(error).__name__}: {error}"
        again, self._expired = self._expired, _is_expired(error) or isinstance(error, WentBackwards)
        if self._expired:
            self._relist = True
            if self._failed == 1 or not again:  # after an outage, too: the server is back, and only a list helps
                log.info("%s: listing again: %s", scope, error)
                return 0.0
        if isinstance(error, WatchSilent):  # a server tells no bookmarks of Events: if it is gone, the next try says so
            log.info("%s: asking anew: %s", scope, error)
            return 0.0
        pause = backoff.delay(self._failed, BASE, CAP, self._world)
        if isinstance(error, ApiError) and error.retry_after:
            pause = max(pause, error.retry_after)
        expected = isinstance(error, ApiError | OSError | WentBackwards)
        log.log(
            logging.WARNING if expected else logging.ERROR,
            "%s: trying again in %.1f s: %s",
            scope,
            pause,
            health.error,
            exc_info=not expected,
        )
        return pause

    async def _turn(self) -> None:
        """One stream, from what it starts with to its end."""
        if self._relist and (self._stalled or not self._offers_stream):
            await self._list()
        elif self._doubt and not self._relist:
            await self._check_version()
        initial = self._relist
        asked = self._world.random.randint(SHORTEST_WATCH, LONGEST_WATCH)
        scope, loop = self._informer.scope, asyncio.get_running_loop()
        started, told = loop.time(), self._told
        try:
            async with self._client.watch(
                scope.kind,
                scope.namespace,
                resource_version=None if initial else self._informer.resource_version,
                labels=scope.labels,
                fields=scope.fields,
                initial_events=initial,
                timeout_seconds=asked,
                metadata_only=scope.metadata_only,
            ) as watch:
                if initial:
                    await self._take_initial(watch)
                self.health.failures, self.health.error = 0, None
                self._fed()
                await self._follow(watch)
        except (Invalid, BadRequest):
            if not (initial and self._relist):
                raise
            self._offers_stream = False  # it does not know initial events; pages then
            return
        except _Stalled as stalled:
            log.warning("%s: %s", scope, stalled)
            self._stalled = True
            return
        lived = loop.time() - started
        if lived < SHORT and told == self._told:
            raise _Interrupted(f"the server ended the watch after {lived:.2f} s with nothing told")
        if lived >= HELD:
            self._failed = 0
        self._doubt = lived < asked - SHORT

    async def _take_initial(self, watch: Watch) -> None:
        """What is there, as events up to a bookmark that says so."""
        read, objects, loop = self._informer.entries.read, Objects(), asyncio.get_running_loop()
        try:
            async with asyncio.timeout(STALL) as patience:
                patient_since = loop.time()
                async for kind, raw in watch:
                    if kind == "BOOKMARK":
                        bookmark = _decode_bookmark(raw).metadata
                        if bookmark.annotations.get(_INITIAL_EVENTS_END) == "true":
                            break
                        continue
                    namespace, name, _, entry = read(raw)
                    if kind == "DELETED":
                        objects.get(namespace, {}).pop(name, None)
                    else:
                        objects.setdefault(namespace, {})[name] = entry
                    if loop.time() - patient_since > SHORT:
                        patient_since = loop.time()
                        patience.reschedule(patient_since + STALL)
                else:
                    raise _Interrupted("the server ended the watch in the middle of its initial events")
        except TimeoutError as error:
            if not patience.expired():
                raise
            raise _Stalled(f"no end of the initial events within {STALL:g} s: listing instead") from error
        await self._replace(objects, bookmark.resource_version)

    async def _follow(self, watch: Watch) -> None:
        event = self._informer.event
        async for kind, raw in watch:
            if kind == "BOOKMARK":
                self._informer.bookmark(_decode_bookmark(raw).metadata.resource_version)
            else:
                event(kind, raw)
            self._told += 1
            self._fed()

    async def _list(self) -> None:
        """What is there, page by page; all at once if the version expires between two pages."""
        try:
            objects, version = await self._pages(PAGE)
        except ApiError as error:
            if not _is_expired(error):
                raise
            objects, version = await self._pages(None)
        await self._replace(objects, version)
        self._stalled = False

    async def _pages(self, limit: int | None) -> tuple[Objects, str]:
        read, objects = self._informer.entries.read, Objects()
        page = await self._page(limit)
        version = page.resource_version
        while True:
            for count, raw in enumerate(page.items):
                namespace, name, _, entry = read(raw)
                objects.setdefault(namespace, {})[name] = entry
                if count % PAGE == PAGE - 1:
                    await asyncio.sleep(0)
            if not page.continue_:
                return objects, version
            page = await self._page(limit, page.continue_)

    async def _page(self, limit: int | None, continue_: str | None = None) -> RawList:
        scope = self._informer.scope
        return await self._client.list_raw(
            scope.kind,
            scope.namespace,
            labels=scope.labels,
            fields=scope.fields,
            limit=limit,
            continue_=continue_,
            metadata_only=scope.metadata_only,
        )

    async def _check_version(self) -> None:
        """A server that was restored from a backup would let us wait for a version that it has yet to reach."""
        known, page = self._informer.position, await self._page(1)
        if as_integer(page.resource_version) < known:
            raise WentBackwards(f"the server is at version {page.resource_version}, and was at {known}")
        self._doubt = False

    async def _replace(self, objects: Objects, version: str) -> None:
        await self._informer.replace(objects, version)
        self._relist = self._doubt = False
        self.health.synced = True
        self._fed()

    def _fed(self) -> None:
        health = self.health
        health.fed_at = self._world.clock.monotonic()
        health.resource_version = self._informer.resource_version


def _is_expired(error: Exception) -> bool:
    return isinstance(error, ApiError) and (error.code == 410 or isinstance(error, Expired | Gone))
