"""A scripted transport, and a loopback server that works on raw bytes."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from fairlead.client.client import Client
from fairlead.testing import virtual

DISCOVERY = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        {
            "metadata": {},
            "versions": [
                {
                    "version": "v1",
                    "resources": [
                        {
                            "resource": "configmaps",
                            "responseKind": {"kind": "ConfigMap"},
                            "scope": "Namespaced",
                            "verbs": ["get", "list", "watch"],
                        },
                        {"resource": "namespaces", "responseKind": {"kind": "Namespace"}, "scope": "Cluster"},
                    ],
                }
            ],
        }
    ],
}


@dataclass
class Answer:
    status: int = 200
    json: object = None
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    chunks: list = field(default_factory=list)  # of a stream: bytes, an exception to raise, or seconds to wait

    def __post_init__(self):
        if self.json is not None:
            self.body = json.dumps(self.json).encode()

    async def read(self):
        while self.chunks or self.body:
            if not self.chunks:
                body, self.body = self.body, b""
                return body
            chunk = self.chunks.pop(0)
            if isinstance(chunk, BaseException):
                raise chunk
            if isinstance(chunk, bytes):
                return chunk
            await asyncio.sleep(chunk)
        return b""

    async def close(self):
        self.closed = True


def status(code, reason="", message="no", **details):
    """A Status answer."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message}
    return Answer(code, {**body, "reason": reason, "details": details})


class Scripted:
    """A Transport with scripted answers (it raises an exception, waits for a number) that records the requests.

    It answers discovery itself, unless `discovery` is off.
    """

    def __init__(self, *answers, discovery=True):
        self.answers = list(answers)
        self.asked = []
        self._discovery = discovery

    async def request(self, request):
        if self._discovery and request.path in {"/api", "/apis"}:
            return Answer(json=DISCOVERY)
        self.asked.append(
            (request.method, request.path, dict(request.query or {}), request.body, dict(request.headers or {}))
        )
        answer = self.answers.pop(0)
        while isinstance(answer, int | float):
            async with asyncio.timeout(request.timeout):
                await asyncio.sleep(answer)
            answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def stream(self, request):
        return await self.request(replace(request, method="WATCH"))

    async def close(self):
        pass


@pytest.fixture
def scripted():
    """scripted(*answers, **options) -> (client, transport), in a world of virtual time."""

    def make(*answers, discovery=True, **options):
        transport = Scripted(*answers, discovery=discovery)
        return Client(transport, virtual.world(), **options), transport

    return make


class Wire:
    """A server on loopback that gives the bytes of each connection to the test."""

    def __init__(self):
        self.requests = []  # heads and bodies, as received
        self.connections = 0
        self._server = None
        self._tasks = set()

    async def start(self, handle, ssl=None):
        """Call `handle(wire, reader, writer)` for each connection."""

        async def connected(reader, writer):
            self.connections += 1
            task = asyncio.current_task()
            self._tasks.add(task)
            try:
                await handle(self, reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass
            finally:
                self._tasks.discard(task)
                writer.close()

        self._server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=ssl)
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        self.url = f"http{'s' if ssl else ''}://{self.address}"
        return self

    async def request(self, reader):
        """Read the next request: its head, headers with lower-case names, and body."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *rest = head.strip().split("\r\n")
        headers = [(k.lower(), v) for k, _, v in (h.partition(": ") for h in rest)]
        length = int(dict(headers).get("content-length", 0))
        body = await reader.readexactly(length)
        self.requests.append((line, headers, body))
        return line, dict(headers), body

    async def quiet(self):
        """Return when every connection is closed."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def stop(self):
        if self._server is not None:
            self._server.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._server.wait_closed()


@pytest.fixture
async def wire():
    wire = Wire()
    yield wire
    await wire.stop()


@pytest.fixture
def answer():
    return Answer


@pytest.fixture
def refusal():
    return status
