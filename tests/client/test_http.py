"""Tests of the HTTP transport against a byte-level server: broken connections and credentials."""

import asyncio
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
from fairlead.client.http import HttpTransport
from fairlead.client.transport import NotSent

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data):
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def always_ok(wire, reader, writer):
    while True:
        await wire.request(reader)
        writer.write(OK)


@pytest.fixture
async def transport():
    """transport(url, credentials) -> HttpTransport, closed at the end."""
    made = []

    def make(url, credentials=None, **options):
        made.append(HttpTransport(Cluster(url, **options), credentials))
        return made[-1]

    yield make
    for each in made:
        await each.close()


async def test_connections_are_reused(wire, transport):
    await wire.start(always_ok)
    server = transport(wire.url)
    for _ in range(5):
        assert (await server.request(HttpRequest("GET", "/a"))).body == b"{}"
    assert wire.connections == 1
    assert len(wire.requests) == 5


async def test_path_prefix_query_and_headers_arrive_unchanged(wire, transport):
    await wire.start(always_ok)
    server = transport(wire.url + "/k8s/clusters/c-1/")
    query = {"labelSelector": "a in (b,c),d!=e&f", "x": "é +"}
    await server.request(
        HttpRequest("PUT", "/api/v1/nodes/system%3Anode%2Fa", query=query, headers={"User-Agent": "me"}, body=b"{}")
    )
    [(line, headers, body)] = wire.requests
    path = "/k8s/clusters/c-1/api/v1/nodes/system%3Anode%2Fa"
    assert line == f"PUT {path}?labelSelector=a+in+%28b%2Cc%29%2Cd%21%3De%26f&x=%C3%A9+%2B HTTP/1.1"
    assert dict(headers)["user-agent"] == "me"
    assert "authorization" not in dict(headers)
    assert body == b"{}"


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(code, wire, transport):
    async def redirect(wire, reader, writer):
        while True:
            await wire.request(reader)
            writer.write(f"HTTP/1.1 {code} x\r\nLocation: {wire.url}/else\r\nContent-Length: 0\r\n\r\n".encode())

    await wire.start(redirect)
    client = Client(transport(wire.url, StaticCredentials.token("secret")), World())
    with pytest.raises(ApiError, match="redirect") as raised:
        await client.resolve(ConfigMap)
    assert "secret" not in str(raised.value)
    assert len(wire.requests) == 1


async def test_cookies_are_not_stored(wire, transport):
    async def cookie(wire, reader, writer):
        while True:
            await wire.request(reader)
            writer.write(OK.replace(b"Content-Length", b"Set-Cookie: a=b\r\nContent-Length"))

    await wire.start(cookie)
    server = transport(wire.url.replace("127.0.0.1", "localhost"))  # cookies are only stored for host names
    await server.request(HttpRequest("GET", "/"))
    await server.request(HttpRequest("GET", "/"))
    assert "cookie" not in dict(wire.requests[1][1])


async def test_a_refused_connection_raises_not_sent(transport):
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
    with pytest.raises(NotSent, match="cannot connect"):
        await transport(f"http://127.0.0.1:{port}").request(HttpRequest("POST", "/", body=b"{}"))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("reused", [False, True])
async def test_a_write_is_sent_once_when_the_connection_breaks(method, reused, wire, transport):
    async def cut(wire, reader, writer):
        if reused and wire.connections == 1:
            await wire.request(reader)
            writer.write(OK)
        await wire.request(reader)

    await wire.start(cut)
    server = transport(wire.url)
    if reused:
        await server.request(HttpRequest("GET", "/"))
    with pytest.raises(ConnectionResetError):
        await server.request(HttpRequest(method, "/", body=b"{}"))
    assert [line.split()[0] for line, _, _ in wire.requests[reused:]] == [method]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 20",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{",
        STREAM + b"5\r\n{",
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
    ],
)
async def test_a_truncated_or_invalid_answer_raises_unknown_outcome(answer, wire, transport):
    async def handle(wire, reader, writer):
        body = b'{"resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true}]}'
        while (await wire.request(reader))[0].startswith("GET"):
            writer.write(OK.replace(b"Length: 2", f"Length: {len(body)}".encode())[:-2] + body)
        writer.write(answer)
        await writer.drain()

    await wire.start(handle)
    client = Client(transport(wire.url), World())
    with pytest.raises(UnknownOutcome):
        await client.patch(ConfigMap, "a", "n", [], type=PatchType.JSON)
    assert len([line for line, _, _ in wire.requests if line.startswith("PATCH")]) == 1


def prompt_once(then):
    """Answer the first request of a connection, so that the timeout of the second does not include connecting."""

    async def handle(wire, reader, writer):
        await wire.request(reader)
        writer.write(OK)
        await wire.request(reader)
        writer.write(then)
        await asyncio.sleep(60)

    return handle


