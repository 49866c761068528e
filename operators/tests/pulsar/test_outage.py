"""An hour without Pulsar, and an hour of specs that cannot be, in virtual time: what is tried, and how often."""

import asyncio
from base64 import b64encode
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from pulsar_objects import IMPOSSIBLE

import fairlead as fl
from fairlead.client.client import Client, PatchType
from fairlead.server.app import Server
from fairlead.testing import virtual
from fairlead.testing.network import CountingTransport
from fairlead_operators import crds
from fairlead_operators.pulsar.controller import op
from fairlead_operators.pulsar.error_conditions import MAX_RETRY
from fairlead_operators.pulsar.fake_pulsar import CLUSTER, Answer, FakePulsar
from fairlead_operators.pulsar.kinds import Connection, Tenant

HOUR = 3600.0
TENANTS = 5
GAPS = [0, 30, 30, 60, 120, 240, *[300] * 10]
"""Seconds between two tries in an hour. The first is that its own condition wakes an object, once."""


class Timed(FakePulsar):
    """Notes when each call came, too."""

    def __init__(self):
        super().__init__()
        self.times = {}
        self.instead = None
        """What another server answers to everything, whatever it is."""

    async def request(self, request):
        self.times.setdefault(request.path, []).append(asyncio.get_running_loop().time())
        if self.instead is not None:
            return self.instead
        return await super().request(request)


class Outage:
    """The operator at work on an embedded server, before a Pulsar that can be taken down."""

    def __init__(self):
        self.world, self.pulsar = virtual.world(1), Timed()
        server = Server(self.world)
        self.client, self.wire = Client(server.transport(), self.world), CountingTransport(server.transport())

    async def create(self, kind, name, /, **spec):
        return await self.client.create(kind(name, "default", spec={"connectionRef": {"name": "pulsar"}, **spec}))

    async def connect(self, **spec):
        spec = {"adminServiceURL": "http://pulsar.invalid:8080", "clusterName": CLUSTER, **spec}
        await self.client.create(Connection("pulsar", "default", spec=spec))

    async def ready(self, kind, name):
        return (await self.client.get(kind, name, "default")).condition("Ready")

    def passes(self):
        name = "controller_runtime_reconcile_time_seconds_count"
        metrics = self.running.metrics.registry.collect()
        return sum(sample.value for each in metrics for sample in each.samples if sample.name == name)

    def writes(self):
        return sum(n for (method, _), n in self.wire.counts.items() if method != "GET")

    def forget(self):
        self.pulsar.calls.clear()
        self.pulsar.times.clear()
        self.wire.counts.clear()


@asynccontextmanager
async def working():
    outage = Outage()
    await crds.install(outage.client, "fairlead_operators.pulsar")
    resources = {"http": outage.pulsar}
    async with op.running(outage.wire, outage.world, namespaces=["default"], resources=resources) as outage.running:
        yield outage


def assert_backs_off(times):
    gaps = [round(later - earlier) for earlier, later in pairwise(times)]
    assert gaps == GAPS


def test_outage_backs_off_the_connection_and_stops_its_objects():
    async def main():
        async with working() as outage:
            outage.pulsar.down = True
            await outage.connect()
            for number in range(TENANTS):
                await outage.create(Tenant, f"t{number}", name=f"t{number}")
            await asyncio.sleep(HOUR)
            assert {*outage.pulsar.times} == {"/admin/v2/clusters"}
            assert_backs_off(outage.pulsar.times["/admin/v2/clusters"])
            said = await outage.ready(Connection, "pulsar")
            assert (said["status"], said["reason"]) == ("False", "Unreachable")
            assert "check the address in PulsarConnection pulsar" in said["message"]
            assert (await outage.ready(Tenant, "t0"))["reason"] == "NoConnection"
            before = outage.writes()
            await asyncio.sleep(HOUR)
            assert outage.writes() == before
            outage.pulsar.down = False
            await asyncio.sleep(MAX_RETRY + 1)
            assert (await outage.ready(Tenant, f"t{TENANTS - 1}"))["status"] == "True"

    virtual.run(main())


