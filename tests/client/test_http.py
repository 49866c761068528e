"""Tests of the HTTP transport with a server that writes raw bytes: broken connections, and credentials."""

import asyncio
import gzip
import socket
from pathlib import Path

import pytest

from fairlead.api.builtin import ConfigMap
from fairlead.api.errors import ApiError, UnknownOutcome
from fairlead.api.kinds import kind
from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.client.access import Cluster
from fairlead.client.client import Client, PatchType
from fairlead.client.credentials import (
    CredentialsError,
    Identity,
    ImpersonatingCredentials,
    StaticCredentials,
    TokenFileCredentials,
)
from fairlead.client.discovery import ServedKind
from fairlead.client.http import HttpTransport
from fairlead.client.transport import NotSent, UnusableAnswer
from fairlead.client.watching import WatchBroken

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(chunk_bytes):
    return f"{len(chunk_bytes):x}\r\n".encode() + chunk_bytes + b"\r\n"


async def always_respond_ok(raw_server, reader, writer):
    while True:
        await raw_server.request(reader)
        writer.write(OK)


@pytest.fixture
async def transport():
    """Return a function: transport(url, credentials) returns an HttpTransport that is closed after the test."""
    transports = []

    def make_transport(url, credentials=None, **options):
        transports.append(HttpTransport(Cluster(url, **options), credentials))
        return transports[-1]

    yield make_transport
    for transport in transports:
        await transport.close()


async def test_connections_are_reused(raw_server, transport):
    await raw_server.start(always_respond_ok)
    server = transport(raw_server.url)
    for _ in range(5):
        assert (await server.request(HttpRequest("GET", "/a"))).body == b"{}"
    assert raw_server.connections == 1
    assert len(raw_server.requests) == 5


async def test_path_prefix_query_and_headers_arrive_unchanged(raw_server, transport):
    await raw_server.start(always_respond_ok)
    server = transport(raw_server.url + "/k8s/clusters/c-1/")
    query = {"labelSelector": "a in (b,c),d!=e&f", "x": "é +"}
    await server.request(
        HttpRequest("PUT", "/api/v1/nodes/system%3Anode%2Fa", query=query, headers={"User-Agent": "me"}, body=b"{}")
    )
    [(line, headers, body)] = raw_server.requests
    path = "/k8s/clusters/c-1/api/v1/nodes/system%3Anode%2Fa"
    assert line == f"PUT {path}?labelSelector=a+in+%28b%2Cc%29%2Cd%21%3De%26f&x=%C3%A9+%2B HTTP/1.1"
    assert dict(headers)["user-agent"] == "me"
    assert "authorization" not in dict(headers)
    assert body == b"{}"


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(code, raw_server, transport):
    async def respond_with_redirect(raw_server, reader, writer):
        while True:
            await raw_server.request(reader)
            writer.write(f"HTTP/1.1 {code} x\r\nLocation: {raw_server.url}/else\r\nContent-Length: 0\r\n\r\n".encode())

    await raw_server.start(respond_with_redirect)
    client = Client(transport(raw_server.url, StaticCredentials.token("secret")), World())
    with pytest.raises(ApiError, match="redirect") as raised:
        await client.resolve(ConfigMap)
    assert "secret" not in str(raised.value)
    assert len(raw_server.requests) == 1


async def test_cookies_are_not_stored(raw_server, transport):
    async def respond_with_cookie(raw_server, reader, writer):
        while True:
            await raw_server.request(reader)
            writer.write(OK.replace(b"Content-Length", b"Set-Cookie: a=b\r\nContent-Length"))

    await raw_server.start(respond_with_cookie)
    server = transport(raw_server.url.replace("127.0.0.1", "localhost"))  # cookies are only stored for host names
    await server.request(HttpRequest("GET", "/"))
    await server.request(HttpRequest("GET", "/"))
    assert "cookie" not in dict(raw_server.requests[1][1])


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_before_send_is_called_when_the_connection_is_open(method, raw_server, transport):
    """The wait for a connection may be long. The check comes after it, at the last moment."""
    await raw_server.start(always_respond_ok)
    connections = []

    def check():
        connections.append(raw_server.connections)
        raise NotSent("not the leader")

    server = transport(raw_server.url)
    with pytest.raises(NotSent, match="not the leader"):
        await server.request(HttpRequest(method, "/", body=b"{}", before_send=check))
    assert (await server.request(HttpRequest(method, "/"))).body == b"{}", "the next request has no check"
    assert len(connections) == 1
    assert [line.split()[0] for line, _, _ in raw_server.requests] == [method]


