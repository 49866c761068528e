"""The HTTP door: aiohttp's low-level server, on loopback unless TLS and a token guard it."""

import asyncio
import ipaddress
import re
from typing import TYPE_CHECKING

from aiohttp import web

from fairlead.server.doors import tls as certificates
from fairlead.server.encoding import MAX_BODY, encode
from fairlead.server.exchange import Dropped, Request, Response, Streaming, warning_header
from fairlead.server.failures import too_large

if TYPE_CHECKING:
    from fairlead.server.app import Server

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class Listening:
    """A server that listens. Close it to stop; watches end then."""

    def __init__(self, url: str, ca: bytes | None, runner: web.ServerRunner) -> None:
        self.url = url
        self.ca = ca  # PEM, None without TLS
        self._runner = runner

    async def close(self) -> None:
        await self._runner.cleanup()


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def listen(server: "Server", host: str, port: int, *, tls: bool, client_ca: bytes | None = None) -> Listening:
    """Listen on an address. One that others can reach needs TLS and a token.

    Certificates by `client_ca` (PEM) authenticate their clients; a certificate by anyone else ends the handshake.
    """
    if client_ca and not tls:
        raise ValueError("client certificates need TLS")
    if not is_loopback(host) and not (tls and server.asks_for_tokens):
        raise ValueError(f"{host} can be reached from elsewhere: listen there only with TLS and a token")
    ca: bytes | None = None
    context = None
    if tls:
        hosts = list(dict.fromkeys([host, "127.0.0.1", "::1", "localhost"]))
        now = server.world.clock.now()
        shown = certificates.identity(hosts, now, server.secret("ca", lambda: certificates.authority(now)))
        ca, context = shown.ca, shown.context
        if client_ca:
            certificates.trust_clients(context, client_ca)

    async def handle(incoming: web.BaseRequest) -> web.StreamResponse:
        return await _handle(server, incoming)

    # Handlers are cancelled with their connection, so that a watch ends when its reader goes.
    runner = web.ServerRunner(
        web.Server(handle, handler_cancellation=True, access_log=None, max_line_size=65536, max_field_size=65536),
        shutdown_timeout=0.1,
    )
    await runner.setup()
    site = web.TCPSite(runner, host, port, ssl_context=context, backlog=1024)
    await site.start()
    bound = runner.addresses[0][1]
    shown_host = f"[{host}]" if ":" in host else host
    return Listening(f"{'https' if tls else 'http'}://{shown_host}:{bound}", ca, runner)


async def _handle(server: "Server", incoming: web.BaseRequest) -> web.StreamResponse:
    body = await _body(incoming)
    if body is None:
        refused = too_large(f"Request entity too large: limit is {MAX_BODY}")
        return web.Response(status=413, body=encode(refused.status), content_type="application/json")
    query: dict[str, list[str]] = {}
    for key, value in incoming.query.items():
        query.setdefault(key, []).append(value)
    headers: dict[str, str] = {}
    for key, value in incoming.headers.items():
        name = key.lower()
        if name not in headers:
            headers[name] = value
        elif name.startswith("impersonate-"):
            headers[name] += f"\n{value}"
    path = incoming.raw_path.partition("?")[0]
    if _BAD_ESCAPE.search(path):
        return web.Response(status=400, text="400 Bad Request")
    certified = certificates.user_of(incoming.get_extra_info("peercert"))
    try:
        answer = await server.answer(
            Request(incoming.method, path, query, headers, body, certified=certified, source=incoming.remote or "")
        )
        return await _stream(incoming, answer) if isinstance(answer, Streaming) else _whole(answer)
    except Dropped:
        if incoming.transport is not None:
            incoming.transport.abort()
        return web.Response()  # to nobody


async def _body(incoming: web.BaseRequest) -> bytes | None:
    """The request's body, None when it is larger than the server takes."""
    if not incoming.body_exists:
        return b""
    parts, size = [], 0
    async for part in incoming.content.iter_any():
        size += len(part)
        if size > MAX_BODY:
            return None
        parts.append(part)
    return b"".join(parts)


def _whole(answer: Response) -> web.Response:
    response = web.Response(status=answer.status, body=answer.body, headers=answer.headers)
    for text in answer.warnings:
        response.headers.add("Warning", warning_header(text))
    return response


async def _stream(incoming: web.BaseRequest, answer: Streaming) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    response.enable_chunked_encoding()
    await response.prepare(incoming)
    try:
        async for chunk in answer.chunks:
            await response.write(chunk)
        await response.write_eof()
    except (ConnectionError, asyncio.CancelledError):
        close = getattr(answer.chunks, "aclose", None)
        if close is not None:
            await close()
        raise
    return response
