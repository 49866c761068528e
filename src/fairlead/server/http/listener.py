"""The HTTP door: on loopback unless TLS and a token guard it.

What can be answered at once is answered where its last byte arrived: no task, no queue.
"""

import asyncio
import ipaddress
from email.utils import formatdate
from typing import TYPE_CHECKING, cast

from fairlead.server.errors.statuses import too_large
from fairlead.server.golang.encoding import MAX_BODY, encode
from fairlead.server.http import http1
from fairlead.server.http import tls as certificates
from fairlead.server.http.messages import ConnectionDropped, Request, Response, StreamingResponse

if TYPE_CHECKING:
    from fairlead.server.app import Server

IDLE = 90.0  # seconds that a connection without a request is kept, as by a real server
LINGER = 2.0  # and one that was refused, so that its client reads why before it is cut
GRACE = 0.1  # for answers that are on their way when the door closes
AHEAD = 1 << 16  # bytes read beyond the request that is being answered


class Listener:
    """A server that listens. Close it to stop; watches end then."""

    def __init__(self, url: str, ca: bytes | None, door: "Connections", listener: asyncio.Server) -> None:
        self.url = url
        self.ca = ca  # PEM, None without TLS
        self._door = door
        self._listener = listener

    async def close(self) -> None:
        self._listener.close()
        await self._door.close()


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def listen(server: "Server", host: str, port: int, *, tls: bool, client_ca: bytes | None = None) -> Listener:
    """Listen on an address. One that others can reach needs TLS and a token.

    Certificates by `client_ca` (PEM) authenticate their clients; a certificate by anyone else ends the handshake.
    """
    if client_ca and not tls:
        raise ValueError("client certificates need TLS")
    if not is_loopback(host) and not (tls and server.requires_tokens):
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
    door = Connections(server)
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(door.connection, host, port, ssl=context, backlog=1024)
    bound = listener.sockets[0].getsockname()[1]
    shown_host = f"[{host}]" if ":" in host else host
    return Listener(f"{'https' if tls else 'http'}://{shown_host}:{bound}", ca, door, listener)


class Connections:
    """The connections of one listening server."""

    def __init__(self, server: "Server") -> None:
        self.server = server
        self.connections: set[Connection] = set()
        self._dated = (-1, "")

    def connection(self) -> "Connection":
        """A new connection, for a transport that is about to be made."""
        return Connection(self)

    @property
    def date(self) -> str:
        """Now, as an answer's head says it."""
        second = int(self.server.world.clock.now())
        if self._dated[0] != second:
            self._dated = (second, formatdate(second, usegmt=True))
        return self._dated[1]

    async def close(self) -> None:
        """End every connection: watches at once, other answers after a moment's grace."""
        answering = [task for connection in self.connections if (task := connection.ending())]
        if answering:
            await asyncio.wait(answering, timeout=GRACE)
        ends = [connection.closed for connection in self.connections]
        for connection in list(self.connections):
            connection.end()
        if ends:
            await asyncio.wait(ends, timeout=GRACE)
        for connection in list(self.connections):
            connection.abort()


