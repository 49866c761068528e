"""Tests of HTTP over a fake connection that splits bytes into any chunks, ends after any byte, or stays silent.

Client and server use their real HTTP code, in virtual time. Only the connection is fake.
"""

import asyncio
import random

import aiohttp
import pytest

import fairlead as fl
from fairlead.cache import Cache
from fairlead.client import http
from fairlead.client.access import Cluster
from fairlead.client.client import Client, PatchType
from fairlead.server.app import Server
from fairlead.server.http.listener import Connections
from fairlead.testing import virtual

BIG = "ü" * 1000  # more than one chunk, and characters that a chunk may split


class ConnectionEnd(asyncio.Transport):
    """One end of a connection. Written bytes arrive at the other end in chunks, one loop iteration apart."""

    def __init__(self, faults, protocol):
        super().__init__()
        self.wire, self.protocol, self.peer, self.closing = faults, protocol, None, False
        self.waiting, self.delivering = bytearray(), False

    def write(self, data):
        if not self.closing:
            self.waiting += data
            self._deliver_soon()

    def _deliver_soon(self):
        if self.waiting and not self.delivering:
            self.delivering = True
            asyncio.get_running_loop().call_soon(self._deliver)

    def _deliver(self):
        self.delivering = False
        size = self.wire.piece()
        piece, self.waiting = bytes(self.waiting[:size]), self.waiting[size:]
        allowed = self.wire.allows(self, len(piece))
        if allowed < len(piece):
            if allowed:
                self.peer.received(piece[:allowed])
            self.wire.ends(self)
            return
        self.peer.received(piece)
        self._deliver_soon()
        if not self.waiting and self.closing:
            self.peer.lost(None)
            self.lost(None)

    def received(self, data):
        if self.protocol is not None:
            self.protocol.data_received(data)

    def close(self):
        self.closing = True
        if not self.waiting:
            asyncio.get_running_loop().call_soon(self.peer.lost, None)
            asyncio.get_running_loop().call_soon(self.lost, None)

    def abort(self):
        self.waiting.clear()
        self.close()

    def lost(self, error):
        self.closing = True
        protocol, self.protocol = self.protocol, None
        if protocol is not None:
            protocol.connection_lost(error)

    def is_closing(self):
        return self.closing

    def get_write_buffer_size(self):
        return len(self.waiting)

    def set_write_buffer_limits(self, high=None, low=None): ...
    def pause_reading(self): ...
    def resume_reading(self): ...


class ConnectionFaults:
    """The faults of the connections: after `budget` bytes from the server, `failure` happens once."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.budget, self.failure = None, "reset"
        self.failures = self.connections = 0

    def piece(self):
        return self.random.choice([1, 7, 100, 4096, 65536])

    def allows(self, end, size):
        if self.budget is None or not end.from_server:
            return size
        allowed, self.budget = min(size, self.budget), self.budget - size
        return allowed

    def ends(self, end):
        self.budget, self.failures = None, self.failures + 1
        match self.failure:
            case "reset":
                end.peer.lost(ConnectionResetError("reset"))
                end.lost(ConnectionResetError("reset"))
            case "close":  # a regular end, as from a proxy that lost its upstream
                end.peer.lost(None)
                end.lost(None)
            case "silence":  # half-open: later bytes are lost
                end.peer.peer, end.peer = ConnectionEnd(self, None), ConnectionEnd(self, None)

    def connect(self, client_protocol, server_protocol):
        self.connections += 1
        client, server = ConnectionEnd(self, client_protocol), ConnectionEnd(self, server_protocol)
        client.peer, server.peer = server, client
        client.from_server, server.from_server = False, True
        server_protocol.connection_made(server)
        client_protocol.connection_made(client)


class Connector(aiohttp.BaseConnector):
    """A connection pool of aiohttp that opens fake connections."""

    def __init__(self, faults, serve):
        super().__init__(limit=0, keepalive_timeout=http.IDLE_TIMEOUT)
        self.wire, self.serve = faults, serve

    async def _create_connection(self, req, traces, timeout):
        protocol = self._factory()
        self.wire.connect(protocol, self.serve())
        return protocol


class StreamEnvironment:
    def __init__(self, seed, monkeypatch):
        self.world, self.wire = virtual.world(seed), ConnectionFaults(seed)
        self.server = Server(self.world)
        self.others = Client(self.server.transport(), self.world)
        self.listener = Connections(self.server)
        monkeypatch.setattr(http.aiohttp, "TCPConnector", lambda **_: Connector(self.wire, self.listener.create))
        self.transport = http.HttpTransport(Cluster("http://127.0.0.1:1", None))
        self.cache = Cache(Client(self.transport, self.world), self.world)
        self.view = self.cache.watch(fl.ConfigMap)
        self.changes = []
        self.view.subscribe(self.changes.append)

    async def edit(self, name, number):
        patch = {"data": {"n": str(number), "big": BIG}}
        return await self.others.patch(fl.ConfigMap, name, "default", patch, type=PatchType.MERGE)

    async def play(self):
        """Send changes of every kind, then check that the cache equals the server."""
        async with self.cache:
            for number in range(12):
                await self.edit("a", number)
                if number == 4:
                    await self.others.delete(fl.ConfigMap, "b", "default")
                if number == 8:
                    await self.others.create(fl.ConfigMap("b", "default", data={"n": "new"}))
                await asyncio.sleep(0.5)
            await asyncio.sleep(400)  # longer than the detection of a half-open connection, its back-off and a bookmark
            last = await self.edit("a", "last")
            async with asyncio.timeout(200):
                await self.view.wait_until(last.resource_version)
            assert await self.cache.find_differences() == []
            assert self.view.health()[0].error is None
            created = [change.new.uid for change in self.changes if change.old is None]
            deleted = [change.old.uid for change in self.changes if change.new is None]
            assert len(deleted) == len(set(deleted)), "a deletion is reported once"
            remaining = [obj.uid for obj in self.view.list()]
            assert sorted(created) == sorted([*deleted, *remaining]), "no deletion is missing"
        await self.transport.close()
        await self.listener.close()


def play(seed, monkeypatch, budget, fate):
    async def main():
        environment = StreamEnvironment(seed, monkeypatch)
        for name in ("a", "b", "c"):
            await environment.others.create(fl.ConfigMap(name, "default", data={"n": "0", "big": BIG}))
        environment.wire.budget, environment.wire.failure = budget, fate
        await environment.play()
        return environment

    return virtual.run(main())


def test_cache_is_the_same_for_any_chunking_of_the_stream(monkeypatch):
    environment = play(0, monkeypatch, None, "reset")
    assert environment.wire.failures == 0
    assert len(environment.changes) >= 17


@pytest.mark.parametrize("fate", ["reset", "close", "silence"])
@pytest.mark.parametrize("seed", range(8))
def test_cache_survives_a_connection_that_ends_after_any_byte(monkeypatch, fate, seed):
    """Tests a connection that ends in discovery, in the initial events, in a frame or in a bookmark."""
    budget = int(2 ** random.Random(seed).uniform(0, 15))
    environment = play(seed, monkeypatch, budget, fate)
    assert environment.wire.failures == 1
    assert environment.wire.connections >= 2
