"""The HTTP transport over sockets. Only this module uses aiohttp's client."""

import asyncio
import os
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode, urlsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from fairlead.api.requests import HttpRequest
from fairlead.api.text import printable
from fairlead.client.access import Cluster
from fairlead.client.credentials import Credentials, CredentialsError, Identity, StaticCredentials
from fairlead.client.transport import NotSent, UnusableAnswer

CONNECT_TIMEOUT = 10.0  # seconds for DNS, TCP and TLS; a reachable server needs less than one
IDLE_TIMEOUT = 30.0  # seconds; servers close idle connections after 90 s
KEEP_ALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}  # detects a dead peer in half a minute
# A page of 500 objects of the largest size that etcd stores (1.5 MiB) fits. A body without end is cut.
MAX_BODY = 2**30
READ_BUFFER = 2**20  # bytes that are buffered of a stream before reading stops

_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A complete HTTP response."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    warnings: list[str]


class HttpStream:
    """An HTTP response whose body is still arriving, such as a watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self) -> bytes:
        try:
            return await self._response.content.readany()
        except aiohttp.ClientError as error:
            raise ConnectionResetError(f"the stream broke: {error}") from error

    async def close(self) -> None:
        # A watch does not end, so do not wait for its rest. A TLS shutdown could outlive the event loop.
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._response.close()


class HttpTransport:
    """A `Transport` over HTTP/1.1.

    Guarantees: the transport reuses connections and sends each request at most once. It reads the credentials for each
    request, so that rotated credentials are used immediately. It sends credentials over plain http only to localhost.

    Does not: follow redirects, store cookies, or use a proxy other than the cluster's.

    Raises: ValueError if the server's address is invalid; `CredentialsError` if there are no credentials;
    `UnusableAnswer` if a body is longer than 1 GiB, or compressed.
    """

    def __init__(self, cluster: Cluster, credentials: Credentials | None = None) -> None:
        url = urlsplit(cluster.server)
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise ValueError(f"a server's address is http(s)://host[:port][/path], not {cluster.server!r}")
        if "@" in url.netloc:
            raise ValueError("a server's address must not contain credentials: they would appear in messages")
        self._cluster = cluster
        self._base = cluster.server.rstrip("/")
        self._uses_tls = url.scheme == "https"
        self._sends_plaintext = not self._uses_tls and url.hostname not in _THIS_MACHINE
        # Split off the credentials, because aiohttp's errors contain the address.
        proxy = URL(cluster.proxy_url or "")
        secret = b64encode(f"{proxy.user}:{proxy.password or ''}".encode()).decode()
        self._proxy_headers = {"Proxy-Authorization": f"Basic {secret}"} if proxy.user else None
        self._proxy = proxy.with_user(None) if cluster.proxy_url else None
        # A proxy forwards https through a tunnel, and receives plain http with all its headers.
        self._shows_proxy = not self._uses_tls and self._proxy is not None and self._proxy.host not in _THIS_MACHINE
        self._credentials: Credentials = credentials or StaticCredentials()
        self._context: ssl.SSLContext | None = None
        self._context_for: tuple[bytes | None, bytes | None] | None = None
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False

    async def request(self, request: HttpRequest) -> HttpResponse:
        deadline = _compute_deadline(request.timeout)
        identity = await self._identity(deadline)
        try:
            async with asyncio.timeout_at(deadline):
                response = await self._send(identity, request)
                try:
                    content = await _read_body(response)
                finally:
                    response.release()
        except aiohttp.ClientError as error:
            raise _translate_error(error) from error
        return HttpResponse(response.status, response.headers, content, response.headers.getall("Warning", []))

    async def stream(self, request: HttpRequest) -> HttpStream:
        deadline = _compute_deadline(request.timeout)
        identity = await self._identity(deadline)
        try:
            async with asyncio.timeout_at(deadline):
                return HttpStream(await self._send(identity, request))
        except aiohttp.ClientError as error:
            raise _translate_error(error) from error

    async def close(self) -> None:
        """Close every connection. Later requests raise NotSent."""
        self._is_closed = True
        if self._session is not None:
            await self._session.close()

    async def _identity(self, deadline: float | None) -> Identity:
        """Return the credentials for a request. Raises CredentialsError if they are late or unsafe to send."""
        try:
            async with asyncio.timeout_at(deadline):
                identity = await self._credentials.identity()
        except TimeoutError as error:
            raise CredentialsError(
                f"the credentials for {self._base} took too long: run the kubeconfig's plugin by hand"
            ) from error
        if identity.authorization and self._sends_plaintext:
            raise CredentialsError(f"{self._base} would receive the credentials unencrypted: use https")
        if identity.authorization and self._shows_proxy:
            raise CredentialsError(
                f"the proxy {self._proxy} would receive the credentials for {self._base} unencrypted: use https for "
                f"the server, or remove proxy-url"
            )
        return identity

    async def _send(self, identity: Identity, request: HttpRequest) -> aiohttp.ClientResponse:
        context = self._get_tls_context(identity)
        headers = CIMultiDict(request.headers or {})
        headers.extend(identity.impersonate)
        if identity.authorization:
            headers["Authorization"] = identity.authorization
        url = self._base + request.path + (f"?{urlencode(request.query)}" if request.query else "")
        # Use half of a short timeout, so that a failed connection is known before the timeout: nothing was sent.
        connect = CONNECT_TIMEOUT if request.timeout is None else min(CONNECT_TIMEOUT, request.timeout / 2)
        _before_send.set(request.before_send)
        response = await self._open_session().request(
            request.method,
            URL(url, encoded=True),
            data=request.body,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, connect=connect),
            allow_redirects=False,
            ssl=context if context is not None else True,
            server_hostname=self._cluster.tls_server_name if self._uses_tls else None,
            proxy=self._proxy,
            proxy_headers=self._proxy_headers,
        )
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding.lower() != "identity":  # A few kilobytes can decompress to gigabytes.
            response.close()
            raise UnusableAnswer(
                f"{self._base} answered with Content-Encoding {printable(encoding)}, although the client asked for "
                f"none: switch off compression in the proxy before the server"
            )
        if response.status == 401:
            self._credentials.on_unauthorized(identity)
        return response

    def _open_session(self) -> aiohttp.ClientSession:
        if self._is_closed:
            raise NotSent(f"the transport to {self._base} is closed")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # No limit: watches hold connections for hours, and a full pool would block all other requests.
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_TIMEOUT, socket_factory=_create_socket),
                cookie_jar=aiohttp.DummyCookieJar(),
                # Decompression costs CPU time, and the cluster's network is cheaper.
                headers={"Accept-Encoding": "identity"},
                auto_decompress=False,
                skip_auto_headers=("User-Agent", "Content-Type"),
                middlewares=(_send_at_most_once,),
                request_class=_CheckedRequest,
                read_bufsize=READ_BUFFER,
                trust_env=False,
            )
        return self._session

    def _get_tls_context(self, identity: Identity) -> ssl.SSLContext | None:
        """Return the TLS context for these credentials, from a cache unless the client certificate changed."""
        if not self._uses_tls:
            return None
        pair = (identity.certificate, identity.key)
        if self._context is None or self._context_for != pair:
            self._context = tls_context(self._cluster, identity)
            self._context_for = pair
        return self._context


def tls_context(cluster: Cluster, identity: Identity) -> ssl.SSLContext:
    """Create the TLS context for a cluster and a client certificate. Raises CredentialsError for invalid PEM data."""
    ca = cluster.ca_data
    try:
        context = ssl.create_default_context(cadata=ca.decode() if ca else None)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise CredentialsError(
            f"the CA of {cluster.server} is not PEM certificates ({error}): check certificate-authority(-data)"
        ) from error
    context.verify_flags &= (
        ~ssl.VERIFY_X509_STRICT
    )  # the CAs of many clusters lack extensions that other clients do not require
    if cluster.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if identity.certificate is not None:
        # The ssl module only loads files, so write them to a private folder for the moment of loading.
        with TemporaryDirectory(prefix="fairlead-") as folder:
            certificate, key = Path(folder, "cert"), Path(folder, "key")
            certificate.write_bytes(identity.certificate)
            key.touch(0o600)
            key.write_bytes(identity.key or b"")
            try:
                context.load_cert_chain(certificate, key, password=_reject_password_prompt)
            except (ssl.SSLError, ValueError) as error:
                raise CredentialsError(
                    f"the client certificate for {cluster.server} and its key do not load ({error}): they must be PEM, "
                    "belong together, and the key must have no password"
                ) from error
    return context


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    chunks, size = [], 0
    async for part in response.content.iter_any():
        chunks.append(part)
        size += len(part)
        if size > MAX_BODY:
            response.close()  # Closes the connection too, so the rest of the body is not read.
            raise UnusableAnswer(
                f"the answer of {response.url.origin()} is longer than {MAX_BODY:,} bytes: list with a limit, and "
                f"check the server's address"
            )
    return b"".join(chunks)


def _compute_deadline(timeout: float | None) -> float | None:
    return None if timeout is None else asyncio.get_running_loop().time() + timeout


def _reject_password_prompt() -> str:
    raise ValueError("the key has a password")


def _create_socket(info: "aiohttp.AddrInfoType") -> socket.socket:
    sock = socket.socket(info[0], info[1], info[2])
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEP_ALIVE.items():
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return sock


_before_send: ContextVar[Callable[[], object] | None] = ContextVar("fairlead_before_send", default=None)


class _CheckedRequest(aiohttp.ClientRequest):
    """A request that calls `HttpRequest.before_send` when it has a connection, before it writes to it."""

    async def send(self, conn: "aiohttp.connector.Connection") -> aiohttp.ClientResponse:
        check = _before_send.get()
        if check is not None and self.method != "CONNECT":
            check()
        return await super().send(conn)


class _ConnectionBroken(aiohttp.ClientError):
    """The connection broke after the first byte of the request was sent."""


async def _send_at_most_once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Prevent aiohttp from sending a PUT or DELETE again on a new connection: the caller decides about retries."""
    try:
        return await handler(request)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _ConnectionBroken(f"the connection broke: {error}") from error


def _translate_error(error: aiohttp.ClientError) -> OSError:
    """Return the OSError that the `Transport` protocol specifies for an aiohttp error."""
    if isinstance(error.__cause__, NotSent):  # raised by before_send
        return error.__cause__
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return NotSent(
            f"cannot connect: the certificate of {error.host}:{error.port} is not trusted "
            f"({error.certificate_error}): check certificate-authority(-data) and tls-server-name"
        )
    if isinstance(error, aiohttp.ClientConnectorError):
        cause = error.os_error
        has_own_errno = (
            isinstance(cause, ssl.SSLError | socket.gaierror) or not cause.errno
        )  # these have their own error numbers
        reason = str(cause.strerror or cause) if has_own_errno else os.strerror(cause.errno or 0)
        return NotSent(
            f"cannot connect to {error.host}:{error.port} ({reason}): is the server up, and is its address right?"
        )
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return NotSent(
            f"cannot connect: the proxy {error.request_info.real_url.origin()} answered {error.status} "
            f"({error.message}): check proxy-url, and the name and password in it"
        )
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return NotSent(f"cannot connect: {error}")
    return ConnectionResetError(str(error) or type(error).__name__)
