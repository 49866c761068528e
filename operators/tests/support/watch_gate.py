"""A transport that holds watch events back, so that a cache is stale until the test releases the events."""

import asyncio
import json

from waiting import PATIENCE

import fairlead as fl


class WatchGate:
    """A Transport that holds watch events back while `closed` is true."""

    def __init__(self, inner):
        self.inner, self.closed, self.held_events, self.more = inner, False, [], asyncio.Event()

    async def request(self, request):
        return await self.inner.request(request)

    async def stream(self, request):
        return _GatedStream(await self.inner.stream(request), self)

    async def close(self):
        await self.inner.close()

    async def release(self, matches):
        """Release the first held event for which `matches(type, object)` is true, and return its object."""
        async with asyncio.timeout(PATIENCE):
            while True:
                self.more.clear()
                for stream, line in self.held_events:
                    event = json.loads(line)
                    if matches(event["type"], obj := fl.Object(event["object"])):
                        self.held_events.remove((stream, line))
                        stream.released.put_nowait(line)
                        return obj
                await self.more.wait()


class _GatedStream:
    def __init__(self, inner, gate):
        self.inner, self.gate, self.released = inner, gate, asyncio.Queue()
        self.status, self.headers = inner.status, inner.headers
        self.pump = asyncio.create_task(self.read_ahead())

    async def read_ahead(self):
        unread_bytes = b""
        while True:
            try:
                chunk = await self.inner.read()
            except OSError:
                chunk = b""
            if not chunk:
                self.released.put_nowait(b"")
                return
            *lines, unread_bytes = (unread_bytes + chunk).split(b"\n")
            for line in lines:
                if self.gate.closed:
                    self.gate.held_events.append((self, line + b"\n"))
                    self.gate.more.set()
                else:
                    self.released.put_nowait(line + b"\n")

    async def read(self):
        return await self.released.get()

    async def close(self):
        self.pump.cancel()
        await asyncio.gather(self.pump, return_exceptions=True)
        await self.inner.close()
