"""The in-process transport: a client's Transport that calls the server without sockets."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from fairlead.api.requests import HttpRequest
from fairlead.server.http.messages import Request, Response, StreamingResponse, format_warning

if TYPE_CHECKING:
    from fairlead.server.app import Server


class Reply:
    """A complete response in the form that a client's Transport returns."""

    __slots__ = ("body", "headers", "status", "warnings")

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self.body = response.body
        self.warnings = [format_warning(warning) for warning in response.warnings]


class Stream:
    """A streaming response in the form that a client's Transport returns."""

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
    """Passes a client's requests to a server on the same event loop.

    As with a socket, other tasks can run before the server sees a request.
    """

    def __init__(self, server: "Server", token: str | None) -> None:
        self._server = server
        self._token = token

    async def request(self, request: HttpRequest) -> Reply:
        await asyncio.sleep(0)
        async with asyncio.timeout(request.timeout):
            response = await self._server.handle(self._to_server_request(request))
        if isinstance(response, StreamingResponse):
            chunks = [chunk async for chunk in response.chunks]
            return Reply(Response(response.status, b"".join(chunks)))
        return Reply(response)

    async def stream(self, request: HttpRequest) -> Stream:
        await asyncio.sleep(0)
        async with asyncio.timeout(request.timeout):
            response = await self._server.handle(self._to_server_request(request))
        if isinstance(response, StreamingResponse):
            return Stream(response.status, response.headers, response.chunks)
        return Stream(response.status, response.headers, _yield_chunk(response.body))

    async def close(self) -> None:
        """Do nothing, because an in-process transport has no connection."""

    def _to_server_request(self, request: HttpRequest) -> Request:
        headers = {name.lower(): value for name, value in request.headers.items()} if request.headers else {}
        if self._token and "authorization" not in headers:
            headers["authorization"] = f"Bearer {self._token}"
        query = {key: [value] for key, value in request.query.items()} if request.query else {}
        return Request(request.method, request.path, query, headers, request.body or b"")


async def _yield_chunk(body: bytes) -> AsyncIterator[bytes]:
    yield body
