"""API servers that can be killed, restarted and restored from a backup, while clients watch them."""

import asyncio
import contextlib
import json
import os
import shutil
import sys
import urllib.request

import pytest

from fairlead.api.world import World
from fairlead.cache import Cache
from fairlead.client.access import Cluster
from fairlead.client.client import Client
from fairlead.client.credentials import StaticCredentials
from fairlead.client.http import HttpTransport
from fairlead.client.transport import NotSent
from fairlead.server.app import Server
from fairlead.testing import virtual
from fairlead.testing.real import RealServer, _find_free_port


class BreakableTransport:
    """A Transport that fails every request while it is shut. Shutting it breaks every stream."""

    def __init__(self, inner):
        self.inner, self.broken = inner, None

    def shut(self):
        if self.broken:
            self.broken.set()
        self.broken = None

    def open(self):
        self.broken = asyncio.Event()

    async def request(self, request):
        return await (await self._inside()).request(request)

    async def stream(self, request):
        inner = await self._inside()
        return Broken(await inner.stream(request), self.broken)

    async def _inside(self):
        await asyncio.sleep(0)
        if not self.broken:
            raise NotSent("refused")
        return self.inner() if callable(self.inner) else self.inner

    async def close(self):
        pass


class Broken:
    def __init__(self, inner, broken):
        self.inner, self.broken = inner, broken
        self.status, self.headers = inner.status, inner.headers

    async def read(self):
        reading, broken = (asyncio.ensure_future(task) for task in (self.inner.read(), self.broken.wait()))
        try:
            await asyncio.wait([reading, broken], return_when=asyncio.FIRST_COMPLETED)
            if broken.done():
                raise ConnectionResetError("cut")
            return reading.result()
        finally:
            for task in (reading, broken):
                task.cancel()
            await asyncio.gather(reading, broken, return_exceptions=True)

    async def close(self):
        await self.inner.close()


class EmbeddedServer:
    """The embedded server in this process, with its data in a directory. A killed server gets no more requests."""

    def __init__(self, folder):
        self.world, self.data, self.server, self.gates = virtual.world(), folder / "data", None, []

    def run(self, test):
        async def main():
            await self.recover()
            try:
                await test(self)
            finally:
                self.server.close()

        virtual.run(main())

    async def crash(self):
        for gate in self.gates:
            gate.shut()
        self.server.close()

    async def recover(self):
        self.server = Server(self.world, data=self.data, controllers=("gc",))
        for gate in self.gates:
            gate.open()

    async def forget(self):
        """Compact the history, so that the server answers a watch from an older version with 410."""
        self.server.store.compact()

    def transport(self):
        gate = BreakableTransport(lambda: self.server.transport())
        gate.open()
        self.gates.append(gate)
        return gate


class ServedProcess:
    """The command `fairlead serve --data` in a process that SIGKILL ends."""

    def __init__(self, folder):
        self.world, self.data, self.port, self.process = World(), folder / "data", _find_free_port(), None

    def run(self, test):
        async def main():
            self.opened = []
            await self.recover()
            try:
                await test(self)
            finally:
                for transport in self.opened:
                    await transport.close()
                await self.crash()
                await asyncio.sleep(0.02)  # aiohttp closes TLS connections in the background.

        asyncio.run(main())

    async def crash(self):
        self.process.kill()
        await self.process.wait()

    async def recover(self):
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "fairlead", "serve", "--no-tls", "--controllers", "gc"),
            *("--listen", f"127.0.0.1:{self.port}", "--data", self.data),
            stdout=asyncio.subprocess.DEVNULL,
            env={**os.environ, "FAIRLEAD_TOKEN": "t"},
        )
        while not await self._answers():
            assert self.process.returncode is None

    async def _answers(self):
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            writer.close()
            return True
        await asyncio.sleep(0.05)
        return False

    def transport(self):
        self.opened.append(HttpTransport(Cluster(f"http://127.0.0.1:{self.port}", None), StaticCredentials.token("t")))
        return self.opened[-1]


class KillableRealServer(ServedProcess):
    """A kube-apiserver and its etcd, which SIGKILL ends."""

    def __init__(self, _):
        self.world, self.server = World(), RealServer()
        self.server.start()

    @property
    def data(self):
        return self.server.data

    async def crash(self):
        await asyncio.to_thread(self.server.crash)

    async def recover(self):
        if not self.server.pids:
            await asyncio.to_thread(self.server.recover)

    async def forget(self):
        revision = self._etcd("maintenance/status", {})["header"]["revision"]
        self._etcd("kv/compaction", {"revision": revision, "physical": True})
        await self.crash()  # The watch cache of the server must be lost too.
        await self.recover()

    def _etcd(self, path, body):
        url = f"http://127.0.0.1:{self.server._ports[0]}/v3/{path}"
        with urllib.request.urlopen(url, data=json.dumps(body).encode(), timeout=30) as response:
            return json.load(response)

    def transport(self):
        cluster = Cluster(self.server.url, self.server.ca_data)
        self.opened.append(HttpTransport(cluster, StaticCredentials.token(self.server.token)))
        return self.opened[-1]


@pytest.fixture(
    params=[
        pytest.param(EmbeddedServer, id="virtual"),
        pytest.param(ServedProcess, id="embedded"),
        pytest.param(KillableRealServer, id="real", marks=pytest.mark.real),
    ]
)
def server_under_test(request, tmp_path):
    """Return a server that a test can kill with `crash` and restart with `recover`.

    `back_up` and `restore` copy its data while it is down. `run(test)` runs an async test with this server.
    """
    server = request.param(tmp_path)
    backup = tmp_path / "backup"
    server.back_up = lambda: shutil.copytree(server.data, backup)

    def restore():
        shutil.rmtree(server.data)
        shutil.copytree(backup, server.data)

    server.restore = restore
    yield server
    if isinstance(server, KillableRealServer):
        server.server.stop()


class WatchedCache:
    """A cache of one kind behind a breakable transport, and every change that its handler received."""

    def __init__(self, server_under_test, kind, **scope):
        self.gate = BreakableTransport(server_under_test.transport())
        self.gate.open()
        self.cache = Cache(Client(self.gate, server_under_test.world), server_under_test.world)
        self.view = self.cache.watch(kind, **scope)
        self.changes = []
        self.view.subscribe(lambda change: self.changes.append((change.name, version(change.old), version(change.new))))

    async def __aenter__(self):
        await self.cache.__aenter__()
        await self.cache.wait_for_sync()
        return self

    async def __aexit__(self, *error):
        await self.cache.__aexit__(*error)

    def deleted(self):
        """Return the name of each reported deletion."""
        return sorted(name for name, _, new in self.changes if new is None)

    async def assert_converged(self, marker):
        """Wait for `marker`, then check that the cache and the reported changes equal the server's objects."""
        async with asyncio.timeout(120):
            await self.view.wait_until(marker.resource_version)
        assert await self.cache.find_differences() == []
        state = {}
        for name, old, new in self.changes:
            assert state.get(name) == old, f"{name}: the change {old} -> {new} was reported for {state.get(name)}"
            state[name] = new
        assert {name for name, version in state.items() if version} == {obj.name for obj in self.view.list()}
        assert self.view.health()[0].error is None


def version(snapshot):
    return None if snapshot is None else (snapshot.uid, snapshot.version)


@pytest.fixture
def watched():
    return WatchedCache
