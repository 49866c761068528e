"""The transport over sockets. The only module that knows aiohttp."""

import asyncio
import os
import socket
import ssl
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode, urlsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from fairlead.api.requests import HttpRequest
from fairlead.client.access import Cluster
from fairlead.client.credentials import Credentials, CredentialsError, Identity, StaticCredentials
from fairlead.client.transport import NotSent

CONNECT_TIMEOUT = 10.0  # seconds for name, TCP and TLS: a server that is there answers within one
IDLE_TIMEOUT = (
    30.0  # seconds an unused connection is kept; servers close theirs after 90, and a write must not meet that
)
KEEP_ALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}  # a dead peer is noticed in half a minute
READ_BUFFER = 2**20  # bytes buffered of a stream before the socket waits


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A whole answer, read."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    warnings: list[str]


class HttpStream:
    """An answer that is still coming."""

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
        # The rest of a watch never ends, so there is nothing to wait for: a TLS farewell could outlive the loop.
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._response.close()


class HttpTransport:
    """One server over HTTP/1.1: a Transport.

    Connections are kept and reused. No redirect is followed, no cookie kept, no request sent twice, no proxy used but
    the cluster's own. Credentials are asked for at each request, so that rotated ones are used at once, and go over
    plain http to this machine only.
    """

    def __init__(self, cluster: Cluster, credentials: Credentials | None = None) -> None:
        url = urlsplit(cluster.server)
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise ValueError(f"a server's address is http(s)://host[:port][/path], not {cluster.server!r}")
        if "@" in url.netloc:
            raise ValueError("a server's address holds no credentials: they would be quoted with it")
        self._cluster = cluster
        self._base = cluster.server.rstrip("/")
        self._tls = url.scheme == "https"
        self._sends_plaintext = not self._tls and url.hostname not in {"localhost", "127.0.0.1", "::1"}
        # Taken apart, since aiohttp's errors quote the address.
        proxy = URL(cluster.proxy_url or "")
        secret = b64encode(f"{proxy.user}:{proxy.password or ''}".encode()).decode()
        self._proxy_headers = {"Proxy-Authorization": f"Basic {secret}"} if proxy.user else None
        self._proxy = proxy.with_user(None) if cluster.proxy_url else None
        self._credentials: Credentials = credentials or StaticCredentials()
        self._context: ssl.SSLContext | None = None
        self._context_for: tuple[bytes | None, bytes | None] | None = None
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def request(self, request: HttpRequest) -> HttpResponse:
        deadline = _deadline(request.timeout)
        identity = await self._identity(deadline)
        try:
            async with asyncio.timeout_at(deadline):
                response = await self._send(identity, request)
                try:
                    content = await response.read()
                finally:
                    response.release()
        except aiohttp.ClientError as error:
            raise _translate_error(error) from error
        return HttpResponse(response.status, response.headers, content, response.headers.getall("Warning", []))

    async def stream(self, request: HttpRequest) -> HttpStream:
        deadline = _deadline(request.timeout)
        identity = await self._identity(deadline)
        try:
            async with asyncio.timeout_at(deadline):
                return HttpStream(await self._send(identity, request))
        except aiohttp.ClientError as error:
            raise _translate_error(error) from error

    async def close(self) -> None:
        """Close every connection. What is asked for afterwards is not sent."""
        self._closed = True
        if self._session is not None:
            await self._session.close()

    async def _identity(self, deadline: float | None) -> Identity:
        """Who to be, found before anything is sent."""
        try:
            async with asyncio.timeout_at(deadline):
                identity = await self._credentials.identity()
        except TimeoutError as error:
            raise CredentialsError(
                f"the credentials for {self._base} took longer than a request may: run the kubeconfig's plugin by hand"
            ) from error
        if identity.authorization and self._sends_plaintext:
            raise CredentialsError(f"{self._base} would see the credentials in the open: use https")
        return identity

    async def _send(self, identity: Identity, request: HttpRequest) -> aiohttp.ClientResponse:
        context = self._tls_context_for(identity)
        headers = CIMultiDict(request.headers or {})
        headers.extend(identity.impersonate)
        if identity.authorization:
            headers["Authorization"] = identity.authorization
        url = self._base + request.path + (f"?{urlencode(request.query)}" if request.query else "")
        # Half of a short deadline, so that what could not connect is known not to have been sent.
        connect = CONNECT_TIMEOUT if request.timeout is None else min(CONNECT_TIMEOUT, request.timeout / 2)
        response = await self._open_session().request(
            request.method,
            URL(url, encoded=True),
            data=request.body,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, connect=connect),
            allow_redirects=False,
            ssl=context if context is not None else True,
            server_hostname=self._cluster.tls_server_name if self._tls else None,
            proxy=self._proxy,
            proxy_headers=self._proxy_headers,
        )
        if response.status == 401:
            self._credentials.on_unauthorized(identity)
        return response

    def _open_session(self) -> aiohttp.ClientSession:
        if self._closed:
            raise NotSent(f"the transport to {self._base} is closed")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # No limit of our own: watches hold connections for hours, and a full pool would lock the rest out.
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_TIMEOUT, socket_factory=_create_socket),
                cookie_jar=aiohttp.DummyCookieJar(),
                # Unpacking is work for our one core, the cluster's network is the cheaper of the two.
                headers={"Accept-Encoding": "identity"},
                skip_auto_headers=("User-Agent", "Content-Type"),
                middlewares=(_send_at_most_once,),
                read_bufsize=READ_BUFFER,
                trust_env=False,
            )
        return self._session

    def _tls_context_for(self, identity: Identity) -> ssl.SSLContext | None:
        """The TLS context for this identity, made anew only when the certificate changed."""
        if not self._tls:
            return None
        wanted = (identity.certificate, identity.key)
        if self._context is None or self._context_for != wanted:
            self._context = tls_context(self._cluster, identity)
            self._context_for = wanted
        return self._context


