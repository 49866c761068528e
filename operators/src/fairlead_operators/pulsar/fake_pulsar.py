"""A fake Pulsar for the tests and the demo, with the admin API and no brokers.

It stores resources in memory and returns the status codes of Pulsar 3.0.7: 404 for a missing resource, 409 for an
existing or non-empty one, 412 for an invalid one. It moves no messages, runs no functions, and checks only a token.
The tests also run on a real Pulsar if there is one (README.md).
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fairlead.api.requests import HttpRequest
from fairlead.client.transport import NotSent
from fairlead_operators.pulsar.fake_pulsar_state import CLUSTER, ErrorResponse, PulsarState

__all__ = ["CLUSTER", "FakePulsar"]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class FakePulsar(PulsarState):
    """A Pulsar in memory that is also an HTTP client for itself, so that tests can use it as the resource `http`."""

    def __init__(self, *, token: str | None = None) -> None:
        super().__init__()
        self.token = token
        self.down = False
        """Whether to refuse all connections."""
        self.calls: list[tuple[str, str, int]] = []
        """The method, path and status code of each request; the code is 0 for a refused connection."""
        self.files: dict[str, bytes] = {}
        """The files for `fetch`, by URL."""

    def __call__(self, url: str, token: str | None = None) -> "FakePulsar":
        return self

    async def fetch(self, url: str) -> bytes:
        if url not in self.files:
            raise NotSent(f"cannot connect to {url}")
        return self.files[url]

    async def request(self, request: HttpRequest) -> Answer:
        if self.down:
            self.calls.append((request.method, request.path, 0))
            raise NotSent("cannot connect: connection refused")
        answer = self._answer(request.method, request.path, request.query or {}, request.headers or {}, request.body)
        self.calls.append((request.method, request.path, answer.status))
        return answer

    async def close(self) -> None:
        """Do nothing: there is no connection to close."""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Serve the fake Pulsar over HTTP on loopback, and yield its URL."""
        from aiohttp import web

        async def handle(request: web.BaseRequest) -> web.Response:
            if request.path in self.files:
                return web.Response(body=self.files[request.path])
            headers, body = {k.title(): v for k, v in request.headers.items()}, await request.read()
            answer = await self.request(
                HttpRequest(request.method, request.raw_path.partition("?")[0], request.query, headers, body)
            )
            return web.Response(status=answer.status, body=answer.body, content_type="application/json")

        runner = web.ServerRunner(web.Server(handle))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        assert site._server is not None  # noqa: SLF001 - aiohttp has no other way to ask for the port
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]  # noqa: SLF001
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            await runner.cleanup()

    def _answer(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        if self.token and headers.get("Authorization") != f"Bearer {self.token}":
            return _error_answer(401, "Authentication required")
        try:
            answer = self.handle(method, path, query, headers.get("Content-Type", ""), body)
        except ErrorResponse as error:
            return _error_answer(error.status, str(error))
        if isinstance(answer, bytes):
            return Answer(200, answer)
        return Answer(204 if answer is None and method != "GET" else 200, _encode(answer))


def _encode(answer: Any) -> bytes:
    return b"" if answer is None else json.dumps(answer).encode()


def _error_answer(status: int, reason: str) -> Answer:
    return Answer(status, json.dumps({"reason": reason}).encode())
