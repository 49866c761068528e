"""watch: the changes of a kind as they happen, from a version on.

A watch is a cursor into its kind's history, not a queue of its own: a slow reader costs nothing, and one that falls
behind the history is cut with a 410. Frames are encoded once per representation, whoever reads them.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.server.errors import field_errors
from fairlead.server.errors.statuses import StatusError, expired
from fairlead.server.golang import encoding
from fairlead.server.http import representations
from fairlead.server.http.messages import Request, StreamingResponse
from fairlead.server.http.options import int64_option, invalid_options, parse_boolean
from fairlead.server.http.representations import Representation
from fairlead.server.http.routing import Route
from fairlead.server.storage import versions
from fairlead.server.storage.store import Event, Table
from fairlead.server.storage.stored import Object, Stored
from fairlead.server.verbs import lists

if TYPE_CHECKING:
    from fairlead.server.app import Server
    from fairlead.server.faults.replica import Replica

BOOKMARK_EVERY = 60.0  # seconds
BOOKMARK_BEFORE_END = 2.0
SHORTEST = 1800  # seconds a watch lasts that asks for no timeout: at least this, at most twice this
BATCH = 512  # frames given to a reader at once
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(slots=True)
class Watch:
    """One watch. Iterate `chunks`: each holds whole frames."""

    server: "Server"
    table: Table
    namespace: str | None
    selection: lists.Selection
    representation: Representation
    bookmarks: bool
    timeout: float
    version: int  # changes after this one are sent
    initial: bool  # the present objects are sent first, as they are at `version` or later
    announce: bool  # an annotated bookmark ends them
    replica: "Replica | None" = None

    async def chunks(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        start = loop.time()
        deadline = start + self.timeout
        undone = self.server.store.undone
        if self.initial:
            if self.replica is not None:
                await self.replica.wait_for(self.version)
            self.version = max(self._known(), self.table.floor)
            position = self.table.position(self.version)
            for chunk in self._present():
                yield chunk
        else:
            position = self.table.position(self.version)
        bookmark = self._next_bookmark(start, deadline)
        # What was read may have been undone: its reader resumes from before.
        while loop.time() < deadline and undone == self.server.store.undone:
            known = self._known()
            events = self.table.read(position)
            if events is None:
                yield self.error(too_old(self.version, self.table.floor))
                return
            if self.replica is not None:
                events = [event for event in events if event.version <= known]
            if events:
                events = events[:BATCH]
                position += len(events)
                self.version = events[-1].version
                chunk = b"".join(frame for event in events if (frame := self._frame(event)))
                if chunk:
                    yield chunk
                continue  # there may be more by now, and a bookmark must not pass it by
            now = loop.time()
            if bookmark is not None and now >= bookmark:
                bookmark = self._next_bookmark(now, deadline)
                if known >= self.version:  # a replica may not have got to where this watch began
                    yield self._bookmark(known, {})
            until = deadline if bookmark is None else min(deadline, bookmark)
            try:
                async with asyncio.timeout_at(until):
                    await self._more(position)
            except TimeoutError:
                pass

    def _known(self) -> int:
        """Changes up to this version can be told."""
        return self.server.store.version if self.replica is None else self.replica.version

    async def _more(self, position: int) -> None:
        """Wait until there is something to tell."""
        await self.table.changed(position)
        if self.replica is not None and (events := self.table.read(position)):
            await self.replica.wait_for(events[0].version)

    def _present(self) -> list[bytes]:
        frames = [
            self._encoded("ADDED", stored)
            for _, stored in self.table.snapshot(self.namespace, self.version)
            if self.selection.matches(stored)
        ]
        if self.announce:
            frames.append(self._bookmark(self.version, {INITIAL_EVENTS_END: "true"}))
        return [b"".join(frames[at : at + BATCH]) for at in range(0, len(frames), BATCH)]

    def _next_bookmark(self, now: float, deadline: float) -> float | None:
        if not self.bookmarks:
            return None
        before_end = deadline - BOOKMARK_BEFORE_END
        return before_end if now < before_end < now + BOOKMARK_EVERY else now + BOOKMARK_EVERY

    def _frame(self, event: Event) -> bytes:
        """This watch's frame for a change, empty where the change is none of its business."""
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
                return self._shared(event, kind, _at_version(previous, event.version))
        return self._shared(event, kind, stored)

    def _shared(self, event: Event, kind: str, stored: Stored) -> bytes:
        if not self.representation.shared:
            return self._encoded(kind, stored)
        key = (kind, self.representation.name, self.representation.resource.version)
        frame = event.frames.get(key)
        if frame is None:
            frame = event.frames[key] = self._encoded(kind, stored)
        return frame

    def _encoded(self, kind: str, stored: Stored) -> bytes:
        return b'{"type":"%s","object":%s}\n' % (kind.encode(), self.representation.encode(stored))

    def _bookmark(self, version: int, annotations: dict[str, str]) -> bytes:
        obj = self.representation.bookmark(version, annotations)
        return b'{"type":"BOOKMARK","object":%s}\n' % encoding.encode(obj)

    def error(self, failure: StatusError) -> bytes:
        return b'{"type":"ERROR","object":%s}\n' % encoding.encode(failure.status)


