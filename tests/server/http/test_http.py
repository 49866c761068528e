"""The HTTP door's connections, over a made-up transport and in virtual time."""

import asyncio
import json

from fairlead.api.requests import HttpRequest
from fairlead.server.app import Server
from fairlead.server.http import listener
from fairlead.testing import virtual

MAPS = "/api/v1/namespaces/default/configmaps"


class Transport:
    """Keeps what is written. By shape alone: those of other loops (uvloop) are no asyncio.Transport either."""

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

    def taken(self):
        sent, self.sent = self.sent, b""
        return sent


def connected(server=None):
    door = listener.Connections(server or Server(virtual.world(1)))
    return door, Transport(door.connection())


def request(method, path, body=b"", head=""):
    return f"{method} {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode() + body


def config_map(name):
    return json.dumps({"metadata": {"name": name}}).encode()


async def turns(count=10):
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_request_is_answered_where_its_last_byte_arrives():
    async def main():
        _, transport = connected()
        asked = request("POST", MAPS, config_map("a"))
        transport.protocol.data_received(asked[:-1])
        assert transport.taken() == b""
        transport.protocol.data_received(asked[-1:])
        assert transport.taken().startswith(b"HTTP/1.1 201 Created\r\n")

    virtual.run(main())


def test_requests_sent_ahead_are_answered_in_their_order():
    async def main():
        _, transport = connected()
        asked = [request("POST", MAPS, config_map(f"m{n}")) for n in range(5)]
        transport.protocol.data_received(b"".join([*asked, request("GET", f"{MAPS}/m4", head="Connection: close\r\n")]))
        await turns()
        sent = transport.taken()
        assert [sent.find(b'"name":"m%d"' % n) for n in range(5)] == sorted(
            sent.find(b'"name":"m%d"' % n) for n in range(5)
        )
        assert sent.count(b"HTTP/1.1 201 Created") == 5
        assert sent.count(b"HTTP/1.1 200 OK") == 1
        assert transport.closed

    virtual.run(main())


def test_a_head_is_answered_without_a_body():
    async def main():
        _, transport = connected()
        transport.protocol.data_received(request("HEAD", "/api"))
        head, body = transport.taken().split(b"\r\n\r\n")
        assert body == b""
        assert b"Content-Length: 0" not in head

    virtual.run(main())


def test_a_client_that_asks_first_is_told_to_go_on():
    async def main():
        _, transport = connected()
        body = config_map("a")
        asked = request("POST", MAPS, body, "Expect: 100-continue\r\n")
        transport.protocol.data_received(asked[: -len(body)])
        assert transport.taken() == b"HTTP/1.1 100 Continue\r\n\r\n"
        transport.protocol.data_received(body[:3])
        assert transport.taken() == b""
        transport.protocol.data_received(body[3:])
        assert transport.taken().startswith(b"HTTP/1.1 201 Created")

    virtual.run(main())


def test_what_is_no_request_is_refused_and_the_connection_ends_once_the_client_could_read_why():
    async def main():
        _, transport = connected()
        transport.protocol.data_received(b"GET /a%zz HTTP/1.1\r\n\r\n")
        sent = transport.taken()
        assert sent.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert sent.endswith(b"Connection: close\r\n\r\n400 Bad Request")
        transport.protocol.data_received(request("GET", "/healthz"))
        assert transport.taken() == b""
        assert not transport.closed
        await asyncio.sleep(listener.LINGER)
        assert transport.closed

    virtual.run(main())


def test_a_reader_that_stops_is_neither_written_to_nor_read_from_without_bounds():
    async def main():
        server = Server(virtual.world(1))
        _, transport = connected(server)
        transport.protocol.data_received(request("GET", f"{MAPS}?watch=1&resourceVersion=0"))
        await turns()
        transport.taken()
        transport.protocol.pause_writing()
        inside = server.transport()
        for n in range(300):
            await inside.request(HttpRequest("POST", MAPS, body=config_map(f"m{n}")))
        await turns()
        assert transport.taken().count(b'"ADDED"') <= 1
        for _ in range(100):
            transport.protocol.data_received(request("GET", "/healthz") * 100)
            if not transport.reading:
                break
        assert not transport.reading
        transport.protocol.resume_writing()
        await turns()
        assert transport.taken().count(b'"ADDED"') >= 299

    virtual.run(main())


def test_an_idle_connection_ends_and_a_watch_is_not_idle():
    async def main():
        _, quiet = connected()
        _, watching = connected()
        watching.protocol.data_received(request("GET", f"{MAPS}?watch=1&resourceVersion=0"))
        await asyncio.sleep(60)
        quiet.protocol.data_received(request("GET", "/healthz"))
        await asyncio.sleep(60)
        assert not quiet.closed
        await asyncio.sleep(60)
        assert quiet.closed
        await asyncio.sleep(600)
        assert not watching.closed

    virtual.run(main())


def test_a_watch_ends_with_its_connection_and_with_the_door():
    async def main():
        door, gone = connected()
        staying = Transport(door.connection())
        for transport in (gone, staying):
            transport.protocol.data_received(request("GET", f"{MAPS}?watch=1&resourceVersion=0"))
        await turns()
        gone.close()
        await turns()
        assert len(asyncio.all_tasks()) == 2, "this one and the other watch"
        await door.close()
        await turns()
        assert staying.closed
        assert len(asyncio.all_tasks()) == 1

    virtual.run(main())
