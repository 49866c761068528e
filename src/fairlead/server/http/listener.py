"""The HTTP listener and its connections. An address that other machines can reach needs TLS and a token.

If a response does not have to wait for anything, the connection writes it as soon as the request's last byte arrives,
without a task or a queue.
"""

import asyncio
import ipaddress
from email.utils import formatdate
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fairlead.server.errors.statuses import too_large
from fairlead.server.golang.encoding import MAX_BODY, encode
from fairlead.server.http import http1
from fairlead.server.http import tls as certificates
from fairlead.server.http.messages import ConnectionDropped, Request, Response, StreamingResponse

if TYPE_CHECKING:
    from fairlead.server.app import Server

IDLE_TIMEOUT = 90.0  # seconds that a connection without a request is kept, as on a real server
LINGER = 2.0  # seconds that a rejected connection stays open, so that its client can read the response
GRACE = 0.1  # seconds for responses that are being written when the listener closes
READ_AHEAD = 1 << 16  # bytes that are read beyond the request that is being served


class Listener:
    """A listening socket of a server. `close` stops listening and ends the open watches."""

    def __init__(self, url: str, ca: bytes | None, connections: "Connections", sockets: asyncio.Server) -> None:
        self.url = url
        self.ca = ca  # PEM; None without TLS
        self._connections = connections
        self._sockets = sockets

    async def close(self) -> None:
        self._sockets.close()
        await self._connections.close()


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def listen(
    server: "Server",
    host: str,
    port: int,
    *,
    tls: bool,
    client_ca: bytes | None = None,
    certificate: tuple[Path, Path] | None = None,
) -> Listener:
    """Listen on an address and return the Listener. An address that is not loopback needs TLS and a token.

    A client certificate signed by `client_ca` (PEM) authenticates its holder; any other one ends the TLS handshake.
    """
    if client_ca and not tls:
        raise ValueError("client certificates need TLS: leave out --no-tls (in Python: tls=True)")
    if not is_loopback(host) and not (tls and server.requires_tokens):
        raise ValueError(f"{host} can be reached from other machines: listen there only with TLS and a token")
    ca: bytes | None = None
    context = None
    if tls:
        identity = certificates.load_identity(*certificate) if certificate else _create_identity(server, host)
        ca, context = identity.ca, identity.context
        if client_ca:
            certificates.trust_clients(context, client_ca)
    connections = Connections(server)
    loop = asyncio.get_running_loop()
    sockets = await loop.create_server(connections.create, host, port, ssl=context, backlog=1024)
    bound_port = sockets.sockets[0].getsockname()[1]
    url_host = f"[{host}]" if ":" in host else host
    return Listener(f"{'https' if tls else 'http'}://{url_host}:{bound_port}", ca, connections, sockets)


def _create_identity(server: "Server", host: str) -> certificates.Identity:
    """Create a certificate for `host` and the names of loopback, signed by the authority in the server's secrets."""
    hosts = list(dict.fromkeys([host, "127.0.0.1", "::1", "localhost"]))
    now = server.world.clock.now()
    authority = server.load_secret("ca", lambda: certificates.create_authority(now))
    return certificates.create_identity(hosts, now, authority)


class Connections:
    """The open connections of a listener."""

    def __init__(self, server: "Server") -> None:
        self.server = server
        self.open: set[Connection] = set()
        self._cached_date = (-1, "")

    def create(self) -> "Connection":
        """Return a new Connection. asyncio calls this method for each accepted socket."""
        return Connection(self)

    @property
    def date(self) -> str:
        """The current time in the format of the Date header."""
        second = int(self.server.world.clock.now())
        if self._cached_date[0] != second:
            self._cached_date = (second, formatdate(second, usegmt=True))
        return self._cached_date[1]

    async def close(self) -> None:
        """End all connections: those with a watch immediately, others after their response or a grace period."""
        responding = [task for connection in self.open if (task := connection.stop_accepting())]
        if responding:
            await asyncio.wait(responding, timeout=GRACE)
        closed = [connection.closed for connection in self.open]
        for connection in list(self.open):
            connection.end()
        if closed:
            await asyncio.wait(closed, timeout=GRACE)
        for connection in list(self.open):
            connection.abort()


