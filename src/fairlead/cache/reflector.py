"""The reflector: lists and watches the objects of one scope and stores them in an informer."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

import msgspec

from fairlead.api import backoff
from fairlead.api.errors import ApiError, BadRequest, Expired, Gone, Invalid
from fairlead.api.objects import as_integer
from fairlead.api.world import World
from fairlead.cache.informer import Informer, VersionWentBackwards
from fairlead.cache.store import EntriesByNamespace
from fairlead.client.client import SILENCE, Client, RawList
from fairlead.client.discovery import NotServed
from fairlead.client.transport import NotSent
from fairlead.client.watching import Watch, WatchSilent

log = logging.getLogger("fairlead.cache")

# More requests do not help a server that is down. A server that is back should be noticed within half a minute.
BACKOFF_BASE, BACKOFF_CAP = 0.8, 30.0
# A watch that lived this long shows that the earlier problem is over.
STABLE_AFTER = BACKOFF_CAP
# A watch that ends sooner without an event was ended by something between here and the server.
SHORT_WATCH = 1.0
# A restore from a backup stops every API server for longer than this.
OUTAGE = 10.0
# Seconds between two initial events before the reflector lists instead: a server that is too old to know initial
# events never sends their end.
INITIAL_EVENTS_TIMEOUT = 10.0
# Somebody who installs a CRD expects a reaction within seconds, and two small requests are no burden for a server.
OPTIONAL_POLL = 5.0
PAGE_SIZE = 500  # the page size of kubectl and client-go
# Servers end watches after half an hour to an hour. A few minutes spread the load of many clients evenly.
MIN_WATCH_SECONDS, MAX_WATCH_SECONDS = 300, 600

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(slots=True)
class WatchHealth:
    """The health of one watch. `fed_at` is the monotonic time of the last message from the server."""

    scope: str
    synced: bool = False
    fed_at: float | None = None
    failures: int = 0
    error: str | None = None
    resource_version: str = ""
    served: bool = True
    """Whether the server serves the kind. Only the watch of an optional kind notices that it does not."""


class Phase(Enum):
    """The step that the reflector takes before it opens the next watch."""

    STREAM_INITIAL_STATE = "stream the initial state as watch events"
    LIST_PAGES = "list the initial state page by page"
    RESUME = "resume the watch at the cached version, after a check that the server is not older if that is in doubt"


class FailureStreak(NamedTuple):
    """The number of failures in a row. `expired` is True if the last one requires a new list, such as a 410."""

    length: int
    is_expired: bool


@dataclass(frozen=True, slots=True)
class ReflectorState:
    """The state of a reflector between two watches. Each `on_…` method returns the state after that event.

    Raises ValueError for STREAM_INITIAL_STATE with a server that does not support initial events.
    """

    phase: Phase = Phase.STREAM_INITIAL_STATE
    supports_initial_events: bool = True
    streak: FailureStreak | None = None

    def __post_init__(self) -> None:
        if self.phase is Phase.STREAM_INITIAL_STATE and not self.supports_initial_events:
            raise ValueError("this server does not support initial events: list pages instead")

    @property
    def is_listing(self) -> bool:
        """Whether the next step is a complete list, which replaces all cached objects."""
        return self.phase in (Phase.STREAM_INITIAL_STATE, Phase.LIST_PAGES)

    def on_replaced(self) -> "ReflectorState":
        """Return the state after the informer stored a complete list."""
        return replace(self, phase=Phase.RESUME)

    def on_watch_ended(self, *, is_stable: bool) -> "ReflectorState":
        """Return the state after the server ended the watch.

        `is_stable` means that the watch was open long enough to reset the back-off.
        """
        return replace(self, phase=Phase.RESUME, streak=None if is_stable else self.streak)

    def on_initial_events_unsupported(self) -> "ReflectorState":
        """Return the state after the server rejected initial events. They are not requested again."""
        return replace(self, phase=Phase.LIST_PAGES, supports_initial_events=False)

    def on_initial_events_stalled(self) -> "ReflectorState":
        """Return the state after the initial events did not end: list pages now, try initial events the next time."""
        return replace(self, phase=Phase.LIST_PAGES)

    def on_failure(self, *, is_expired: bool, is_stable: bool) -> "ReflectorState":
        """Return the state after a failure.

        `is_expired` means that a new list is needed. `is_stable` means that the watch was open long enough to reset the
        back-off.
        """
        length = 1 if is_stable or self.streak is None else self.streak.length + 1
        phase = self.phase
        if not self.is_listing:
            phase = self._list_phase if is_expired else Phase.RESUME
        return replace(self, phase=phase, streak=FailureStreak(length, is_expired))

    @property
    def _list_phase(self) -> Phase:
        return Phase.STREAM_INITIAL_STATE if self.supports_initial_events else Phase.LIST_PAGES


class _BookmarkMetadata(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""
    annotations: dict[str, str] = {}


class _Bookmark(msgspec.Struct, gc=False):
    metadata: _BookmarkMetadata


_decode_bookmark = msgspec.json.Decoder(_Bookmark).decode


class _WatchEndedEarly(ConnectionError):
    """The server ended the watch before the end of the initial events, or without a single event."""


class _InitialEventsStalled(ConnectionError):
    """The server did not send the bookmark that ends the initial events in time."""


class Reflector:
    """Lists and watches the objects of one scope and stores them in an informer, until it is cancelled.

    Guarantees:
    - The initial state comes as a stream of watch events if the server supports that, else page by page. Both are at
      the newest version. If the stream ends before the initial state is complete, the reflector starts again.
    - Then it watches. It resumes at the last version after the server ended the watch, after a broken or half-open
      connection, 429, 5xx and refused connections. After a failure it waits for a back-off. It sends no other request
      than the watch, unless the server was down meanwhile, or has not confirmed its version for 90 s.
    - It lists again only if the server no longer has the version (410, as an answer or as an event) or has only older
      ones (it was restored from a backup).

    Does not guarantee: a limit on the time to recover. `health.fed_at` is the time of the last message from the server.
    A server that is restored from a backup without an outage is noticed after 90 s without a bookmark, and not at all
    if it reaches the cached version before.

    Raises: only CancelledError. It logs every other error and tries again.
    """

    def __init__(self, client: Client, informer: Informer, world: World, *, optional: bool = False) -> None:
        self._client = client
        self._optional = optional
        self.served_handlers: list[Callable[[], None]] = []
        """Called when the server starts or stops to serve an optional kind."""
        self._informer = informer
        self._world = world
        self._state = ReflectorState()
        self._confirmed_at = float("-inf")  # when the server last sent a version that is not older than the cache
        self._broken_at = float("-inf")  # when the last watch ended
        self._was_refused = False  # whether the server was down since then
        self.health = WatchHealth(str(informer.scope))

    async def run(self) -> None:
        """List and watch until the task is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                await self._list_and_watch()
            except NotServed as error:
                if self._optional:
                    await asyncio.sleep(await self._show_nothing())
                else:
                    await asyncio.sleep(self._handle_failure(error, is_stable=loop.time() - started >= STABLE_AFTER))
            except Exception as error:
                await asyncio.sleep(self._handle_failure(error, is_stable=loop.time() - started >= STABLE_AFTER))

    async def _show_nothing(self) -> float:
        """Empty the cache, because the server does not serve the kind. Return the seconds until the next attempt."""
        was_served, self.health.served = self.health.served, False
        await self._informer.replace(EntriesByNamespace(), "0")
        self._state = ReflectorState()
        self.health.synced, self.health.failures, self.health.error = True, 0, None
        self._note_fed()
        if was_served:
            log.info("%s: the server does not serve this optional kind yet", self._informer.scope)
            self._call_served_handlers()
        return OPTIONAL_POLL * self._world.random.uniform(0.8, 1.2)

    def _call_served_handlers(self) -> None:
        for handler in self.served_handlers:
            handler()

    def _handle_failure(self, error: Exception, *, is_stable: bool) -> float:
        """Record and log the error, and return the seconds to wait before the next attempt."""
        scope, health, previous = self._informer.scope, self.health, self._state.streak
        health.failures += 1
        health.error = f"{type(error).__name__}: {error}"
        expired = _is_expired(error) or isinstance(error, VersionWentBackwards)
        self._was_refused = self._was_refused or isinstance(error, NotSent)
        self._state = self._state.on_failure(is_expired=expired, is_stable=is_stable)
        count = self._state.streak.length if self._state.streak else 1
        # Relist without a delay, also after an outage: the server is back, and only a list helps.
        if expired and (count == 1 or previous is None or not previous.is_expired):
            log.info("%s: listing again: %s", scope, error)
            return 0.0
        if isinstance(error, WatchSilent):  # a server sends no bookmarks for Events; if it is down, the next try fails
            log.info("%s: watching again: %s", scope, error)
            return 0.0
        delay = backoff.delay(count, BACKOFF_BASE, BACKOFF_CAP, self._world)
        if isinstance(error, ApiError) and error.retry_after:
            delay = max(delay, error.retry_after)
        is_expected = isinstance(error, ApiError | OSError | VersionWentBackwards)
        log.log(
            logging.WARNING if is_expected else logging.ERROR,
            "%s: trying again in %.1f s: %s",
            scope,
            delay,
            health.error,
            exc_info=not is_expected,
        )
        return delay

    async def _list_and_watch(self) -> None:
        """Take the step of the current `Phase`, then watch until the server ends the watch."""
        if self._state.phase is Phase.LIST_PAGES:
            await self._list()
        elif self._state.phase is Phase.RESUME and self._is_in_doubt():
            await self._check_version()
        initial_events = self._state.phase is Phase.STREAM_INITIAL_STATE
        timeout = self._world.random.randint(MIN_WATCH_SECONDS, MAX_WATCH_SECONDS)
        scope, loop = self._informer.scope, asyncio.get_running_loop()
        started = loop.time()
        try:
            async with self._client.watch(
                scope.kind,
                scope.namespace,
                resource_version=None if initial_events else self._informer.resource_version,
                labels=scope.labels,
                fields=scope.fields,
                initial_events=initial_events,
                timeout_seconds=timeout,
                metadata_only=scope.metadata_only,
            ) as watch:
                if initial_events:
                    await self._receive_initial_events(watch)
                self.health.failures, self.health.error = 0, None
                self._note_fed()
                try:
                    received = await self._receive_events(watch)
                finally:
                    self._broken_at = self._world.clock.monotonic()
        except (Invalid, BadRequest):
            if self._state.phase is not Phase.STREAM_INITIAL_STATE:
                raise
            self._state = self._state.on_initial_events_unsupported()
            return
        except _InitialEventsStalled as stalled:
            log.warning("%s: %s", scope, stalled)
            self._state = self._state.on_initial_events_stalled()
            return
        lived = loop.time() - started
        if lived < SHORT_WATCH and not received:
            raise _WatchEndedEarly(f"the server ended the watch after {lived:.2f} s without an event")
        self._state = self._state.on_watch_ended(is_stable=lived >= STABLE_AFTER)

    async def _receive_initial_events(self, watch: Watch) -> None:
        """Read the initial events up to the bookmark that ends them, and store them as the informer's objects."""
        encode, objects, loop = self._informer.codec.encode, EntriesByNamespace(), asyncio.get_running_loop()
        try:
            async with asyncio.timeout(INITIAL_EVENTS_TIMEOUT) as deadline:
                extended_at = loop.time()
                async for kind, raw in watch:
                    if kind == "BOOKMARK":
                        bookmark = _decode_bookmark(raw).metadata
                        if bookmark.annotations.get(_INITIAL_EVENTS_END) == "true":
                            break
                        continue
                    namespace, name, _, entry = encode(raw)
                    if kind == "DELETED":
                        objects.get(namespace, {}).pop(name, None)
                    else:
                        objects.setdefault(namespace, {})[name] = entry
                    if loop.time() - extended_at > SHORT_WATCH:
                        extended_at = loop.time()
                        deadline.reschedule(extended_at + INITIAL_EVENTS_TIMEOUT)
                else:
                    raise _WatchEndedEarly("the server ended the watch before the end of its initial events")
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise _InitialEventsStalled(
                f"no end of the initial events within {INITIAL_EVENTS_TIMEOUT:g} s: listing instead"
            ) from error
        await self._replace(objects, bookmark.resource_version)

    async def _receive_events(self, watch: Watch) -> int:
        """Pass the watch events to the informer until the server ends the watch, and return the number of events."""
        apply_event, received = self._informer.apply_event, 0
        async for kind, raw in watch:
            if kind == "BOOKMARK":
                self._informer.apply_bookmark(_decode_bookmark(raw).metadata.resource_version)
            else:
                apply_event(kind, raw)
            received += 1
            self._note_confirmed()
            self._note_fed()
        return received

    async def _list(self) -> None:
        """List all objects page by page. If the version expires between two pages, list them in one request."""
        try:
            objects, version = await self._list_pages(PAGE_SIZE)
        except ApiError as error:
            if not _is_expired(error):
                raise
            objects, version = await self._list_pages(None)
        await self._replace(objects, version)

    async def _list_pages(self, limit: int | None) -> tuple[EntriesByNamespace, str]:
        encode, objects = self._informer.codec.encode, EntriesByNamespace()
        page = await self._get_page(limit)
        version = page.resource_version
        while True:
            for count, raw in enumerate(page.items):
                namespace, name, _, entry = encode(raw)
                objects.setdefault(namespace, {})[name] = entry
                if count % PAGE_SIZE == PAGE_SIZE - 1:
                    await asyncio.sleep(0)
            if not page.continue_:
                return objects, version
            page = await self._get_page(limit, page.continue_)

    async def _get_page(self, limit: int | None, continue_: str | None = None) -> RawList:
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

    def _is_in_doubt(self) -> bool:
        """Return whether the server may have been restored from a backup since it last confirmed its version.

        It then accepts a watch at a version that it has not reached yet, and sends neither events nor bookmarks until
        it reaches that version. A restore stops the server: connections are refused, or the outage takes a while. And
        a server that was not restored sends a bookmark every minute. A watch that merely ended early, such as by a cut
        connection or a 5xx, resumes without a request for the version.
        """
        now = self._world.clock.monotonic()
        return self._was_refused or now - self._broken_at >= OUTAGE or now - self._confirmed_at >= SILENCE

    def _note_confirmed(self) -> None:
        """Remember that the server has sent a version that is not older than the cache."""
        self._confirmed_at, self._was_refused = self._world.clock.monotonic(), False

    async def _check_version(self) -> None:
        """Raise VersionWentBackwards if the server's newest version is older than the version of the cache."""
        cached, page = self._informer.position, await self._get_page(1)
        if as_integer(page.resource_version) < cached:
            raise VersionWentBackwards(f"the server is at version {page.resource_version}, and was at {cached}")
        self._note_confirmed()
        self._broken_at = self._confirmed_at

    async def _replace(self, objects: EntriesByNamespace, version: str) -> None:
        await self._informer.replace(objects, version)
        self._note_confirmed()
        self._broken_at = self._confirmed_at
        self._state = self._state.on_replaced()
        self.health.synced = True
        self._note_fed()
        if not self.health.served:
            self.health.served = True
            log.info("%s: the server serves this optional kind now", self._informer.scope)
            self._call_served_handlers()

    def _note_fed(self) -> None:
        health = self.health
        health.fed_at = self._world.clock.monotonic()
        health.resource_version = self._informer.resource_version


def _is_expired(error: Exception) -> bool:
    return isinstance(error, ApiError) and (error.code == 410 or isinstance(error, Expired | Gone))
