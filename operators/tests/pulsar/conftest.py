"""A Pulsar for the tests: the stand-in over loopback HTTP, and a real one where FAIRLEAD_PULSAR says where it is."""

import asyncio
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from waiting import PATIENCE, until
from watch_gate import WatchGate

from fairlead.api.errors import NotFound
from fairlead.api.world import World
from fairlead.client.client import Client, PatchType
from fairlead_operators import crds
from fairlead_operators.pulsar.admin import Admin, HttpClients, PulsarError
from fairlead_operators.pulsar.controller import op
from fairlead_operators.pulsar.fake_pulsar import CLUSTER, FakePulsar
from fairlead_operators.pulsar.kinds import Connection
from fairlead_operators.pulsar.resources import RESOURCES

REAL = os.environ.get("FAIRLEAD_PULSAR")
JAR = os.environ.get("FAIRLEAD_PULSAR_JAR")


@dataclass
class Pulsar:
    """One to manage, and a way to look into it."""

    url: str
    admin: Admin
    fake: FakePulsar
    files: str
    """Where the fake serves code.jar."""
    real: bool

    @property
    def runs_functions(self):
        """A real one wants real code."""
        return JAR is not None or not self.real

    async def until(self, path, holds):
        """What is at the path, once `holds` says so of it. A Pulsar tells of nothing: it is asked again."""
        async with asyncio.timeout(PATIENCE):
            while not holds(found := await self.admin.get(path)):
                await asyncio.sleep(0.02)
        return found

    async def take_out(self, resource, applied):
        """By hand. A function lets go of its topics a moment after it is gone, and until then they are held."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return await resource.remove(self.admin, applied["path"], applied["settings"])
                except PulsarError as error:
                    if "connected producers/consumers" not in str(error):
                        raise
                    await asyncio.sleep(0.1)


@pytest.fixture(params=["fake", *(["pulsar"] if REAL else [])])
async def pulsar(request):
    fake, clients = FakePulsar(), HttpClients()
    if REAL and urlsplit(REAL).hostname not in ("127.0.0.1", "localhost"):
        pytest.fail(f"FAIRLEAD_PULSAR is {REAL}: tests make and delete tenants, so only on this machine")
    async with fake.listening() as url:
        fake.files["/code.jar"] = await asyncio.to_thread(_jar)
        address = REAL if request.param == "pulsar" else url
        yield Pulsar(address, Admin(clients(address)), fake, url, request.param == "pulsar")
        await clients.close()


def _jar():
    from pathlib import Path

    return Path(JAR).read_bytes() if JAR else b"not a jar"


class Environment:
    """The operator at work in one namespace, a client, and ways to wait."""

    def __init__(self, api, pulsar, stack):
        self.api, self.pulsar, self.stack = api, pulsar, stack
        self.namespace = api.namespace
        self.client = Client(api.transport(), World(), user_agent="test")
        self.tenant = f"t{World().uid()[:8]}"  # a real Pulsar lives longer than a test

    def gate(self):
        return WatchGate(self.api.transport())

    async def operator(self, transport=None, **options):
        transport = transport or self.api.transport()
        running = op.running(transport, World(), namespaces=[self.namespace], **options)
        return await self.stack.enter_async_context(running)

    @staticmethod
    def passes(running, controller="pulsartenant"):
        """How many passes of a controller have ended."""
        name, labels = "controller_runtime_reconcile_time_seconds_count", {"controller": controller}
        return running.metrics.registry.get_sample_value(name, labels) or 0

    async def connect(self, name="pulsar", /, **spec):
        spec = {"adminServiceURL": self.pulsar.url, "clusterName": CLUSTER, **spec}
        return await self.client.create(Connection(name, self.namespace, spec=spec))

    async def create(self, kind, name, /, **spec):
        spec = {"connectionRef": {"name": "pulsar"}, **spec}
        return await self.client.create(kind(name, self.namespace, spec=spec))

    async def change(self, kind, name, /, **spec):
        await self.client.patch(kind, name, self.namespace, {"spec": spec}, type=PatchType.MERGE)

    async def delete(self, kind, name):
        await self.client.delete(kind, name, self.namespace)

    async def get(self, kind, name):
        try:
            return await self.client.get(kind, name, self.namespace)
        except NotFound:
            return None

    async def until(self, kind, name, holds):
        return await until(self.client, kind, name, self.namespace, holds)

    async def ready(self, kind, name):
        def holds(obj):
            found = obj.condition("Ready") or {}
            return found.get("status") == "True" and found["observedGeneration"] == obj.generation

        return await self.until(kind, name, holds)

    async def not_ready(self, kind, name, reason):
        def holds(obj):
            found = (obj and obj.condition("Ready")) or {}
            return (found.get("status"), found.get("reason")) == ("False", reason)

        return (await self.until(kind, name, holds)).condition("Ready")["message"]

    async def gone(self, kind, name):
        await self.until(kind, name, lambda obj: obj is None)

    async def clear(self):
        for resource in RESOURCES:
            for obj in (await self.client.list(resource.kind, self.namespace)).items:
                await self.client.delete(resource.kind, obj.name, self.namespace)
        for resource in RESOURCES:
            for obj in (await self.client.list(resource.kind, self.namespace)).items:
                await self.gone(resource.kind, obj.name)


@pytest.fixture
async def env(api, pulsar):
    """The bed without an operator."""
    async with AsyncExitStack() as stack:
        it = Environment(api, pulsar, stack)
        await crds.install(it.client, "fairlead_operators.pulsar")
        yield it


@pytest.fixture
async def running_env(env):
    """The bed with the operator at work and a connection that is ready."""
    await env.operator()
    await env.connect()
    await env.ready(Connection, "pulsar")
    yield env
    if env.pulsar.real:
        await env.clear()