async def test_a_refused_connection_raises_not_sent(transport):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NotSent, match="cannot connect"):
        await transport(f"http://127.0.0.1:{port}").request(HttpRequest("POST", "/", body=b"{}"))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("is_reused", [False, True])
async def test_a_write_is_sent_once_when_the_connection_breaks(method, is_reused, raw_server, transport):
    async def close_connection(raw_server, reader, writer):
        if is_reused and raw_server.connections == 1:
            await raw_server.request(reader)
            writer.write(OK)
        await raw_server.request(reader)

    await raw_server.start(close_connection)
    server = transport(raw_server.url)
    if is_reused:
        await server.request(HttpRequest("GET", "/"))
    with pytest.raises(ConnectionResetError):
        await server.request(HttpRequest(method, "/", body=b"{}"))
    assert [line.split()[0] for line, _, _ in raw_server.requests[is_reused:]] == [method]


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"HTTP/1.1 20",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{",
        STREAM + b"5\r\n{",
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
    ],
)
async def test_a_truncated_or_invalid_answer_raises_unknown_outcome(response, raw_server, transport):
    async def handle(raw_server, reader, writer):
        body = b'{"resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true}]}'
        while (await raw_server.request(reader))[0].startswith("GET"):
            writer.write(OK.replace(b"Length: 2", f"Length: {len(body)}".encode())[:-2] + body)
        writer.write(response)
        await writer.drain()

    await raw_server.start(handle)
    client = Client(transport(raw_server.url), World())
    with pytest.raises(UnknownOutcome):
        await client.patch(ConfigMap, "a", "n", [], type=PatchType.JSON)
    assert len([line for line, _, _ in raw_server.requests if line.startswith("PATCH")]) == 1


def respond_once_then(second_response):
    """Return a handler that answers the first request at once and the second with `second_response`, incomplete.

    The client has connected at the first request, so the timeout of the second does not include connecting.
    """

    async def handle(raw_server, reader, writer):
        await raw_server.request(reader)
        writer.write(OK)
        await raw_server.request(reader)
        writer.write(second_response)
        await asyncio.sleep(60)

    return handle


async def test_slow_headers_time_out(raw_server, transport):
    await raw_server.start(respond_once_then(second_response=b"HTTP/1.1 200 OK\r\n"))
    server = transport(raw_server.url)
    await server.request(HttpRequest("GET", "/"))
    with pytest.raises(TimeoutError):
        await server.request(HttpRequest("GET", "/", timeout=0.05))
    await server.request(HttpRequest("GET", "/"))
    with pytest.raises(TimeoutError):
        await server.stream(HttpRequest("GET", "/", timeout=0.05))


async def test_a_slow_body_times_out(raw_server, transport):
    await raw_server.start(respond_once_then(second_response=STREAM + chunk(b"{")))
    server = transport(raw_server.url)
    await server.request(HttpRequest("GET", "/"))
    with pytest.raises(TimeoutError):
        await server.request(HttpRequest("GET", "/", timeout=0.05))


Thing = kind("v1", "Thing", namespaced=False)
RESOURCES = b'{"resources":[{"name":"things","kind":"Thing"}]}'


@pytest.fixture
async def watch_pieces(raw_server, transport, monkeypatch):
    """Return a function that serves a watch in pieces and returns the client's frames and error.

    A piece that is None leaves the connection open and silent.
    """

    async def watch(*pieces, silence=90.0):
        async def handle(raw_server, reader, writer):
            while "watch" not in (await raw_server.request(reader))[0]:
                writer.write(OK.replace(b"Length: 2", f"Length: {len(RESOURCES)}".encode())[:-2] + RESOURCES)
            for piece in pieces:
                if piece is None:
                    await asyncio.sleep(60)
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)  # so that pieces arrive apart

        await raw_server.start(handle)
        monkeypatch.setattr("fairlead.client.client.SILENCE", silence)
        client = Client(transport(raw_server.url), World())
        frames, watch_error = [], None
        async with client.watch(Thing) as watch:
            try:
                async for frame in watch:
                    frames.append(frame)  # noqa: PERF401 - those before a break count
            except OSError as os_error:
                watch_error = os_error
        return frames, watch_error

    return watch