def tls_context(cluster: Cluster, identity: Identity) -> ssl.SSLContext:
    """How to prove each to the other. Raises CredentialsError when the PEM data is no good."""
    ca = cluster.ca_data
    try:
        context = ssl.create_default_context(cadata=ca.decode() if ca else None)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise CredentialsError(
            f"the CA of {cluster.server} is not PEM certificates ({error}): check certificate-authority(-data)"
        ) from error
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # many clusters' CAs lack extensions that nobody else insists on
    if cluster.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if identity.certificate is not None:
        # ssl reads files only: for the moment of loading, in a folder that is ours alone.
        with TemporaryDirectory(prefix="fairlead-") as folder:
            certificate, key = Path(folder, "cert"), Path(folder, "key")
            certificate.write_bytes(identity.certificate)
            key.touch(0o600)
            key.write_bytes(identity.key or b"")
            try:
                context.load_cert_chain(certificate, key, password=_no_password)
            except (ssl.SSLError, ValueError) as error:
                raise CredentialsError(
                    f"the client certificate for {cluster.server} and its key do not load ({error}): they must be PEM, "
                    "belong together, and the key must have no password"
                ) from error
    return context


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else asyncio.get_running_loop().time() + timeout


def _no_password() -> str:
    raise ValueError("the key has a password")


def _create_socket(info: "aiohttp.AddrInfoType") -> socket.socket:
    made = socket.socket(info[0], info[1], info[2])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEP_ALIVE.items():
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


class _ConnectionBroken(aiohttp.ClientError):
    """A connection broke after the request was begun."""


async def _send_at_most_once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Keep aiohttp from sending PUT and DELETE a second time on a fresh connection: whether to is not its to decide."""
    try:
        return await handler(request)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _ConnectionBroken(f"the connection broke: {error}") from error


def _translate_error(error: aiohttp.ClientError) -> OSError:
    """What happened to the request, in the words of Transport."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return NotSent(
            f"cannot connect: the certificate of {error.host}:{error.port} is not to be trusted "
            f"({error.certificate_error}): check certificate-authority(-data) and tls-server-name"
        )
    if isinstance(error, aiohttp.ClientConnectorError):
        cause = error.os_error
        own = isinstance(cause, ssl.SSLError | socket.gaierror) or not cause.errno  # these have numbers of their own
        why = str(cause.strerror or cause) if own else os.strerror(cause.errno or 0)
        return NotSent(
            f"cannot connect to {error.host}:{error.port} ({why}): is the server up, and is its address right?"
        )
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return NotSent(
            f"cannot connect: the proxy {error.request_info.real_url.origin()} answered {error.status} "
            f"({error.message}): check proxy-url, and the name and password in it"
        )
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return NotSent(f"cannot connect: {error}")
    return ConnectionResetError(str(error) or type(error).__name__)
