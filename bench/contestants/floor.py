"""A minimal cache that keeps bytes in a dict. It cannot resume a watch, has no index and reports no failures."""

import asyncio

import aiohttp
import msgspec


class Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class Meta(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    resourceVersion: str = ""  # noqa: N815
    annotations: dict[str, str] = {}


class Head(msgspec.Struct):
    metadata: Meta


class Contestant:
    KEEPS = "bytes"

    async def start(self, url, on_event):
        self.objects, self.on_event, self.synced = {}, on_event, asyncio.Event()
        self.session = aiohttp.ClientSession(read_bufsize=2**20)
        self.task = asyncio.create_task(self.watch(url))
        await self.synced.wait()

    async def watch(self, url):
        event, self.head = msgspec.json.Decoder(Event).decode, msgspec.json.Decoder(Head).decode
        forever = aiohttp.ClientTimeout(total=None)
        async with self.session.get(
            f"{url}/api/v1/pods?watch=true&sendInitialEvents=true", timeout=forever
        ) as response:
            remainder = b""
            while chunk := await response.content.readany():
                *lines, remainder = (remainder + chunk).split(b"\n")
                for line in lines:
                    if not line:
                        continue
                    on_event = event(line)
                    raw = bytes(on_event.object)
                    meta = self.head(raw).metadata
                    if on_event.type == "BOOKMARK":
                        self.synced.set()
                        continue
                    self.objects[meta.namespace, meta.name] = raw
                    if self.synced.is_set():
                        self.on_event(raw)

    def sent(self, raw):
        return self.head(raw).metadata.annotations["sent"]

    def cached_count(self):
        return len(self.objects)

    def json_bytes(self):
        return sum(map(len, self.objects.values()))

    async def close(self):
        self.task.cancel()
        await self.session.close()
