"""Tests of HTTP connections over a fake transport, in virtual time."""

import asyncio
import json

from fairlead.api.requests import HttpRequest
from fairlead.server.app import Server
from fairlead.server.http import listener
from fairlead.testing import virtual

MAPS = "/api/v1/namespaces/default/configmaps"


class Transport:
    """A fake transport that records the written bytes. Like uvloop's, it is not an asyncio.Transport."""

    def __init__(self, protocol):
        self.protocol, self.sent, self.closed, self.reading = protocol, b"", False, True
        protocol.connection_made(self)

    def get_extra_info(self, name):
        return None

    def write(self, data):
        self.sent += data

    def close(self):
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    abort = close

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True

    def take_sent(self):
        sent_bytes, self.sent = self.sent, b""
        return sent_bytes


def connect(server=None):
    connections = listener.Connections(server or Server(virtual.world(1)))
    return connections, Transport(connections.create())


def request(method, path, body=b"", extra_headers=""):
    return f"{method} {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n{extra_headers}\r\n".encode() + body


def config_map(name):
    return json.dumps({"metadata": {"name": name}}).encode()


async def yield_to_loop(count=10):
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_request_is_answered_as_soon_as_its_last_byte_arrives():
    async def main():
        _, transport = connect()
        sent_request = request("POST", MAPS, config_map("a"))
        transport.protocol.data_received(sent_request[:-1])
        assert transport.take_sent() == b""
        transport.protocol.data_received(sent_request[-1:])
        assert transport.take_sent().startswith(b"HTTP/1.1 201 Created\r\n")

    virtual.run(main())


def test_pipelined_requests_are_answered_in_order():
    async def main():
        _, transport = connect()
        sent_request = [request("POST", MAPS, config_map(f"m{n}")) for n in range(5)]
        transport.protocol.data_received(
            b"".join([*sent_request, request("GET", f"{MAPS}/m4", extra_headers="Connection: close\r\n")])
        )
        await yield_to_loop()
        sent_bytes = transport.take_sent()
        assert [sent_bytes.find(b'"name":"m%d"' % n) for n in range(5)] == sorted(
            sent_bytes.find(b'"name":"m%d"' % n) for n in range(5)
        )
        assert sent_bytes.count(b"HTTP/1.1 201 Created") == 5
        assert sent_bytes.count(b"HTTP/1.1 200 OK") == 1
        assert transport.closed

    virtual.run(main())


def test_a_head_request_gets_no_body():
    async def main():
        _, transport = connect()
        transport.protocol.data_received(request("HEAD", "/api"))
        response_head, body = transport.take_sent().split(b"\r\n\r\n")
        assert body == b""
        assert b"Content-Length: 0" not in response_head

    virtual.run(main())


def test_a_client_that_expects_100_continue_gets_it():
    async def main():
        _, transport = connect()
        body = config_map("a")
        sent_request = request("POST", MAPS, body, "Expect: 100-continue\r\n")
        transport.protocol.data_received(sent_request[: -len(body)])
        assert transport.take_sent() == b"HTTP/1.1 100 Continue\r\n\r\n"
        transport.protocol.data_received(body[:3])
        assert transport.take_sent() == b""
        transport.protocol.data_received(body[3:])
        assert transport.take_sent().startswith(b"HTTP/1.1 201 Created")

    virtual.run(main())


def test_a_malformed_request_gets_400_and_the_connection_closes_later():
    async def main():
        _, transport = connect()
        transport.protocol.data_received(b"GET /a%zz HTTP/1.1\r\n\r\n")
        sent_bytes = transport.take_sent()
        assert sent_bytes.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert sent_bytes.endswith(b"Connection: close\r\n\r\n400 Bad Request")
        transport.protocol.data_received(request("GET", "/healthz"))
        assert transport.take_sent() == b""
        assert not transport.closed
        await asyncio.sleep(listener.LINGER)
        assert transport.closed

    virtual.run(main())


def test_a_slow_reader_does_not_make_buffers_grow():
    async def main():
        server = Server(virtual.world(1))
        _, transport = connect(server)
        transport.protocol.data_received(request("GET", f"{MAPS}?watch=1&resourceVersion=0"))
        await yield_to_loop()
        transport.take_sent()
        transport.protocol.pause_writing()
        client = server.transport()
        for n in range(300):
            await client.request(HttpRequest("POST", MAPS, body=config_map(f"m{n}")))
        await yield_to_loop()
        assert transport.take_sent().count(b'"ADDED"') <= 1
        for _ in range(100):
            transport.protocol.data_received(request("GET", "/healthz") * 100)
            if not transport.reading:
                break
        assert not transport.reading
        transport.protocol.resume_writing()
        await yield_to_loop()
        assert transport.take_sent().count(b'"ADDED"') >= 299

    virtual.run(main())


def test_an_idle_connection_is_closed_but_a_watch_is_not():
    async def main():
        _, idle = connect()
        _, watching = connect()
        watching.protocol.data_received(request("GET", f"{MAPS}?watch=1&resourceVersion=0"))
        await asyncio.sleep(60)
        idle.protocol.data_received(request("GET", "/healthz"))
        await asyncio.sleep(60)
        assert not idle.closed
        await asyncio.sleep(60)
        assert idle.closed
        await asyncio.sleep(600)
        assert not watching.closed

    virtual.run(main())


def test_a_watch_ends_when_its_connection_or_the_listener_closes():
    async def main():
        connections, closing = connect()
        open_one = Transport(connections.create())
        for transport in (closing, open_one):
            transport.protocol.data_received(request("GET", f"{MAPS}?watch=1&resourceVersion=0"))
        await yield_to_loop()
        closing.close()
        await yield_to_loop()
        assert len(asyncio.all_tasks()) == 2, "this task and the other watch"
        await connections.close()
        await yield_to_loop()
        assert open_one.closed
        assert len(asyncio.all_tasks()) == 1

    virtual.run(main())
