"""A network between a client and a server: requests take time, watch events come late, and all are counted."""

import asyncio
from collections import Counter
from collections.abc import Mapping

from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.client.transport import Response, Stream, Transport

Lags = Mapping[str, tuple[float, float]]
"""Seconds that a watch lags, at least and at most, by resource."""


class SlowTransport:
    """A Transport with latency, drawn anew for each request and each chunk of a watch between the bounds given.

    Watches of the resources in `late` have bounds of their own. Guarantees: a watch keeps its order, and its lag
    delays what is seen without limiting how much is. Nothing is lost, nothing fails. In virtual time this costs
    nothing.
    """

    def __init__(
        self,
        inner: Transport,
        world: World,
        *,
        request: tuple[float, float],
        watch: tuple[float, float],
        late: Lags | None = None,
    ) -> None:
        self._inner = inner
        self._world = world
        self._request = request
        self._watch = watch
        self._late = late or {}

    async def request(self, request: HttpRequest) -> Response:
        there = self._world.random.uniform(*self._request) / 2
        await asyncio.sleep(there)
        answer = await self._inner.request(request)
        await asyncio.sleep(there)
        return answer

    async def stream(self, request: HttpRequest) -> Stream:
        await asyncio.sleep(self._world.random.uniform(*self._request))
        inner = await self._inner.stream(request)
        return _LateStream(inner, self._world, self._late.get(request.path.rpartition("/")[2], self._watch))

    async def close(self) -> None:
        await self._inner.close()


class _LateStream:
    def __init__(self, inner: Stream, world: World, lag: tuple[float, float]) -> None:
        self._inner = inner
        self._world = world
        self._lag = lag
        self._chunks: asyncio.Queue[tuple[float, bytes | OSError]] = asyncio.Queue()
        self._pump = asyncio.create_task(self._read_ahead())

    @property
    def status(self) -> int:
        return self._inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._inner.headers

    async def read(self) -> bytes:
        due, chunk = await self._chunks.get()
        await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
        if isinstance(chunk, OSError):
            raise chunk
        return chunk

    async def close(self) -> None:
        self._pump.cancel()
        await asyncio.gather(self._pump, return_exceptions=True)
        await self._inner.close()

    async def _read_ahead(self) -> None:
        chunk: bytes | OSError = b"-"
        while chunk and not isinstance(chunk, OSError):
            try:
                chunk = await self._inner.read()
            except OSError as error:
                chunk = error
            due = asyncio.get_running_loop().time() + self._world.random.uniform(*self._lag)
            await self._chunks.put((due, chunk))


class CountingTransport:
    """A Transport that counts answers by method and status; a watch is a GET. Lost ones are not counted."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.counts: Counter[tuple[str, int]] = Counter()

    async def request(self, request: HttpRequest) -> Response:
        answer = await self._inner.request(request)
        self.counts[request.method, answer.status] += 1
        return answer

    async def stream(self, request: HttpRequest) -> Stream:
        answer = await self._inner.stream(request)
        self.counts["GET", answer.status] += 1
        return answer

    async def close(self) -> None:
        await self._inner.close()
