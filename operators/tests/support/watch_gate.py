"""A cache that lags for as long as a test likes: its watch events are held at a gate."""

import asyncio
import json

from waiting import PATIENCE

import fairlead as fl


class WatchGate:
    """A Transport whose watch events can be held: the cache behind it lags for as long as one likes."""

    def __init__(self, inner):
        self.inner, self.closed, self.held, self.more = inner, False, [], asyncio.Event()

    async def request(self, request):
        return await self.inner.request(request)

    async def stream(self, request):
        return _GatedStream(await self.inner.stream(request), self)

    async def close(self):
        await self.inner.close()

    async def release(self, holds):
        """Let the first held event through of which `holds(type, object)` says so; the others stay held. Its object."""
        async with asyncio.timeout(PATIENCE):
            while True:
                self.more.clear()
                for stream, line in self.held:
                    event = json.loads(line)
                    if holds(event["type"], obj := fl.Object(event["object"])):
                        self.held.remove((stream, line))
                        stream.passed.put_nowait(line)
                        return obj
                await self.more.wait()


class _GatedStream:
    def __init__(self, inner, gate):
        self.inner, self.gate, self.passed = inner, gate, asyncio.Queue()
        self.status, self.headers = inner.status, inner.headers
        self.pump = asyncio.create_task(self.read_ahead())

    async def read_ahead(self):
        rest = b""
        while True:
            try:
                chunk = await self.inner.read()
            except OSError:
                chunk = b""
            if not chunk:
                self.passed.put_nowait(b"")
                return
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if self.gate.closed:
                    self.gate.held.append((self, line + b"\n"))
                    self.gate.more.set()
                else:
                    self.passed.put_nowait(line + b"\n")

    async def read(self):
        return await self.passed.get()

    async def close(self):
        self.pump.cancel()
        await asyncio.gather(self.pump, return_exceptions=True)
        await self.inner.close()