class Connection(asyncio.Protocol):
    """One connection: its requests are answered one after another. What it holds of either side is bounded."""

    def __init__(self, door: Connections) -> None:
        self._door = door
        self._server = door.server
        self._loop = asyncio.get_running_loop()
        self._requests = http1.RequestParser()
        self._answering: asyncio.Task[None] | None = None
        self._streaming = False
        self._writable: asyncio.Future[None] | None = None  # while the client reads too slowly
        self._reading = True
        self._over = False  # no further request is read
        self._used = self._loop.time()
        self.closed: asyncio.Future[None] = self._loop.create_future()

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # by shape: other loops have classes of their own
        peer = transport.get_extra_info("peername")
        self._source: str = peer[0] if peer else ""
        self._certified = certificates.user_of(transport.get_extra_info("peercert"))
        self._door.connections.add(self)
        self._idling = self._loop.call_later(IDLE, self._idle)

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        self._used = self._loop.time()
        self._requests.feed(data)
        if self._busy:
            if self._reading and self._requests.ahead > AHEAD:
                self._reading = False
                self._transport.pause_reading()
        else:
            self._go_on()

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        waited, self._writable = self._writable, None
        if waited is not None and not waited.done():
            waited.set_result(None)
        if not self._busy:
            self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self._over = True
        self._requests.close()
        self._idling.cancel()
        self._door.connections.discard(self)
        if self._answering is not None:
            self._answering.cancel()
        if not self.closed.done():
            self.closed.set_result(None)

    # What the door calls.

    def ending(self) -> "asyncio.Task[None] | None":
        """Take no further request; the answer that is still being made, a watch apart."""
        self._over = True
        return None if self._streaming else self._answering

    def end(self) -> None:
        if self._answering is not None:
            self._answering.cancel()
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    # One request after another.

    @property
    def _busy(self) -> bool:
        return self._answering is not None or self._writable is not None

    def _go_on(self) -> None:
        """Answer the next request that has come whole."""
        if self._over or self._busy:
            return
        try:
            message = self._requests.next()
        except http1.RejectedRequest as refused:
            self._refuse(refused.status)
            return
        if message is None:
            if self._requests.expected:
                self._requests.expected = False
                self._transport.write(http1.CONTINUE)
            if not self._reading:
                self._reading = True
                self._transport.resume_reading()
            return
        self._answer(message)
        if self._requests.more:  # others have their turn first
            self._loop.call_soon(self._go_on)

    def _answer(self, message: http1.ParsedRequest) -> None:
        request = Request(
            message.method,
            message.path,
            message.query,
            message.headers,
            message.body,
            certified=self._certified,
            source=self._source,
        )
        if self._server.responds_immediately:
            answer = self._server.respond(request)
            if isinstance(answer, Response):
                self._whole(answer, message)
                return
            self._answering = self._loop.create_task(self._stream(answer, message))
        else:
            self._answering = self._loop.create_task(self._in_time(request, message))
        self._answering.add_done_callback(self._answered)

    async def _in_time(self, request: Request, message: http1.ParsedRequest) -> None:
        try:
            answer = await self._server.handle(request)
        except ConnectionDropped:
            self._transport.abort()
            return
        if isinstance(answer, StreamingResponse):
            await self._stream(answer, message)
        else:
            self._whole(answer, message)

    def _answered(self, task: "asyncio.Task[None]") -> None:
        self._answering, self._streaming = None, False
        if not task.cancelled() and (error := task.exception()) is not None:
            self._loop.call_exception_handler({"message": "an answer broke off", "exception": error, "task": task})
            self._transport.abort()
        self._go_on()

    def _whole(self, answer: Response, message: http1.ParsedRequest) -> None:
        self._transport.write(http1.whole(answer, message, self._door.date))
        if not message.lasting:
            self._finish()

    async def _stream(self, answer: StreamingResponse, message: http1.ParsedRequest) -> None:
        self._streaming = True
        last = message.old or not message.lasting
        head = http1.head(
            answer.status, answer.headers, answer.warnings, self._door.date, length=None, last=message.old
        )
        self._transport.write(head)
        try:
            async for chunk in answer.chunks:
                if chunk:
                    self._transport.write(chunk if message.old else http1.chunk(chunk))
                if self._writable is not None:
                    await self._writable
        except ConnectionDropped:
            self._transport.abort()
            return
        finally:
            close = getattr(answer.chunks, "aclose", None)
            if close is not None:
                await close()
        if not message.old:
            self._transport.write(http1.LAST_CHUNK)
        if last:
            self._finish()

    def _finish(self) -> None:
        self._over = True
        self._transport.close()

    def _refuse(self, status: int) -> None:
        """Say why, and read on for a moment without looking: a connection that is cut at once may lose the answer."""
        self._over = True
        if status == 413:
            answer = Response(413, encode(too_large(f"Request entity too large: limit is {MAX_BODY}").status))
        else:
            told = http1.phrase(status)
            answer = Response(status, told.encode(), "text/plain; charset=utf-8")
        head = http1.head(status, answer.headers, [], self._door.date, length=len(answer.body), last=True)
        self._transport.write(head + answer.body)
        self._idling.cancel()
        self._idling = self._loop.call_later(LINGER, self._transport.close)

    def _idle(self) -> None:
        left = self._used + IDLE - self._loop.time()
        if self._answering is None and left <= 0:
            self._finish()
        else:
            self._idling = self._loop.call_later(left if left > 0 else IDLE, self._idle)