async def test_slow_headers_time_out(wire, transport):
    await wire.start(prompt_once(then=b"HTTP/1.1 200 OK\r\n"))
    server = transport(wire.url)
    await server.request(HttpRequest("GET", "/"))
    with pytest.raises(TimeoutError):
        await server.request(HttpRequest("GET", "/", timeout=0.05))
    await server.request(HttpRequest("GET", "/"))
    with pytest.raises(TimeoutError):
        await server.stream(HttpRequest("GET", "/", timeout=0.05))


async def test_a_slow_body_times_out(wire, transport):
    await wire.start(prompt_once(then=STREAM + chunk(b"{")))
    server = transport(wire.url)
    await server.request(HttpRequest("GET", "/"))
    with pytest.raises(TimeoutError):
        await server.request(HttpRequest("GET", "/", timeout=0.05))


Thing = kind("v1", "Thing", namespaced=False)
RESOURCES = b'{"resources":[{"name":"things","kind":"Thing"}]}'


@pytest.fixture
async def watching(wire, transport, monkeypatch):
    """watching(*pieces, silence=...) -> frames of a watch whose stream is written piece by piece, then how it ended.

    A piece that is None leaves the connection open and silent.
    """

    async def watch(*pieces, silence=90.0):
        async def handle(wire, reader, writer):
            while "watch" not in (await wire.request(reader))[0]:
                writer.write(OK.replace(b"Length: 2", f"Length: {len(RESOURCES)}".encode())[:-2] + RESOURCES)
            for piece in pieces:
                if piece is None:
                    await asyncio.sleep(60)
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)  # so that pieces arrive apart

        await wire.start(handle)
        monkeypatch.setattr("fairlead.client.client.SILENCE", silence)
        client = Client(transport(wire.url), World())
        frames, ended = [], None
        async with client.watch(Thing) as opened:
            try:
                async for frame in opened:
                    frames.append(frame)  # noqa: PERF401 - those before a break count
            except OSError as error:
                ended = error
        return frames, ended

    return watch


async def test_chunk_boundaries_may_fall_anywhere(watching):
    text = "naïve \x85 😀 \u2028"
    line = f'{{"type":"ADDED","object":{{"t":"{text}"}}}}\n'.encode()
    pieces = [chunk(bytes([byte])) for byte in line * 3]
    frames, ended = await watching(STREAM, *pieces, b"0\r\n\r\n")
    assert [frame.raw.decode() for frame in frames] == [f'{{"t":"{text}"}}'] * 3
    assert ended is None


async def test_a_frame_may_be_very_large(watching):
    large = b'{"t":"' + b"x" * 8_000_000 + b'"}'
    line = b'{"type":"ADDED","object":' + large + b"}\n"
    frames, ended = await watching(STREAM, chunk(line), chunk(line), b"0\r\n\r\n")
    assert [len(frame.raw) for frame in frames] == [len(large)] * 2
    assert ended is None


async def test_a_watch_without_the_last_chunk_raises_an_error(watching):
    frames, ended = await watching(STREAM, chunk(b'{"type":"ADDED","object":{}}\n'))
    assert len(frames) == 1
    assert isinstance(ended, ConnectionError)


async def test_a_watch_cut_inside_a_frame_raises_an_error(watching):
    frames, ended = await watching(STREAM, chunk(b'{"type":"ADDED","object":{}}\n{"typ'), b"0\r\n\r\n")
    assert len(frames) == 1
    assert isinstance(ended, ConnectionError)


async def test_a_half_open_watch_raises_watch_silent(watching):
    frames, ended = await watching(STREAM, chunk(b'{"type":"ADDED","object":{}}\n'), None, silence=0.05)
    assert len(frames) == 1
    assert "half-open" in str(ended)


