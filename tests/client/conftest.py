"""A transport with scripted responses, and a loopback server for tests that write raw bytes."""

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
class FakeResponse:
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


def error_response_of(code, reason="", message="no", **details):
    """Return an error response with a Status object."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message}
    return FakeResponse(code, {**body, "reason": reason, "details": details})


class ScriptedTransport:
    """A Transport that returns scripted responses and records the requests.

    If a scripted response is an exception, the transport raises it. If it is a number, the transport waits that many
    seconds. Discovery requests need no script unless `discovery` is False.
    """

    def __init__(self, *responses, answers_discovery=True):
        self.responses = list(responses)
        self.requests = []
        self._discovery = answers_discovery

    async def request(self, request):
        if self._discovery and request.path in {"/api", "/apis"}:
            return FakeResponse(json=DISCOVERY)
        self.requests.append(
            (request.method, request.path, dict(request.query or {}), request.body, dict(request.headers or {}))
        )
        response = self.responses.pop(0)
        while isinstance(response, int | float):
            async with asyncio.timeout(request.timeout):
                await asyncio.sleep(response)
            response = self.responses.pop(0)
        if isinstance(response, BaseException):
            raise response
        return response

    async def stream(self, request):
        return await self.request(replace(request, method="WATCH"))

    async def close(self):
        pass


@pytest.fixture
def scripted_client():
    """Return a function: scripted_client(*responses, **options) returns (client, transport) in virtual time."""

    def make_client(*responses, answers_discovery=True, **options):
        transport = ScriptedTransport(*responses, answers_discovery=answers_discovery)
        return Client(transport, virtual.world(), **options), transport

    return make_client


class RawServer:
    """A loopback server that passes every connection to a function of the test."""

    def __init__(self):
        self.requests = []  # heads and bodies, as received
        self.connections = 0
        self._server = None
        self._tasks = set()

    async def start(self, handle, ssl=None):
        """Start the server. It calls `handle(raw_server, reader, writer)` for every connection."""

        async def handle_connection(reader, writer):
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

        self._server = await asyncio.start_server(handle_connection, "127.0.0.1", 0, ssl=ssl)
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        self.url = f"http{'s' if ssl else ''}://{self.address}"
        return self

    async def request(self, reader):
        """Read the next request and return its first line, its headers with lower-case names, and its body."""
        request_head = (await reader.readuntil(b"\r\n\r\n")).decode()
        request_line, *header_lines = request_head.strip().split("\r\n")
        headers = [(name.lower(), value) for name, _, value in (header.partition(": ") for header in header_lines)]
        length = int(dict(headers).get("content-length", 0))
        body = await reader.readexactly(length)
        self.requests.append((request_line, headers, body))
        return request_line, dict(headers), body

    async def wait_until_closed(self):
        """Wait until every connection is closed."""
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
async def raw_server():
    raw_server = RawServer()
    yield raw_server
    await raw_server.stop()


@pytest.fixture
def response():
    return FakeResponse


@pytest.fixture
def error_response():
    return error_response_of
