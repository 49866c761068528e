"""Fixtures with a Pulsar: the fake over loopback HTTP, and a real one if FAIRLEAD_PULSAR names its URL."""

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
    """A Pulsar that the operator manages, and a client to inspect it."""

    url: str
    admin: Admin
    fake: FakePulsar
    files: str
    """Where the fake serves code.jar."""
    real: bool

    @property
    def runs_functions(self):
        """Return whether the tests can create functions. A real Pulsar would need a real jar."""
        return JAR is not None or not self.real

    async def wait_until(self, path, condition):
        """GET the path until `condition(value)` is true, and return the value."""
        async with asyncio.timeout(PATIENCE):
            while not condition(value := await self.admin.get(path)):
                await asyncio.sleep(0.02)
        return value

    async def remove(self, resource, applied):
        """Delete a resource in Pulsar. Retries, because a deleted function releases its topics a moment later."""
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
        pytest.fail(f"FAIRLEAD_PULSAR is {REAL}: the tests create and delete tenants, so it must be on this machine")
    async with fake.listening() as url:
        fake.files["/code.jar"] = await asyncio.to_thread(_jar)
        address = REAL if request.param == "pulsar" else url
        yield Pulsar(address, Admin(clients(address)), fake, url, request.param == "pulsar")
        await clients.close()


def _jar():
    from pathlib import Path

    return Path(JAR).read_bytes() if JAR else b"not a jar"


class Environment:
    """A namespace, a Pulsar and a client, with methods that start the operator and wait."""

    def __init__(self, api, pulsar, stack):
        self.api, self.pulsar, self.stack = api, pulsar, stack
        self.namespace = api.namespace
        self.client = Client(api.transport(), World(), user_agent="test")
        self.tenant = f"t{World().uid()[:8]}"  # a real Pulsar is shared by many tests

    def gate(self):
        return WatchGate(self.api.transport())

    async def operator(self, transport=None, **options):
        transport = transport or self.api.transport()
        running = op.running(transport, World(), namespaces=[self.namespace], **options)
        return await self.stack.enter_async_context(running)

    @staticmethod
    def reconciles(running, controller="pulsartenant"):
        """Return the number of finished reconciles of a controller."""
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

    async def wait_until(self, kind, name, condition):
        return await until(self.client, kind, name, self.namespace, condition)

    async def wait_until_ready(self, kind, name):
        def holds(obj):
            ready_condition = obj.condition("Ready") or {}
            return ready_condition.get("status") == "True" and ready_condition["observedGeneration"] == obj.generation

        return await self.wait_until(kind, name, holds)

    async def wait_until_not_ready(self, kind, name, reason):
        def holds(obj):
            ready_condition = (obj and obj.condition("Ready")) or {}
            return (ready_condition.get("status"), ready_condition.get("reason")) == ("False", reason)

        return (await self.wait_until(kind, name, holds)).condition("Ready")["message"]

    async def wait_until_gone(self, kind, name):
        await self.wait_until(kind, name, lambda obj: obj is None)

    async def clear(self):
        for resource in RESOURCES:
            for obj in (await self.client.list(resource.kind, self.namespace)).items:
                await self.client.delete(resource.kind, obj.name, self.namespace)
        for resource in RESOURCES:
            for obj in (await self.client.list(resource.kind, self.namespace)).items:
                await self.wait_until_gone(resource.kind, obj.name)


@pytest.fixture
async def env(api, pulsar):
    """Return an environment without a running operator."""
    async with AsyncExitStack() as stack:
        environment = Environment(api, pulsar, stack)
        await crds.install(environment.client, "fairlead_operators.pulsar")
        yield environment


@pytest.fixture
async def running_env(env):
    """Return an environment with a running operator and a ready connection."""
    await env.operator()
    await env.connect()
    await env.wait_until_ready(Connection, "pulsar")
    yield env
    if env.pulsar.real:
        await env.clear()
