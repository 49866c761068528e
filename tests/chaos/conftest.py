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
from fairlead.testing.real import RealServer, _free_port


class Gate:
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
        reading, broken = (asyncio.ensure_future(each) for each in (self.inner.read(), self.broken.wait()))
        try:
            await asyncio.wait([reading, broken], return_when=asyncio.FIRST_COMPLETED)
            if broken.done():
                raise ConnectionResetError("cut")
            return reading.result()
        finally:
            for each in (reading, broken):
                each.cancel()
            await asyncio.gather(reading, broken, return_exceptions=True)

    async def close(self):
        await self.inner.close()


class InVirtualTime:
    """The embedded server with its data in a directory, in this process. A killed one gets no more requests."""

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
        """Compact the history: the server answers a watch from an older version with 410."""
        self.server.store.compact()

    def transport(self):
        gate = Gate(lambda: self.server.transport())
        gate.open()
        self.gates.append(gate)
        return gate


class Process:
    """`fairlead serve --data` in a process of its own, killed with SIGKILL."""

    def __init__(self, folder):
        self.world, self.data, self.port, self.process = World(), folder / "data", _free_port(), None

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


class Real(Process):
    """A kube-apiserver and its etcd, both killed with SIGKILL."""

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
        with urllib.request.urlopen(url, data=json.dumps(body).encode(), timeout=30) as answer:
            return json.load(answer)

    def transport(self):
        cluster = Cluster(self.server.url, self.server.ca_data)
        self.opened.append(HttpTransport(cluster, StaticCredentials.token(self.server.token)))
        return self.opened[-1]


@pytest.fixture(
    params=[
        pytest.param(InVirtualTime, id="virtual"),
        pytest.param(Process, id="embedded"),
        pytest.param(Real, id="real", marks=pytest.mark.real),
    ]
)
def machine(request, tmp_path):
    """A server to kill: `crash`, `recover`; `back_up` and `restore` while it is down; `run(test)` runs a coroutine
    function that takes it."""
    made = request.param(tmp_path)
    backup = tmp_path / "backup"
    made.back_up = lambda: shutil.copytree(made.data, backup)

    def restore():
        shutil.rmtree(made.data)
        shutil.copytree(backup, made.data)

    made.restore = restore
    yield made
    if isinstance(made, Real):
        made.server.stop()


class Watched:
    """A cache of one kind behind a gate, and every change that its handler received."""

    def __init__(self, machine, kind, **scope):
        self.gate = Gate(machine.transport())
        self.gate.open()
        self.cache = Cache(Client(self.gate, machine.world), machine.world)
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
        """Return the names of the reported deletions, once for each."""
        return sorted(name for name, _, new in self.changes if new is None)

    async def assert_true(self, marker):
        """Wait for `marker`, then check that the cache equals the server, and that the changes add up to it."""
        async with asyncio.timeout(120):
            await self.view.wait_until(marker.resource_version)
        assert await self.cache.find_differences() == []
        state = {}
        for name, old, new in self.changes:
            assert state.get(name) == old, f"{name}: the change {old} -> {new} was reported for {state.get(name)}"
            state[name] = new
        assert {name for name, known in state.items() if known} == {obj.name for obj in self.view.list()}
        assert self.view.health()[0].error is None


def version(snapshot):
    return None if snapshot is None else (snapshot.uid, snapshot.version)


@pytest.fixture
def watched():
    return Watched