async def test_chunk_boundaries_may_fall_anywhere(watch_pieces):
    text = "naïve \x85 😀 \u2028"
    line = f'{{"type":"ADDED","object":{{"t":"{text}"}}}}\n'.encode()
    pieces = [chunk(bytes([byte])) for byte in line * 3]
    frames, error = await watch_pieces(STREAM, *pieces, b"0\r\n\r\n")
    assert [frame.raw.decode() for frame in frames] == [f'{{"t":"{text}"}}'] * 3
    assert error is None


async def test_a_frame_may_be_very_large(watch_pieces):
    large_object = b'{"t":"' + b"x" * 8_000_000 + b'"}'
    line = b'{"type":"ADDED","object":' + large_object + b"}\n"
    frames, error = await watch_pieces(STREAM, chunk(line), chunk(line), b"0\r\n\r\n")
    assert [len(frame.raw) for frame in frames] == [len(large_object)] * 2
    assert error is None


async def test_a_frame_without_end_is_cut(watch_pieces, monkeypatch):
    """A server sent 5 GB in 8 s, all of which was kept in memory."""
    monkeypatch.setattr("fairlead.client.watching.MAX_FRAME", 100_000)
    endless = [chunk(b"x" * 50_000)] * 40
    frames, error = await watch_pieces(STREAM, chunk(b'{"type":"ADDED","object":{}}\n{"'), *endless)
    assert len(frames) == 1
    assert isinstance(error, WatchBroken)
    assert "longer than 100,000 bytes" in str(error)


@pytest.mark.parametrize("method", ["GET", "PUT"])
@pytest.mark.parametrize("code", [200, 500])
async def test_a_body_without_end_is_cut_and_not_requested_again(method, code, raw_server, transport, monkeypatch):
    connection_cut = asyncio.Event()

    async def endless(raw_server, reader, writer):
        await raw_server.request(reader)
        writer.write(STREAM.replace(b"200", str(code).encode()))
        try:
            for _ in range(200):  # "without end" for a limit of ten
                writer.write(chunk(b"x" * 100_000))
                await writer.drain()
            writer.write(b"0\r\n\r\n")
        finally:
            connection_cut.set()

    await raw_server.start(endless)
    monkeypatch.setattr("fairlead.client.http.MAX_BODY", 1_000_000)
    with pytest.raises(UnusableAnswer, match="longer than 1,000,000 bytes"):
        await transport(raw_server.url).request(HttpRequest(method, "/", body=b"{}", timeout=60))
    await asyncio.wait_for(connection_cut.wait(), 60)
    with pytest.raises(UnusableAnswer):
        await Client(transport(raw_server.url), World()).kinds()
    assert len(raw_server.requests) == 2


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "GZIP"])
async def test_a_compressed_answer_is_rejected_before_it_is_decompressed(encoding, raw_server, transport):
    bomb = gzip.compress(b"0" * 10_000_000)

    async def compressed(raw_server, reader, writer):
        while True:
            _, headers, _ = await raw_server.request(reader)
            assert headers["accept-encoding"] == "identity"
            response_head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(bomb)}\r\n\r\n"
            writer.write(response_head.encode() + bomb)

    await raw_server.start(compressed)
    server = transport(raw_server.url)
    with pytest.raises(UnusableAnswer, match=f"Content-Encoding {encoding}"):
        await server.request(HttpRequest("GET", "/"))
    with pytest.raises(UnusableAnswer, match="switch off compression"):
        await server.stream(HttpRequest("GET", "/"))
    client = Client(server, World())
    client._discovery._served[ConfigMap.key] = ServedKind(ConfigMap, frozenset(), frozenset())
    with pytest.raises(UnknownOutcome):
        await client.delete(ConfigMap, "a", "n")


async def test_a_watch_without_the_last_chunk_raises_an_error(watch_pieces):
    frames, error = await watch_pieces(STREAM, chunk(b'{"type":"ADDED","object":{}}\n'))
    assert len(frames) == 1
    assert isinstance(error, ConnectionError)


