"""A stand-in for Pulsar: the admin API's paths and answers, and no broker behind them.

It keeps what it is told and answers as Pulsar 3.0.7 was seen to where this operator looks: 404 for what is missing, 409
for what exists or is not empty, 412 for what is not valid. It moves no message, runs no function, checks no right but a
token. The tests that use it run on a real Pulsar too, where there is one (README.md).
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fairlead.api.requests import HttpRequest
from fairlead.client.transport import NotSent
from fairlead_operators.pulsar.contents import CLUSTER, Contents, Failure

__all__ = ["CLUSTER", "StandIn"]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class StandIn(Contents):
    """One Pulsar, in memory. An HTTP client for it, and what opens one: hand it in as the resource `http`."""

    def __init__(self, *, token: str | None = None) -> None:
        super().__init__()
        self.token = token
        self.down = False
        """Refuse every connection."""
        self.calls: list[tuple[str, str, int]] = []
        """What was asked, with the answer's status; 0 where it was refused."""
        self.files: dict[str, bytes] = {}
        """What `fetch` finds, by address."""

    # As an HTTP client

    def __call__(self, url: str, token: str | None = None) -> "StandIn":
        return self

    async def fetch(self, url: str) -> bytes:
        if url not in self.files:
            raise NotSent("cannot connect: nobody serves that here")
        return self.files[url]

    async def request(self, request: HttpRequest) -> Answer:
        if self.down:
            self.calls.append((request.method, request.path, 0))
            raise NotSent("cannot connect: connection refused")
        answer = self._answer(request.method, request.path, request.query or {}, request.headers or {}, request.body)
        self.calls.append((request.method, request.path, answer.status))
        return answer

    async def close(self) -> None:
        """Nothing to close."""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """The same over loopback HTTP, at the address given."""
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
            return _told(401, "Authentication required")
        try:
            answer = self.ask(method, path, query, headers.get("Content-Type", ""), body)
        except Failure as failure:
            return _told(failure.status, str(failure))
        if isinstance(answer, bytes):
            return Answer(200, answer)
        return Answer(204 if answer is None and method != "GET" else 200, _encoded(answer))


def _encoded(answer: Any) -> bytes:
    return b"" if answer is None else json.dumps(answer).encode()


def _told(status: int, reason: str) -> Answer:
    return Answer(status, json.dumps({"reason": reason}).encode())
