"""Following a fault plan: what befalls each request between the door and the answer."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakSet

from fairlead.api.world import World
from fairlead.server.authorization.attributes import Attributes, request_attributes
from fairlead.server.errors.statuses import (
    OPTIMISTIC_LOCK,
    StatusError,
    conflict,
    expired,
    internal_error,
    status_error,
)
from fairlead.server.faults.plan import Fault, Plan, Seconds
from fairlead.server.faults.replica import Commits, Replica
from fairlead.server.golang import encoding
from fairlead.server.http import representations
from fairlead.server.http.messages import AnyResponse, ConnectionDropped, Request, Response, StreamingResponse
from fairlead.server.http.routing import Route
from fairlead.server.registry.resource import Resource

if TYPE_CHECKING:
    from fairlead.server.app import Server

PATIENCE = 3.0  # seconds that a real server waits for its watch cache to reach the version asked for
WRITES = ("create", "update", "patch", "delete", "deletecollection")


class FaultInjector:
    """A plan at work on a server.

    Guarantees: what strikes whom follows from the plan, its seed and the order of the requests. Faults are tried in
    their order; delays add up, and the first hold, drop or status settles the rest. `counts` counts the harms done.
    """

    def __init__(self, server: "Server", plan: Plan) -> None:
        self._server = server
        self._faults = plan.faults
        self._left = [fault.count for fault in plan.faults]
        world = server.world
        self._random = world.random if plan.seed is None else World.seeded(world.clock, plan.seed).random
        lags = {fault.stale for fault in plan.faults if fault.stale is not None}
        self._commits = Commits(world.clock, server.store, max(lags)) if lags else None
        self._replicas = {lag: Replica(self._commits, lag) for lag in lags if self._commits is not None}
        self._watches: WeakSet[_Breakable] = WeakSet()
        self._held: set[asyncio.Task[AnyResponse]] = set()
        self.counts: Counter[str] = Counter()

    async def handle(self, request: Request) -> AnyResponse:
        """Answer a request as the plan has it. Raises Dropped where the connection breaks."""
        asked = request_attributes(request)
        resource = self._server.registry.find(asked.group, asked.version, asked.resource)
        agent = request.headers.get("user-agent", "")
        cut: float | None = None
        for fault in self._select_faults(asked, resource, agent):
            if fault.delay is not None:
                await asyncio.sleep(self._draw_seconds(fault.delay))
            elif fault.hold is not None:
                return await self._hold(request, self._draw_seconds(fault.hold))
            elif fault.drop == "after":
                self._server.respond(request)  # a watch that nobody reads ends where it began
                raise ConnectionDropped("the fault plan broke the connection")
            elif fault.drop is not None:
                raise ConnectionDropped("the fault plan broke the connection")
            elif fault.status is not None:
                return self._server.respond(request, executor=partial(self._refusal, fault.status, asked))
            elif fault.cut is not None:
                after = self._draw_seconds(fault.cut)
                cut = after if cut is None else min(cut, after)
            elif fault.stale is not None:
                request.replica = self._replicas[fault.stale]
        if request.replica is not None and asked.verb != "watch":
            await _wait_for_version(request.replica, request.first("resourceVersion"))
        answer = await self._server.handle_durably(request)
        if isinstance(answer, StreamingResponse):
            answer.chunks = self._breakable(answer.chunks, cut)
        return answer

    def after_write(self) -> None:
        """Told after each write."""
        if self._commits is not None:
            self._commits.note()

    def cut(self) -> None:
        """Break off every watch now."""
        for watch in list(self._watches):
            watch.cut()

    def _select_faults(self, asked: Attributes, resource: Resource | None, agent: str) -> "list[Fault]":
        """The faults that strike a request, in order, up to the one that settles it."""
        found: list[Fault] = []
        kind = resource.kind if resource else ""
        for index, fault in enumerate(self._faults):
            left = self._left[index]
            if left == 0 or not fault.matches(asked, kind, agent):
                continue
            if fault.probability < 1 and self._random.random() >= fault.probability:
                continue
            if left is not None:
                self._left[index] = left - 1
            self.counts[fault.effect if fault.status is None else str(fault.status)] += 1
            found.append(fault)
            if fault.effect in ("hold", "drop", "status"):
                break
        return found

    def _draw_seconds(self, seconds: float | Seconds) -> float:
        return self._random.uniform(*seconds) if isinstance(seconds, tuple) else seconds

    async def _hold(self, request: Request, seconds: float) -> AnyResponse:
        """Carry it out later, whether or not anybody still waits for the answer."""

        async def later() -> AnyResponse:
            await asyncio.sleep(seconds)
            return await self._server.handle_durably(request)

        held = asyncio.create_task(later())
        self._held.add(held)
        held.add_done_callback(self._held.discard)
        return await asyncio.shield(held)

    def _refusal(self, code: int, asked: Attributes, request: Request, route: Route | None) -> AnyResponse:
        if code == 429:  # from before the API machinery: plain text
            answer = Response(429, b"Too many requests, please try again later.\n", "text/plain; charset=utf-8")
            answer.headers["Retry-After"] = "1"
            return answer
        if code == 504 and asked.verb in WRITES and self._random.random() < 0.5:
            with contextlib.suppress(StatusError):
                self._server.execute(request, route)  # a server that gives up waiting does not undo
        refused = _status(code, asked, route.resource if route is not None else None)
        if code == 410 and asked.verb == "watch":
            frame = b'{"type":"ERROR","object":%s}\n' % encoding.encode(refused.status)
            return StreamingResponse(_only(frame))
        return representations.error_response(request, refused)

    def _breakable(self, chunks: AsyncIterator[bytes], cut: float | None) -> AsyncIterator[bytes]:
        watch = _Breakable(chunks, cut)
        self._watches.add(watch)
        return watch.read()


class _Breakable:
    """A watch that can be broken off at any moment."""

    def __init__(self, chunks: AsyncIterator[bytes], after: float | None) -> None:
        self._chunks = chunks
        self._ends = None if after is None else asyncio.get_running_loop().time() + after
        self._reading: asyncio.Timeout | None = None

    def cut(self) -> None:
        self._ends = asyncio.get_running_loop().time()
        if self._reading is not None and not self._reading.expired():
            self._reading.reschedule(self._ends)

    async def read(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        try:
            while self._ends is None or loop.time() < self._ends:
                async with asyncio.timeout_at(self._ends) as self._reading:
                    chunk = await anext(self._chunks, None)
                self._reading = None
                if chunk is None:
                    return
                yield chunk
            raise TimeoutError
        except TimeoutError:
            raise ConnectionDropped("the fault plan cut the watch") from None
        finally:
            self._reading = None
            close = getattr(self._chunks, "aclose", None)
            if close is not None:
                await close()


async def _wait_for_version(replica: Replica, asked: str) -> None:
    """Wait, as long as a real server does, until the replica has got to the version asked for."""
    if asked.isascii() and asked.isdigit() and len(asked) < 20:
        try:
            async with asyncio.timeout(PATIENCE):
                await replica.reached(int(asked))
        except TimeoutError:
            pass  # the answer says that the version is too large


def _status(code: int, asked: Attributes, resource: Resource | None) -> StatusError:
    if code == 409 and resource is not None:
        return conflict(resource, asked.name, OPTIMISTIC_LOCK)
    if code == 409:
        return status_error(409, "Conflict", f"Operation cannot be fulfilled: {OPTIMISTIC_LOCK}")
    if code == 410:
        return expired("The resourceVersion for the provided list is too old.")
    if code == 500:
        return internal_error(RuntimeError("by the fault plan"))
    if code == 503:
        return status_error(503, "ServiceUnavailable", "service unavailable")
    return status_error(504, "Timeout", "Timeout: request did not complete within the allotted timeout", {})


async def _only(chunk: bytes) -> AsyncIterator[bytes]:
    yield chunk