async def test_a_watch_cut_inside_a_frame_raises_an_error(watch_pieces):
    frames, error = await watch_pieces(STREAM, chunk(b'{"type":"ADDED","object":{}}\n{"typ'), b"0\r\n\r\n")
    assert len(frames) == 1
    assert isinstance(error, ConnectionError)


async def test_a_half_open_watch_raises_watch_silent(watch_pieces):
    frames, error = await watch_pieces(STREAM, chunk(b'{"type":"ADDED","object":{}}\n'), None, silence=0.05)
    assert len(frames) == 1
    assert "half-open" in str(error)


async def test_a_token_file_is_read_again_after_a_401(raw_server, transport, tmp_path):
    token = tmp_path / "token"
    token.write_text("old\n")

    async def handle(raw_server, reader, writer):
        while True:
            _, headers, _ = await raw_server.request(reader)
            has_new_token = headers["authorization"] == "Bearer new"
            writer.write(OK if has_new_token else b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
            token.write_text("new\n")

    await raw_server.start(handle)
    server = transport(raw_server.url, TokenFileCredentials(token, World()))
    assert (await server.request(HttpRequest("GET", "/"))).status == 401
    assert (await server.request(HttpRequest("GET", "/"))).status == 200


async def test_impersonation_sends_every_group(raw_server, transport):
    await raw_server.start(always_respond_ok)
    headers = (("Impersonate-User", "jane"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))
    await transport(raw_server.url, ImpersonatingCredentials(StaticCredentials(), headers)).request(
        HttpRequest("GET", "/")
    )
    sent_headers = raw_server.requests[0][1]
    assert [header for header in sent_headers if header[0].startswith("impersonate")] == [
        (name.lower(), value) for name, value in headers
    ]


async def test_a_cancelled_request_does_not_affect_the_next_one(raw_server, transport):
    first_half_sent = asyncio.Event()

    async def handle(raw_server, reader, writer):
        while True:
            line, _, _ = await raw_server.request(reader)
            if "slow" in line:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
                first_half_sent.set()
            else:
                writer.write(OK)

    await raw_server.start(handle)
    server = transport(raw_server.url)
    for _ in range(3):
        first_half_sent.clear()
        cancelled_request = asyncio.create_task(server.request(HttpRequest("GET", "/slow")))
        await first_half_sent.wait()
        cancelled_request.cancel()
        await asyncio.wait([cancelled_request])
        assert (await server.request(HttpRequest("GET", "/"))).body == b"{}"


async def test_a_closed_watch_closes_its_connection(raw_server, transport):
    closed = asyncio.Event()

    async def handle(raw_server, reader, writer):
        await raw_server.request(reader)
        writer.write(STREAM)
        assert not await reader.read()
        closed.set()

    await raw_server.start(handle)
    stream = await transport(raw_server.url).stream(HttpRequest("GET", "/"))
    await stream.close()
    await asyncio.wait_for(closed.wait(), 60)


def count_file_descriptors():
    return len(list(Path("/dev/fd").iterdir()))


async def test_watches_and_lost_requests_leak_no_file_descriptors(raw_server, transport):
    async def handle(raw_server, reader, writer):
        line, _, _ = await raw_server.request(reader)
        if "watch" in line:
            writer.write(STREAM)
            await reader.read()

    await raw_server.start(handle)
    server = transport(raw_server.url)
    counts = []
    for _ in range(3):
        for _ in range(20):
            await (await server.stream(HttpRequest("GET", "/watch"))).close()
            with pytest.raises(ConnectionResetError):
                await server.request(HttpRequest("PUT", "/cut", body=b"{}"))
        await asyncio.wait_for(raw_server.wait_until_closed(), 60)
        counts.append(count_file_descriptors())
    assert counts[1] == counts[2]


async def test_the_proxy_does_not_see_the_servers_credentials(raw_server, transport):
    async def refuse_connect(raw_server, reader, writer):
        await raw_server.request(reader)
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    await raw_server.start(refuse_connect)
    server = transport(
        "https://cluster.example:6443", StaticCredentials.token("secret"), proxy_url=f"http://u:p@{raw_server.address}"
    )
    with pytest.raises(NotSent) as raised:
        await server.request(HttpRequest("POST", "/", body=b"{}"))
    [(line, headers, _)] = raw_server.requests
    assert line == "CONNECT cluster.example:6443 HTTP/1.1"
    assert "authorization" not in dict(headers)
    assert "proxy-authorization" in dict(headers)
    assert "u:p" not in str(raised.value)
    assert "answered 403 (Forbidden): check proxy-url" in str(raised.value)


async def test_environment_proxies_are_not_used(raw_server, transport, monkeypatch):
    await raw_server.start(always_respond_ok)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await transport(raw_server.url).request(HttpRequest("GET", "/"))).status == 200


