"""The watch handler: the changes of a kind as they happen, from a version on.

A watch is a cursor into the event history of its kind, without a queue of its own. A slow reader therefore costs
nothing, and one that falls behind the history gets a 410. Events are encoded once per representation, for all readers.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from fairlead.server.errors import field_errors
from fairlead.server.errors.statuses import StatusError, expired
from fairlead.server.golang import encoding
from fairlead.server.http import negotiation
from fairlead.server.http.messages import Request, StreamingResponse
from fairlead.server.http.options import int64_option, invalid_options, parse_boolean
from fairlead.server.http.representations import Representation
from fairlead.server.http.routing import Route
from fairlead.server.storage import versions
from fairlead.server.storage.store import ChangeEvent, ObjectTable
from fairlead.server.storage.stored import Object, Stored
from fairlead.server.verbs import lists
from fairlead.server.webhooks.calls import RequestMemory, WebhookCallNeeded, use_memory

if TYPE_CHECKING:
    from fairlead.server.app import Server
    from fairlead.server.storage.replica import Replica

BOOKMARK_EVERY = 60.0  # seconds
BOOKMARK_BEFORE_END = 2.0
MIN_TIMEOUT = 1800  # seconds; a watch without timeoutSeconds lasts between this and twice this
BATCH = 512  # events in one chunk
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(slots=True)
class Watch:
    """One open watch. Each item of `chunks` holds one or more complete events."""

    server: "Server"
    table: ObjectTable
    namespace: str | None
    selection: lists.Selection
    representation: Representation
    sends_bookmarks: bool
    timeout: float
    version: int  # the watch sends the changes after this version
    sends_initial_events: bool  # the current objects are sent first
    announce: bool  # a bookmark with an annotation follows the current objects
    replica: "Replica | None" = None

    async def chunks(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        start = loop.time()
        deadline = start + self.timeout
        undone_count = self.server.store.undo_count
        if self.sends_initial_events:
            if self.replica is not None:
                await self.replica.wait_for(self.version)
            self.version = max(self._get_visible_version(), self.table.compacted_version)
            position = self.table.position_after(self.version)
            for chunk in await self._build(self._build_initial_chunks):
                yield chunk
        else:
            position = self.table.position_after(self.version)
        bookmark = self._find_next_bookmark(start, deadline)
        # If writes were undone, the watch ends, and its reader resumes from an earlier version.
        while loop.time() < deadline and undone_count == self.server.store.undo_count:
            visible_version = self._get_visible_version()
            events = self.table.events_from(position)
            if events is None:
                yield self.encode_error(build_too_old_error(self.version, self.table.compacted_version))
                return
            if self.replica is not None:
                events = [event for event in events if event.version <= visible_version]
            if events:
                events = events[:BATCH]
                position += len(events)
                self.version = events[-1].version
                for chunk in await self._build(partial(self._encode_events, events)):
                    yield chunk
                continue  # more events may have come meanwhile, and they go before a bookmark
            if not self._is_served():
                return
            now = loop.time()
            if bookmark is not None and now >= bookmark:
                bookmark = self._find_next_bookmark(now, deadline)
                if visible_version >= self.version:  # a replica may not have reached the version where this watch began
                    yield self._encode_bookmark(visible_version, {})
            until = deadline if bookmark is None else min(deadline, bookmark)
            try:
                async with asyncio.timeout_at(until):
                    await self._wait_for_events(position)
            except TimeoutError:
                pass

    def _is_served(self) -> bool:
        """Return whether the kind is still served. The deletion of a CRD ends the watches of its instances."""
        resource, registry = self.representation.resource, self.server.registry
        return not resource.custom or registry.find(resource.group, resource.version, resource.plural) is not None

    def _get_visible_version(self) -> int:
        """Return the newest version whose changes this watch may send: that of the store or of a stale replica."""
        return self.server.store.version if self.replica is None else self.replica.version

    async def _wait_for_events(self, position: int) -> None:
        """Wait until the history has an event at `position` that this watch may send."""
        await self.table.wait_for_event(position)
        if self.replica is not None and (events := self.table.events_from(position)):
            await self.replica.wait_for(events[0].version)

    async def _build(self, build: Callable[[], list[bytes]]) -> list[bytes]:
        """Return the chunks that `build` returns, after calling the conversion webhook of the kind if it has one."""
        if self.representation.resource.converter is None:
            return build()
        memory = RequestMemory()
        while True:
            try:
                with use_memory(memory):
                    return build()
            except WebhookCallNeeded as needed:
                await memory.make_calls(self.server.webhook_caller, needed)
            except StatusError as failure:
                return [self.encode_error(failure)]

    def _encode_events(self, events: list[ChangeEvent]) -> list[bytes]:
        resource = self.representation.resource
        if resource.converter is not None:
            shown = [event for event in events if self.namespace in (None, event.namespace)]
            versions.convert_all(resource, [event.stored for event in shown])
        chunk = b"".join(frame for event in events if (frame := self._encode_event(event)))
        return [chunk] if chunk else []

    def _build_initial_chunks(self) -> list[bytes]:
        snapshot = [stored for _, stored in self.table.snapshot(self.namespace, self.version)]
        if self.representation.resource.converter is not None:
            versions.convert_all(self.representation.resource, snapshot)
        frames = [self._encode("ADDED", stored) for stored in snapshot if self.selection.matches(stored)]
        if self.announce:
            frames.append(self._encode_bookmark(self.version, {INITIAL_EVENTS_END: "true"}))
        return [b"".join(frames[at : at + BATCH]) for at in range(0, len(frames), BATCH)]

    def _find_next_bookmark(self, now: float, deadline: float) -> float | None:
        if not self.sends_bookmarks:
            return None
        before_end = deadline - BOOKMARK_BEFORE_END
        return before_end if now < before_end < now + BOOKMARK_EVERY else now + BOOKMARK_EVERY

    def _encode_event(self, event: ChangeEvent) -> bytes:
        """Return the encoded event for a change, or b"" if the selectors of the watch exclude the object."""
        stored, previous = event.stored, event.previous
        if self.namespace is not None and event.namespace != self.namespace:
            return b""
        kind: str = event.type
        if self.selection:
            now = event.type != "DELETED" and self.selection.matches(stored)
            before = previous is not None and self.selection.matches(previous)
            if not now and not before:
                return b""
            if now != before:
                kind = "ADDED" if now else "DELETED"
            if not now and event.type != "DELETED":
                assert previous is not None
                return self._encode_shared(event, kind, _set_version(previous, event.version))
        return self._encode_shared(event, kind, stored)

    def _encode_shared(self, event: ChangeEvent, kind: str, stored: Stored) -> bytes:
        if not self.representation.shared:
            return self._encode(kind, stored)
        key = (kind, self.representation.name, self.representation.resource.version)
        frame = event.frames.get(key)
        if frame is None:
            frame = event.frames[key] = self._encode(kind, stored)
        return frame

    def _encode(self, kind: str, stored: Stored) -> bytes:
        return b'{"type":"%s","object":%s}\n' % (kind.encode(), self.representation.encode(stored))

    def _encode_bookmark(self, version: int, annotations: dict[str, str]) -> bytes:
        obj = self.representation.bookmark(version, annotations)
        return b'{"type":"BOOKMARK","object":%s}\n' % encoding.encode(obj)

    def encode_error(self, failure: StatusError) -> bytes:
        return b'{"type":"ERROR","object":%s}\n' % encoding.encode(failure.status)


def _set_version(stored: Stored, version: int) -> Stored:
    metadata = {**stored.object["metadata"], "resourceVersion": str(version)}
    obj: Object = {**stored.object, "metadata": metadata}
    return Stored(obj, version)


def build_too_old_error(version: int, floor: int) -> StatusError:
    return expired(f"too old resource version: {version} ({floor})")


def watch(server: "Server", request: Request, route: Route) -> StreamingResponse:
    """Return the streaming response to a watch. A version older than the history is an ERROR event in the stream."""
    resource = route.resource
    if "as=PartialObjectMetadataList" in request.headers.get("accept", ""):
        return StreamingResponse(_yield_chunk(b""))  # an event cannot be represented as a list
    representation = negotiation.negotiate(request, resource, is_list=False, is_stream=True)
    int64_option(request, "limit")
    lists.parse_selectors(request)
    requested = request.first("resourceVersion")
    match = request.first("resourceVersionMatch")
    bookmarks = "allowWatchBookmarks" in request.query and parse_boolean(request.first("allowWatchBookmarks"))
    has_initial_events = "sendInitialEvents" in request.query
    send_initial = has_initial_events and parse_boolean(request.first("sendInitialEvents"))
    _check_options(match, has_initial_events, request.first("continue"))
    selection = lists.parse_selection(server, request, route)
    if removed := server.definitions.find_removed_version(resource):
        raise versions.build_unreadable_list_error(resource, removed)
    is_from_start = requested in ("", "0")
    version = server.store.version if is_from_start else lists.parse_version(requested, "watch")
    initial = send_initial or (is_from_start and not has_initial_events)
    announce = bookmarks and (send_initial or (is_from_start and not has_initial_events))
    table = server.table(resource)
    timeout = int64_option(request, "timeoutSeconds") or server.world.random.randint(MIN_TIMEOUT, 2 * MIN_TIMEOUT)
    new_watch = Watch(
        server=server,
        table=table,
        namespace=(route.namespace or None) if resource.namespaced else "",
        selection=selection,
        representation=representation,
        sends_bookmarks=bookmarks,
        timeout=float(timeout),
        version=0 if initial and requested == "0" else version,
        sends_initial_events=initial,
        announce=announce,
        replica=request.replica,
    )
    if send_initial and version > server.store.version:
        return StreamingResponse(
            _yield_chunk(new_watch.encode_error(lists.version_too_large(version, server.store.version)))
        )
    if not initial and version < table.compacted_version:
        return StreamingResponse(
            _yield_chunk(new_watch.encode_error(build_too_old_error(version, table.compacted_version)))
        )
    response = StreamingResponse(new_watch.chunks())
    response.warnings = request.warnings
    return response


def _check_options(match: str, has_initial_events: bool, continued: str) -> None:
    field, errors = "resourceVersionMatch", []
    if has_initial_events and match != "NotOlderThan":
        message = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        errors.append(field_errors.forbidden(field, message))
    if match and not has_initial_events:
        message = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        errors.append(field_errors.forbidden(field, message))
    if match and match != "NotOlderThan":
        errors.append(field_errors.not_supported(field, match, ("NotOlderThan",)))
    if continued:
        errors.append(field_errors.forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
    if errors:
        raise invalid_options("ListOptions", errors)


async def _yield_chunk(chunk: bytes) -> AsyncIterator[bytes]:
    if chunk:
        yield chunk
