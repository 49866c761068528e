"""The door inside one process: a client's Transport by shape, without sockets."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from fairlead.api.requests import HttpRequest
from fairlead.server.http.messages import Request, Response, StreamingResponse, format_warning

if TYPE_CHECKING:
    from fairlead.server.app import Server


class Reply:
    """A whole answer."""

    __slots__ = ("body", "headers", "status", "warnings")

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self.body = response.body
        self.warnings = [format_warning(text) for text in response.warnings]


class Stream:
    """An answer that is still coming."""

    def __init__(self, status: int, headers: Mapping[str, str], chunks: AsyncIterator[bytes]) -> None:
        self.status = status
        self.headers = headers
        self._chunks = chunks

    async def read(self) -> bytes:
        return await anext(self._chunks, b"")

    async def close(self) -> None:
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()


class InProcessTransport:
    """Requests go straight to the server on the same loop; each one gives the loop a turn first, as a socket would."""

    def __init__(self, server: "Server", token: str | None) -> None:
        self._server = server
        self._token = token

    async def request(self, request: HttpRequest) -> Reply:
        await asyncio.sleep(0)
        async with asyncio.timeout(request.timeout):
            answer = await self._server.handle(self._incoming(request))
        if isinstance(answer, StreamingResponse):
            chunks = [chunk async for chunk in answer.chunks]
            return Reply(Response(answer.status, b"".join(chunks)))
        return Reply(answer)

    async def stream(self, request: HttpRequest) -> Stream:
        await asyncio.sleep(0)
        async with asyncio.timeout(request.timeout):
            answer = await self._server.handle(self._incoming(request))
        if isinstance(answer, StreamingResponse):
            return Stream(answer.status, answer.headers, answer.chunks)
        return Stream(answer.status, answer.headers, _once(answer.body))

    async def close(self) -> None:
        """Nothing is held open."""

    def _incoming(self, request: HttpRequest) -> Request:
        received = {name.lower(): value for name, value in request.headers.items()} if request.headers else {}
        if self._token and "authorization" not in received:
            received["authorization"] = f"Bearer {self._token}"
        asked = {key: [value] for key, value in request.query.items()} if request.query else {}
        return Request(request.method, request.path, asked, received, request.body or b"")


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