@pytest.mark.parametrize("server", ["127.0.0.1:6443", "ftp://a", "https://", "", "https://u:secret@a"])
def test_an_invalid_server_address_is_rejected(server):
    with pytest.raises(ValueError, match="address") as raised:
        HttpTransport(Cluster(server))
    assert "secret" not in str(raised.value)


async def test_credentials_are_sent_over_http_only_to_localhost(raw_server, transport):
    await raw_server.start(always_respond_ok)
    assert (
        await transport(raw_server.url, StaticCredentials.token("secret")).request(HttpRequest("GET", "/"))
    ).status == 200
    remote_transport = transport("http://cluster.example", StaticCredentials.token("secret"), proxy_url=raw_server.url)
    with pytest.raises(CredentialsError, match="use https"):
        await remote_transport.request(HttpRequest("GET", "/"))
    assert len(raw_server.requests) == 1


async def test_credentials_do_not_pass_a_proxy_on_another_host_in_plain_http(raw_server, transport):
    """The server is on loopback, so plain http would be allowed. The proxy would receive the token."""
    await raw_server.start(always_respond_ok)
    token = StaticCredentials.token("secret")
    for proxy in ("http://proxy.example:3128", "https://proxy.example:3128"):
        with pytest.raises(CredentialsError, match=r"proxy\.example:3128 would receive .* use https for the server"):
            await transport(raw_server.url, token, proxy_url=proxy).request(HttpRequest("GET", "/"))
    assert raw_server.requests == []
    assert (
        await transport(raw_server.url, token, proxy_url=raw_server.url).request(HttpRequest("GET", "/"))
    ).status == 200


def test_repr_contains_no_secrets():
    identity = Identity("Bearer secret", b"certificate", b"key")
    assert "secret" not in repr(identity)
    assert "key'" not in repr(StaticCredentials(identity))
    assert "secret" not in repr(Cluster("https://a", proxy_url="http://u:secret@p"))


async def test_a_closed_transport_raises_not_sent(raw_server, transport):
    await raw_server.start(always_respond_ok)
    server = transport(raw_server.url)
    await server.request(HttpRequest("GET", "/"))
    await server.close()
    await server.close()
    with pytest.raises(NotSent, match="closed"):
        await server.request(HttpRequest("GET", "/"))
    with pytest.raises(NotSent, match="closed"):
        await server.stream(HttpRequest("GET", "/"))
    assert len(raw_server.requests) == 1


async def test_a_connect_timeout_raises_not_sent(transport):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full_listener:
        address = full_listener.getsockname()
        sockets = [socket.socket() for _ in range(3)]
        for sock in sockets:
            sock.setblocking(False)
            sock.connect_ex(address)
        with pytest.raises(NotSent):
            await transport(f"http://127.0.0.1:{address[1]}").request(HttpRequest("POST", "/", body=b"{}", timeout=0.2))
        for sock in sockets:
            sock.close()


async def test_slow_credentials_raise_credentials_error_before_sending(raw_server, transport):
    class SlowCredentials(StaticCredentials):
        async def identity(self):
            await asyncio.sleep(60)

    await raw_server.start(always_respond_ok)
    with pytest.raises(CredentialsError, match="took too long"):
        await transport(raw_server.url, SlowCredentials()).request(HttpRequest("POST", "/", body=b"{}", timeout=0.05))
    assert not raw_server.connections


async def test_tcp_keep_alive_is_enabled(raw_server, transport):
    async def respond_without_end(raw_server, reader, writer):
        await raw_server.request(reader)
        writer.write(STREAM)
        await asyncio.sleep(60)

    await raw_server.start(respond_without_end)
    stream = await transport(raw_server.url).stream(HttpRequest("GET", "/"))
    sock = stream._response.connection.transport.get_extra_info("socket")
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15
    await stream.close()