@pytest.mark.parametrize("what", ["changed", "deleted"])
def test_outage_backs_off_changed_and_deleted_objects(what):
    async def main():
        async with working() as outage:
            await outage.connect()
            for number in range(TENANTS + 1):
                await outage.create(Tenant, f"t{number}", name=f"t{number}")
            await outage.running.quiet()
            outage.pulsar.down = True
            outage.forget()
            for number in range(TENANTS):
                if what == "deleted":
                    await outage.client.delete(Tenant, f"t{number}", "default")
                else:
                    patch = {"spec": {"adminRoles": ["clerk"]}}
                    await outage.client.patch(Tenant, f"t{number}", "default", patch, type=PatchType.MERGE)
            await asyncio.sleep(HOUR)
            assert {*outage.pulsar.times} == {f"/admin/v2/tenants/t{number}" for number in range(TENANTS)}
            for times in outage.pulsar.times.values():
                assert_backs_off(times)
            said = await outage.ready(Tenant, "t0")
            assert (said["status"], said["reason"]) == ("False", "Unreachable")
            assert "check the address in PulsarConnection pulsar" in said["message"]
            assert ("KeepAfterDeletion" in said["message"]) is (what == "deleted")
            outage.pulsar.down = False
            await asyncio.sleep(MAX_RETRY + 1)
            left = {obj.name: obj.is_true("Ready") for obj in (await outage.client.list(Tenant, "default")).items}
            assert left == ({f"t{TENANTS}": True} if what == "deleted" else dict.fromkeys(left, True))

    virtual.run(main())


@pytest.mark.parametrize(
    "answer",
    [Answer(404), Answer(200), Answer(200, b"<html>"), Answer(200, b'{"kind": "Status"}')],
    ids=["not found", "nothing", "a page", "another API"],
)
def test_connection_to_another_server_reports_not_pulsar(answer):
    async def main():
        async with working() as outage:
            outage.pulsar.instead = answer
            await outage.connect()
            await asyncio.sleep(HOUR)
            said = await outage.ready(Connection, "pulsar")
            assert (said["status"], said["reason"]) == ("False", "NotPulsar")
            assert "not Pulsar's admin API" in said["message"]
            assert "check the address in PulsarConnection pulsar" in said["message"]
            assert_backs_off(outage.pulsar.times["/admin/v2/clusters"])

    virtual.run(main())


def test_object_reports_not_pulsar_when_the_server_changes():
    async def main():
        async with working() as outage:
            await outage.connect(clusterName="")
            await asyncio.sleep(1)
            outage.pulsar.instead = Answer(404)
            await outage.create(Tenant, "tenant", name="tenant")
            await asyncio.sleep(1)
            assert (await outage.ready(Tenant, "tenant"))["reason"] == "NotPulsar"

    virtual.run(main())


@pytest.mark.parametrize("content", [b"\xff\xfe", b"two\nlines", "tök".encode()], ids=["no text", "lines", "no ASCII"])
def test_secret_without_a_valid_token_is_reported_with_a_remedy(content):
    async def main():
        async with working() as outage:
            secret = fl.Secret("token", "default", data={"token": b64encode(content).decode()})
            await outage.client.create(secret)
            await outage.connect(authentication={"token": {"secretRef": {"name": "token", "key": "token"}}})
            await asyncio.sleep(HOUR)
            said = await outage.ready(Connection, "pulsar")
            assert (said["status"], said["reason"]) == ("False", "SecretInvalid")
            assert "key token of Secret token" in said["message"]
            assert not outage.pulsar.calls
            assert outage.passes() <= len(GAPS) + 3
            right = {"data": {"token": b64encode(b"right\n").decode()}}
            await outage.client.patch(fl.Secret, "token", "default", right, type=PatchType.MERGE)
            await asyncio.sleep(MAX_RETRY + 1)
            assert (await outage.ready(Connection, "pulsar"))["status"] == "True"

    virtual.run(main())


def test_invalid_token_in_the_spec_is_reported_and_not_retried():
    async def main():
        async with working() as outage:
            await outage.connect(authentication={"token": {"value": "two\nlines"}})
            await asyncio.sleep(HOUR)
            said = await outage.ready(Connection, "pulsar")
            assert (said["status"], said["reason"]) == ("False", "Invalid")
            assert "spec.authentication.token.value" in said["message"]

    virtual.run(main())


def test_invalid_specs_are_retried_every_five_minutes_without_writes():
    async def main():
        async with working() as outage:
            await outage.connect()
            for number, (kind, spec, *_) in enumerate(IMPOSSIBLE):
                await outage.create(kind, f"bad-{number}", **spec)
            await asyncio.sleep(HOUR)
            for number, (kind, *_) in enumerate(IMPOSSIBLE):
                said = await outage.ready(kind, f"bad-{number}")
                assert said["status"] == "False"
                assert said["message"]
            passes, writes = outage.passes(), outage.writes()
            outage.pulsar.times.clear()
            await asyncio.sleep(HOUR)
            assert outage.writes() == writes
            assert outage.passes() - passes <= len(IMPOSSIBLE) * HOUR / MAX_RETRY
            assert max(len(times) for times in outage.pulsar.times.values()) <= HOUR / MAX_RETRY

    virtual.run(main())