def _at_version(stored: Stored, version: int) -> Stored:
    metadata = {**stored.object["metadata"], "resourceVersion": str(version)}
    obj: Object = {**stored.object, "metadata": metadata}
    return Stored(obj, version)


def too_old(version: int, floor: int) -> StatusError:
    return expired(f"too old resource version: {version} ({floor})")


def watch(server: "Server", request: Request, route: Route) -> StreamingResponse:
    """Begin a watch. A version older than the history is told in the stream, as the real server does."""
    resource = route.resource
    if "as=PartialObjectMetadataList" in request.headers.get("accept", ""):
        return StreamingResponse(_only(b""))  # no event can be shown as a list
    representation = representations.negotiate(request, resource, listing=False, streaming=True)
    int64_option(request, "limit")
    lists.parsed_selectors(request)
    asked = request.first("resourceVersion")
    match = request.first("resourceVersionMatch")
    bookmarks = "allowWatchBookmarks" in request.query and parse_boolean(request.first("allowWatchBookmarks"))
    initial_given = "sendInitialEvents" in request.query
    send_initial = initial_given and parse_boolean(request.first("sendInitialEvents"))
    _check(match, initial_given, request.first("continue"))
    selection = lists.selection(server, request, route)
    if lost := server.definitions.lost(resource):
        raise versions.not_listed(resource, lost)
    from_start = asked in ("", "0")
    version = server.store.version if from_start else lists.parse_version(asked, "watch")
    initial = send_initial or (from_start and not initial_given)
    announce = bookmarks and (send_initial or (from_start and not initial_given))
    table = server.table(resource)
    timeout = int64_option(request, "timeoutSeconds") or server.world.random.randint(SHORTEST, 2 * SHORTEST)
    begun = Watch(
        server=server,
        table=table,
        namespace=(route.namespace or None) if resource.namespaced else "",
        selection=selection,
        representation=representation,
        bookmarks=bookmarks,
        timeout=float(timeout),
        version=0 if initial and asked == "0" else version,
        initial=initial,
        announce=announce,
        replica=request.replica,
    )
    if send_initial and version > server.store.version:
        return StreamingResponse(_only(begun.error(lists.too_large(version, server.store.version))))
    if not initial and version < table.floor:
        return StreamingResponse(_only(begun.error(too_old(version, table.floor))))
    answer = StreamingResponse(begun.chunks())
    answer.warnings = request.warnings
    return answer


def _check(match: str, initial_given: bool, continued: str) -> None:
    field, found = "resourceVersionMatch", []
    if initial_given and match != "NotOlderThan":
        told = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        found.append(field_errors.forbidden(field, told))
    if match and not initial_given:
        told = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        found.append(field_errors.forbidden(field, told))
    if match and match != "NotOlderThan":
        found.append(field_errors.not_supported(field, match, ("NotOlderThan",)))
    if continued:
        found.append(field_errors.forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
    if found:
        raise invalid_options("ListOptions", found)


async def _only(chunk: bytes) -> AsyncIterator[bytes]:
    if chunk:
        yield chunk
