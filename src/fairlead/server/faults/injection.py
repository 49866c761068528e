"""The fault injector: it delays, drops or answers requests as a fault plan says, before they reach the server."""

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
from fairlead.server.golang import encoding
from fairlead.server.http import representations
from fairlead.server.http.messages import AnyResponse, ConnectionDropped, Request, Response, StreamingResponse
from fairlead.server.http.routing import Route
from fairlead.server.registry.resource import Resource
from fairlead.server.storage.replica import Commits, Replica

if TYPE_CHECKING:
    from fairlead.server.app import Server

CACHE_TIMEOUT = 3.0  # seconds that a real server waits for its watch cache to reach the requested version
WRITES = ("create", "update", "patch", "delete", "deletecollection")


class FaultInjector:
    """Applies a fault plan to a server's requests.

    Guarantees: which fault affects which request depends only on the plan, its seed and the order of the requests.
    Faults are tried in the order of the plan. Several delays add up. The first matching hold, drop or status ends the
    search. `counts` maps each effect name or status code to how often it was applied.
    """

    def __init__(self, server: "Server", plan: Plan) -> None:
        self._server = server
        self._faults = plan.faults
        self._remaining = [fault.count for fault in plan.faults]
        world = server.world
        self._random = world.random if plan.seed is None else World.seeded(world.clock, plan.seed).random
        lags = {fault.stale for fault in plan.faults if fault.stale is not None}
        self._commits = Commits(world.clock, server.store, max(lags)) if lags else None
        self._replicas = {lag: Replica(self._commits, lag) for lag in lags if self._commits is not None}
        self._watches: WeakSet[_CuttableWatch] = WeakSet()
        self._held: set[asyncio.Task[AnyResponse]] = set()
        self.counts: Counter[str] = Counter()

    async def handle(self, request: Request) -> AnyResponse:
        """Return the response to a request, with the faults of the plan applied.

        Raises ConnectionDropped if the plan drops the connection.
        """
        attributes = request_attributes(request)
        resource = self._server.registry.find(attributes.group, attributes.version, attributes.resource)
        agent = request.headers.get("user-agent", "")
        cut_after: float | None = None
        for fault in self._select_faults(attributes, resource, agent):
            if fault.delay is not None:
                await asyncio.sleep(self._draw_seconds(fault.delay))
            elif fault.hold is not None:
                return await self._hold(request, self._draw_seconds(fault.hold))
            elif fault.drop == "after":
                await self._server.respond_or_wait(request)  # a watch that is never read ends here
                raise ConnectionDropped("the fault plan broke the connection")
            elif fault.drop is not None:
                raise ConnectionDropped("the fault plan broke the connection")
            elif fault.status is not None:
                return self._server.respond(
                    request, executor=partial(self._build_error_response, fault.status, attributes)
                )
            elif fault.cut is not None:
                after = self._draw_seconds(fault.cut)
                cut_after = after if cut_after is None else min(cut_after, after)
            elif fault.stale is not None:
                request.replica = self._replicas[fault.stale]
        if request.replica is not None and attributes.verb != "watch":
            await _wait_for_version(request.replica, request.first("resourceVersion"))
        response = await self._server.handle_durably(request)
        if isinstance(response, StreamingResponse):
            response.chunks = self._make_cuttable(response.chunks, cut_after)
        return response

    def after_write(self) -> None:
        """Record the time of a committed write, so that stale reads know what they may show."""
        if self._commits is not None:
            self._commits.record()

    def describe(self) -> str:
        """Return what was injected, for example "injected faults: 12 x delay, 3 x status 409"."""
        counted = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        texts = [f"{count} x {'status ' * name.isdecimal()}{name}" for name, count in counted]
        return f"injected faults: {', '.join(texts) or 'none'}"

    def cut(self) -> None:
        """Break all open watches now."""
        for watch in list(self._watches):
            watch.cut()

    def _select_faults(self, attributes: Attributes, resource: Resource | None, agent: str) -> "list[Fault]":
        """Return the faults that apply to a request, in the order of the plan, up to the first hold, drop or status."""
        selected: list[Fault] = []
        kind = resource.kind if resource else ""
        for index, fault in enumerate(self._faults):
            remaining = self._remaining[index]
            if remaining == 0 or not fault.matches(attributes, kind, agent):
                continue
            if fault.probability < 1 and self._random.random() >= fault.probability:
                continue
            if remaining is not None:
                self._remaining[index] = remaining - 1
            self.counts[fault.effect if fault.status is None else str(fault.status)] += 1
            selected.append(fault)
            if fault.effect in ("hold", "drop", "status"):
                break
        return selected

    def _draw_seconds(self, seconds: float | Seconds) -> float:
        """Return `seconds`, or a random number from the range if `seconds` is a pair."""
        return self._random.uniform(*seconds) if isinstance(seconds, tuple) else seconds

    async def _hold(self, request: Request, seconds: float) -> AnyResponse:
        """Execute the request after `seconds`, even if the client disconnects before that."""

        async def execute_later() -> AnyResponse:
            await asyncio.sleep(seconds)
            return await self._server.handle_durably(request)

        task = asyncio.create_task(execute_later())
        self._held.add(task)
        task.add_done_callback(self._held.discard)
        return await asyncio.shield(task)

    def _build_error_response(
        self, code: int, attributes: Attributes, request: Request, route: Route | None
    ) -> AnyResponse:
        if code == 429:  # a real server rejects it before the API machinery, in plain text
            response = Response(429, b"Too many requests, please try again later.\n", "text/plain; charset=utf-8")
            response.headers["Retry-After"] = "1"
            return response
        if code == 504 and attributes.verb in WRITES and self._random.random() < 0.5:
            with contextlib.suppress(StatusError):
                self._server.execute(request, route)  # a timeout does not undo the write
        error = _build_status_error(code, attributes, route.resource if route is not None else None)
        if code == 410 and attributes.verb == "watch":
            frame = b'{"type":"ERROR","object":%s}\n' % encoding.encode(error.status)
            return StreamingResponse(_yield_chunk(frame))
        return representations.error_response(request, error)

    def _make_cuttable(self, chunks: AsyncIterator[bytes], cut_after: float | None) -> AsyncIterator[bytes]:
        watch = _CuttableWatch(chunks, cut_after)
        self._watches.add(watch)
        return watch.read()


class _CuttableWatch:
    """The chunks of a watch, which `cut` can end at any time."""

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


async def _wait_for_version(replica: Replica, version: str) -> None:
    """Wait until the replica reaches the requested resourceVersion, at most as long as a real server waits."""
    if version.isascii() and version.isdigit() and len(version) < 20:
        try:
            async with asyncio.timeout(CACHE_TIMEOUT):
                await replica.wait_for(int(version))
        except TimeoutError:
            pass  # the server then responds that the version is too large


def _build_status_error(code: int, attributes: Attributes, resource: Resource | None) -> StatusError:
    if code == 409 and resource is not None:
        return conflict(resource, attributes.name, OPTIMISTIC_LOCK)
    if code == 409:
        return status_error(409, "Conflict", f"Operation cannot be fulfilled: {OPTIMISTIC_LOCK}")
    if code == 410:
        return expired("The resourceVersion for the provided list is too old.")
    if code == 500:
        return internal_error(RuntimeError("by the fault plan"))
    if code == 503:
        return status_error(503, "ServiceUnavailable", "service unavailable")
    return status_error(504, "Timeout", "Timeout: request did not complete within the allotted timeout", {})


async def _yield_chunk(chunk: bytes) -> AsyncIterator[bytes]:
    yield chunk
