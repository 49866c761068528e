"""`HttpsCaller`: it calls webhooks over HTTPS, without blocking the event loop, and reuses connections."""

import asyncio
import ipaddress
import os
import socket
import ssl
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httptools

from fairlead.server.webhooks.calls import WebhookCall, WebhookFailed, WebhookReply

MAX_REPLY = 16 * 1024 * 1024  # bytes; a ConversionReview of many large objects fits
IDLE_TIMEOUT = 30.0  # seconds that an unused connection is kept; servers usually close after more than that
_READ = 1 << 16


class _Address(NamedTuple):
    host: str
    port: int
    server_name: str
    ca_bundle: bytes


class HttpsCaller:
    """Calls webhooks over HTTPS.

    Guarantees: it connects to loopback addresses, to `hosts` and to the addresses of `services`, and nowhere else. It
    verifies certificates with the caBundle, which may be the certificate of the webhook itself.

    Parameters:
        hosts: names or addresses besides loopback that URLs may have.
        services: where the Services of webhooks listen: "NAMESPACE/NAME" to host and port.
    """

    def __init__(self, hosts: Iterable[str] = (), services: Mapping[str, tuple[str, int]] | None = None) -> None:
        self._hosts = frozenset(hosts)
        self._services = dict(services or {})
        self._idle: dict[_Address, list[_Connection]] = defaultdict(list)

    async def call(self, call: WebhookCall) -> WebhookReply:
        address = self._resolve(call)
        path = urlsplit(call.target)
        request = (
            f"POST {path.path or '/'}?{path.query} HTTP/1.1\r\nHost: {path.netloc}\r\nUser-Agent: {call.user_agent}\r\n"
            f"Content-Length: {len(call.body)}\r\nAccept: application/json, */*\r\n"
            "Content-Type: application/json\r\n\r\n"
        ).encode() + call.body
        while (connection := self._take_idle(address)) is not None:
            try:
                return await self._exchange(address, connection, request)
            except (OSError, EOFError):
                continue  # The webhook closed the idle connection.
        try:
            return await self._exchange(address, await _connect(address), request)
        except EOFError:
            raise _fail(call, "EOF") from None
        except httptools.HttpParserError as error:
            raise _fail(call, f"net/http: HTTP/1.x transport connection broken: {error}") from None
        except ssl.SSLCertVerificationError as error:
            raise _fail(call, f"tls: failed to verify certificate: x509: {_describe_certificate(error)}") from None
        except ssl.SSLError as error:
            raise _fail(call, f"remote error: tls: {(error.reason or str(error)).lower().replace('_', ' ')}") from None
        except socket.gaierror:
            raise _fail(call, f"dial tcp: lookup {address.host}: no such host") from None
        except OSError as error:
            shown = f"[{address.host}]" if ":" in address.host else address.host
            reason = os.strerror(error.errno).lower() if error.errno else str(error)
            raise _fail(call, f"dial tcp {shown}:{address.port}: connect: {reason}") from None

    def close(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()

    def _resolve(self, call: WebhookCall) -> _Address:
        """Return where to connect. Raises WebhookFailed for a target that the user did not allow."""
        service = call.service
        if service is None:
            parts = urlsplit(call.url)
            host, port = parts.hostname or "", parts.port or 443
            if not _is_loopback(host) and host not in self._hosts:
                remedy = f"this server calls webhooks on loopback only: allow it with --webhook-hosts={host}"
                raise _fail(call, f"dial tcp {parts.netloc}: {remedy}")
            return _Address(host, port, host, call.ca_bundle)
        server_name = f"{service.name}.{service.namespace}.svc"
        if (mapped := self._services.get(f"{service.namespace}/{service.name}")) is not None:
            return _Address(*mapped, server_name, call.ca_bundle)
        if not service.cluster_ip:
            raise _fail(call, f'service "{service.name}" not found')
        raise _fail(call, f"dial tcp {service.cluster_ip}:{service.port}: connect: network is unreachable")

    def _take_idle(self, address: _Address) -> "_Connection | None":
        connections = self._idle[address]
        while connections:
            connection = connections.pop()
            if connection.is_reusable():
                return connection
            connection.close()
        return None

    async def _exchange(self, address: _Address, connection: "_Connection", request: bytes) -> WebhookReply:
        try:
            reply, keep_alive = await connection.exchange(request)
        except BaseException:
            connection.close()
            raise
        if keep_alive:
            self._idle[address].append(connection)
        else:
            connection.close()
        return reply


class _Connection:
    """One connection of HTTP/1.1 that carries one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._last_used = self._loop.time()

    def is_reusable(self) -> bool:
        is_fresh = self._loop is asyncio.get_running_loop() and self._loop.time() - self._last_used < IDLE_TIMEOUT
        return is_fresh and not self._reader.at_eof() and not self._writer.is_closing()

    def close(self) -> None:
        if not self._loop.is_closed():
            self._writer.transport.abort()

    async def exchange(self, request: bytes) -> tuple[WebhookReply, bool]:
        """Send a request. Return the reply, and whether the connection stays open. Raises EOFError if it closed."""
        self._writer.write(request)
        reply = _ReplyBuilder()
        parser = reply.parser = httptools.HttpResponseParser(reply)
        while not reply.is_complete:
            data = await self._reader.read(_READ)
            if not data and reply.headers is not None and "content-length" not in reply.headers:
                break  # The end of the connection ends the body.
            if not data:
                raise EOFError
            parser.feed_data(data)
        self._last_used = self._loop.time()
        content_type = (reply.headers or {}).get("content-type", "")
        return WebhookReply(parser.get_status_code(), content_type, bytes(reply.body)), reply.keeps_alive


class _ReplyBuilder:
    """Collects what the parser of an HTTP response reports."""

    def __init__(self) -> None:
        self.headers: dict[str, str] | None = None
        self.body = bytearray()
        self.is_complete = False
        self.keeps_alive = False
        self.parser: Any = None
        self._pairs: dict[str, str] = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        self._pairs[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.headers = self._pairs

    def on_body(self, data: bytes) -> None:
        self.body += data
        if len(self.body) > MAX_REPLY:
            raise httptools.HttpParserError(f"the reply has more than {MAX_REPLY} bytes")

    def on_message_complete(self) -> None:
        self.is_complete = True
        self.keeps_alive = self.parser.should_keep_alive()


async def _connect(address: _Address) -> _Connection:
    context = _create_context(address.ca_bundle)
    reader, writer = await asyncio.open_connection(
        address.host, address.port, ssl=context, server_hostname=address.server_name
    )
    return _Connection(reader, writer)


@lru_cache(maxsize=64)
def _create_context(ca_bundle: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca_bundle.decode(errors="replace") if ca_bundle else None)
    # Go trusts a certificate in the bundle even if it is not a CA. envtest puts the webhook's own certificate there.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VerifyFlags.VERIFY_X509_STRICT
    return context


def _describe_certificate(error: ssl.SSLCertVerificationError) -> str:
    """Return Go's text for a certificate that OpenSSL rejects."""
    text: Any = error.verify_message or ""
    if "mismatch" in text or "doesn't match" in text:
        return f"certificate is not valid: {text}"
    if "expired" in text:
        return "certificate has expired or is not yet valid"
    return "certificate signed by unknown authority"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _fail(call: WebhookCall, reason: str) -> WebhookFailed:
    return WebhookFailed(f'Post "{call.target}": {reason}')