class Connection(asyncio.Protocol):
    """One HTTP connection. It serves its requests one after another, and buffers a bounded number of bytes."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._server = connections.server
        self._loop = asyncio.get_running_loop()
        self._parser = http1.RequestParser()
        self._responding: asyncio.Task[None] | None = None
        self._is_streaming = False
        self._writable: asyncio.Future[None] | None = None  # set while the client reads too slowly
        self._is_reading = True
        self._is_ending = False  # no further request is read
        self._last_used = self._loop.time()
        self.closed: asyncio.Future[None] = self._loop.create_future()

    # The event loop calls the following methods.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Other event loops have transport classes of their own, so this cannot be checked with isinstance.
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self._source_address: str = peer[0] if peer else ""
        self._certificate_user = certificates.user_from_certificate(transport.get_extra_info("peercert"))
        self._connections.open.add(self)
        self._timer = self._loop.call_later(IDLE_TIMEOUT, self._check_idle)

    def data_received(self, data: bytes) -> None:
        if self._is_ending:
            return
        self._last_used = self._loop.time()
        self._parser.feed(data)
        if self._is_busy:
            if self._is_reading and self._parser.unparsed > READ_AHEAD:
                self._is_reading = False
                self._transport.pause_reading()
        else:
            self._serve_next()

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)
        if not self._is_busy:
            self._serve_next()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_ending = True
        self._parser.close()
        self._timer.cancel()
        self._connections.open.discard(self)
        if self._responding is not None:
            self._responding.cancel()
        if not self.closed.done():
            self.closed.set_result(None)

    # `Connections` calls the following methods.

    def stop_accepting(self) -> "asyncio.Task[None] | None":
        """Stop reading requests. Return the task of the response in progress, or None if it is a watch."""
        self._is_ending = True
        return None if self._is_streaming else self._responding

    def end(self) -> None:
        if self._responding is not None:
            self._responding.cancel()
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    @property
    def _is_busy(self) -> bool:
        return self._responding is not None or self._writable is not None

    def _serve_next(self) -> None:
        """Serve the next request if all of its bytes have arrived."""
        if self._is_ending or self._is_busy:
            return
        try:
            parsed = self._parser.next()
        except http1.RejectedRequest as rejection:
            self._reject(rejection.status)
            return
        if parsed is None:
            if self._parser.expects_continue:
                self._parser.expects_continue = False
                self._transport.write(http1.CONTINUE)
            if not self._is_reading:
                self._is_reading = True
                self._transport.resume_reading()
            return
        self._serve(parsed)
        if self._parser.has_more:  # other connections get their turn first
            self._loop.call_soon(self._serve_next)

    def _serve(self, parsed: http1.ParsedRequest) -> None:
        request = Request(
            parsed.method,
            parsed.path,
            parsed.query,
            parsed.headers,
            parsed.body,
            certificate_user=self._certificate_user,
            source_address=self._source_address,
        )
        if self._server.responds_immediately:
            response = self._server.respond(request)
            if isinstance(response, Response):
                self._write_response(response, parsed)
                return
            self._responding = self._loop.create_task(self._stream_response(response, parsed))
        else:
            self._responding = self._loop.create_task(self._handle_request(request, parsed))
        self._responding.add_done_callback(self._end_response)

    async def _handle_request(self, request: Request, parsed: http1.ParsedRequest) -> None:
        try:
            response = await self._server.handle(request)
        except ConnectionDropped:
            self._transport.abort()
            return
        if isinstance(response, StreamingResponse):
            await self._stream_response(response, parsed)
        else:
            self._write_response(response, parsed)

    def _end_response(self, task: "asyncio.Task[None]") -> None:
        self._responding, self._is_streaming = None, False
        if not task.cancelled() and (error := task.exception()) is not None:
            self._loop.call_exception_handler({"message": "a response failed", "exception": error, "task": task})
            self._transport.abort()
        self._serve_next()

    def _write_response(self, response: Response, parsed: http1.ParsedRequest) -> None:
        self._transport.write(http1.serialize(response, parsed, self._connections.date))
        if not parsed.keep_alive:
            self._close_after_response()

    async def _stream_response(self, response: StreamingResponse, parsed: http1.ParsedRequest) -> None:
        self._is_streaming = True
        close_after = parsed.is_http10 or not parsed.keep_alive
        date = self._connections.date
        response_head = http1.serialize_head(
            response.status, response.headers, response.warnings, date, length=None, close=parsed.is_http10
        )
        self._transport.write(response_head)
        try:
            async for chunk in response.chunks:
                if chunk:
                    self._transport.write(chunk if parsed.is_http10 else http1.serialize_chunk(chunk))
                if self._writable is not None:
                    await self._writable
        except ConnectionDropped:
            self._transport.abort()
            return
        finally:
            close = getattr(response.chunks, "aclose", None)
            if close is not None:
                await close()
        if not parsed.is_http10:
            self._transport.write(http1.LAST_CHUNK)
        if close_after:
            self._close_after_response()

    def _close_after_response(self) -> None:
        self._is_ending = True
        self._transport.close()

    def _reject(self, status: int) -> None:
        """Write the error response to a rejected request, and ignore further bytes until the connection closes.

        The connection stays open for a moment, because the client might lose the response otherwise.
        """
        self._is_ending = True
        if status == 413:
            response = Response(413, encode(too_large(f"Request entity too large: limit is {MAX_BODY}").status))
        else:
            response = Response(status, http1.status_text(status).encode(), "text/plain; charset=utf-8")
        date = self._connections.date
        response_head = http1.serialize_head(status, response.headers, [], date, length=len(response.body), close=True)
        self._transport.write(response_head + response.body)
        self._timer.cancel()
        self._timer = self._loop.call_later(LINGER, self._transport.close)

    def _check_idle(self) -> None:
        remaining = self._last_used + IDLE_TIMEOUT - self._loop.time()
        if self._responding is None and remaining <= 0:
            self._close_after_response()
        else:
            self._timer = self._loop.call_later(remaining if remaining > 0 else IDLE_TIMEOUT, self._check_idle)