async def test_a_token_file_is_read_again_after_a_401(wire, transport, tmp_path):
    token = tmp_path / "token"
    token.write_text("old\n")

    async def handle(wire, reader, writer):
        while True:
            _, headers, _ = await wire.request(reader)
            good = headers["authorization"] == "Bearer new"
            writer.write(OK if good else b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
            token.write_text("new\n")

    await wire.start(handle)
    server = transport(wire.url, TokenFileCredentials(token, World()))
    assert (await server.request(HttpRequest("GET", "/"))).status == 401
    assert (await server.request(HttpRequest("GET", "/"))).status == 200


async def test_impersonation_sends_every_group(wire, transport):
    await wire.start(always_ok)
    headers = (("Impersonate-User", "jane"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))
    await transport(wire.url, ImpersonatingCredentials(StaticCredentials(), headers)).request(HttpRequest("GET", "/"))
    sent = wire.requests[0][1]
    assert [pair for pair in sent if pair[0].startswith("impersonate")] == [(k.lower(), v) for k, v in headers]


async def test_a_cancelled_request_does_not_affect_the_next_one(wire, transport):
    half = asyncio.Event()

    async def handle(wire, reader, writer):
        while True:
            line, _, _ = await wire.request(reader)
            if "slow" in line:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
                half.set()
            else:
                writer.write(OK)

    await wire.start(handle)
    server = transport(wire.url)
    for _ in range(3):
        half.clear()
        given_up = asyncio.create_task(server.request(HttpRequest("GET", "/slow")))
        await half.wait()
        given_up.cancel()
        await asyncio.wait([given_up])
        assert (await server.request(HttpRequest("GET", "/"))).body == b"{}"


async def test_a_closed_watch_closes_its_connection(wire, transport):
    gone = asyncio.Event()

    async def handle(wire, reader, writer):
        await wire.request(reader)
        writer.write(STREAM)
        assert not await reader.read()
        gone.set()

    await wire.start(handle)
    stream = await transport(wire.url).stream(HttpRequest("GET", "/"))
    await stream.close()
    await asyncio.wait_for(gone.wait(), 60)


def descriptors():
    return len(list(Path("/dev/fd").iterdir()))


async def test_watches_and_lost_requests_leak_no_file_descriptors(wire, transport):
    async def handle(wire, reader, writer):
        line, _, _ = await wire.request(reader)
        if "watch" in line:
            writer.write(STREAM)
            await reader.read()

    await wire.start(handle)
    server = transport(wire.url)
    counts = []
    for _ in range(3):
        for _ in range(20):
            await (await server.stream(HttpRequest("GET", "/watch"))).close()
            with pytest.raises(ConnectionResetError):
                await server.request(HttpRequest("PUT", "/cut", body=b"{}"))
        await asyncio.wait_for(wire.quiet(), 60)
        counts.append(descriptors())
    assert counts[1] == counts[2]


async def test_the_proxy_does_not_see_the_servers_credentials(wire, transport):
    async def proxy(wire, reader, writer):
        await wire.request(reader)
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    await wire.start(proxy)
    server = transport(
        "https://cluster.example:6443", StaticCredentials.token("secret"), proxy_url=f"http://u:p@{wire.address}"
    )
    with pytest.raises(NotSent) as raised:
        await server.request(HttpRequest("POST", "/", body=b"{}"))
    [(line, headers, _)] = wire.requests
    assert line == "CONNECT cluster.example:6443 HTTP/1.1"
    assert "authorization" not in dict(headers)
    assert "proxy-authorization" in dict(headers)
    assert "u:p" not in str(raised.value)
    assert "answered 403 (Forbidden): check proxy-url" in str(raised.value)


async def test_environment_proxies_are_not_used(wire, transport, monkeypatch):
    await wire.start(always_ok)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await transport(wire.url).request(HttpRequest("GET", "/"))).status == 200


@pytest.mark.parametrize("server", ["127.0.0.1:6443", "ftp://a", "https://", "", "https://u:secret@a"])
def test_an_invalid_server_address_is_rejected(server):
    with pytest.raises(ValueError, match="address") as raised:
        HttpTransport(Cluster(server))
    assert "secret" not in str(raised.value)


async def test_credentials_are_sent_over_http_only_to_localhost(wire, transport):
    await wire.start(always_ok)
    assert (await transport(wire.url, StaticCredentials.token("secret")).request(HttpRequest("GET", "/"))).status == 200
    elsewhere = transport("http://cluster.example", StaticCredentials.token("secret"), proxy_url=wire.url)
    with pytest.raises(CredentialsError, match="use https"):
        await elsewhere.request(HttpRequest("GET", "/"))
    assert len(wire.requests) == 1


def test_repr_contains_no_secrets():
    identity = Identity("Bearer secret", b"certificate", b"key")
    assert "secret" not in repr(identity)
    assert "key'" not in repr(StaticCredentials(identity))
    assert "secret" not in repr(Cluster("https://a", proxy_url="http://u:secret@p"))


async def test_a_closed_transport_raises_not_sent(wire, transport):
    await wire.start(always_ok)
    server = transport(wire.url)
    await server.request(HttpRequest("GET", "/"))
    await server.close()
    await server.close()
    with pytest.raises(NotSent, match="closed"):
        await server.request(HttpRequest("GET", "/"))
    with pytest.raises(NotSent, match="closed"):
        await server.stream(HttpRequest("GET", "/"))
    assert len(wire.requests) == 1


async def test_a_connect_timeout_raises_not_sent(transport):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        sockets = [socket.socket() for _ in range(3)]
        for sock in sockets:
            sock.setblocking(False)
            sock.connect_ex(address)
        with pytest.raises(NotSent):
            await transport(f"http://127.0.0.1:{address[1]}").request(HttpRequest("POST", "/", body=b"{}", timeout=0.2))
        for sock in sockets:
            sock.close()


async def test_slow_credentials_raise_credentials_error_before_sending(wire, transport):
    class Slow(StaticCredentials):
        async def identity(self):
            await asyncio.sleep(60)

    await wire.start(always_ok)
    with pytest.raises(CredentialsError, match="took too long"):
        await transport(wire.url, Slow()).request(HttpRequest("POST", "/", body=b"{}", timeout=0.05))
    assert not wire.connections


async def test_tcp_keep_alive_is_enabled(wire, transport):
    async def open_end(wire, reader, writer):
        await wire.request(reader)
        writer.write(STREAM)
        await asyncio.sleep(60)

    await wire.start(open_end)
    stream = await transport(wire.url).stream(HttpRequest("GET", "/"))
    sock = stream._response.connection.transport.get_extra_info("socket")
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15
    await stream.close()
