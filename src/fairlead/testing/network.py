"""Transports that simulate a network: request latency, watch delay, request counts."""

import asyncio
from collections import Counter
from collections.abc import Mapping

from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.client.transport import Response, Stream, Transport

Lags = Mapping[str, tuple[float, float]]
"""The range of delays of a watch by resource, in seconds: (shortest, longest)."""


class SlowTransport:
    """A Transport that delays each request and each chunk of a watch by a random time.

    `request` and `watch` are ranges of delays in seconds: (shortest, longest). `late` maps a resource, such as "pods",
    to the range that replaces `watch` for this resource.

    Guarantees: the events of a watch stay in order, the delay does not limit the throughput of a watch, and no request
    fails.
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
        one_way = self._world.random.uniform(*self._request) / 2
        await asyncio.sleep(one_way)
        response = await self._inner.request(request)
        await asyncio.sleep(one_way)
        return response

    async def stream(self, request: HttpRequest) -> Stream:
        await asyncio.sleep(self._world.random.uniform(*self._request))
        inner = await self._inner.stream(request)
        return _DelayedStream(inner, self._world, self._late.get(request.path.rpartition("/")[2], self._watch))

    async def close(self) -> None:
        await self._inner.close()


class _DelayedStream:
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
    """A Transport that counts responses by method and status. A watch counts as GET, a lost response not at all."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.counts: Counter[tuple[str, int]] = Counter()

    async def request(self, request: HttpRequest) -> Response:
        response = await self._inner.request(request)
        self.counts[request.method, response.status] += 1
        return response

    async def stream(self, request: HttpRequest) -> Stream:
        stream = await self._inner.stream(request)
        self.counts["GET", stream.status] += 1
        return stream

    async def close(self) -> None:
        await self._inner.close()
