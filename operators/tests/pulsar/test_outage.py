"""Tests of the requests that the operator sends during an hour without Pulsar, or with invalid specs."""

import asyncio
from base64 import b64encode
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from pulsar_objects import INVALID_SPECS

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
"""Seconds between two attempts in an hour. The 0 is the reconcile after the write of the condition."""


class TimedPulsar(FakePulsar):
    """A fake Pulsar that records the time of each request."""

    def __init__(self):
        super().__init__()
        self.times = {}
        self.fixed_answer = None
        """The answer to every request, as if another server had this address."""

    async def request(self, request):
        self.times.setdefault(request.path, []).append(asyncio.get_running_loop().time())
        if self.fixed_answer is not None:
            return self.fixed_answer
        return await super().request(request)


class Outage:
    """The operator on an embedded server, with a Pulsar that can be stopped."""

    def __init__(self):
        self.world, self.pulsar = virtual.world(1), TimedPulsar()
        server = Server(self.world)
        self.client, self.wire = Client(server.transport(), self.world), CountingTransport(server.transport())

    async def create(self, kind, name, /, **spec):
        return await self.client.create(kind(name, "default", spec={"connectionRef": {"name": "pulsar"}, **spec}))

    async def connect(self, **spec):
        spec = {"adminServiceURL": "http://pulsar.invalid:8080", "clusterName": CLUSTER, **spec}
        await self.client.create(Connection("pulsar", "default", spec=spec))

    async def wait_until_ready(self, kind, name):
        return (await self.client.get(kind, name, "default")).condition("Ready")

    def reconciles(self):
        name = "controller_runtime_reconcile_time_seconds_count"
        metrics = self.running.metrics.registry.collect()
        return sum(sample.value for metric in metrics for sample in metric.samples if sample.name == name)

    def writes(self):
        return sum(n for (method, _), n in self.wire.counts.items() if method != "GET")

    def reset_counters(self):
        self.pulsar.calls.clear()
        self.pulsar.times.clear()
        self.wire.counts.clear()


@asynccontextmanager
async def running_operator():
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
        async with running_operator() as outage:
            outage.pulsar.down = True
            await outage.connect()
            for number in range(TENANTS):
                await outage.create(Tenant, f"t{number}", name=f"t{number}")
            await asyncio.sleep(HOUR)
            assert {*outage.pulsar.times} == {"/admin/v2/clusters"}
            assert_backs_off(outage.pulsar.times["/admin/v2/clusters"])
            condition = await outage.wait_until_ready(Connection, "pulsar")
            assert (condition["status"], condition["reason"]) == ("False", "Unreachable")
            assert "check the address in PulsarConnection pulsar" in condition["message"]
            assert (await outage.wait_until_ready(Tenant, "t0"))["reason"] == "NoConnection"
            before = outage.writes()
            await asyncio.sleep(HOUR)
            assert outage.writes() == before
            outage.pulsar.down = False
            await asyncio.sleep(MAX_RETRY + 1)
            assert (await outage.wait_until_ready(Tenant, f"t{TENANTS - 1}"))["status"] == "True"

    virtual.run(main())


@pytest.mark.parametrize("change", ["changed", "deleted"])
def test_outage_backs_off_changed_and_deleted_objects(change):
    async def main():
        async with running_operator() as outage:
            await outage.connect()
            for number in range(TENANTS + 1):
                await outage.create(Tenant, f"t{number}", name=f"t{number}")
            await outage.running.wait_until_idle()
            outage.pulsar.down = True
            outage.reset_counters()
            for number in range(TENANTS):
                if change == "deleted":
                    await outage.client.delete(Tenant, f"t{number}", "default")
                else:
                    patch = {"spec": {"adminRoles": ["clerk"]}}
                    await outage.client.patch(Tenant, f"t{number}", "default", patch, type=PatchType.MERGE)
            await asyncio.sleep(HOUR)
            assert {*outage.pulsar.times} == {f"/admin/v2/tenants/t{number}" for number in range(TENANTS)}
            for times in outage.pulsar.times.values():
                assert_backs_off(times)
            condition = await outage.wait_until_ready(Tenant, "t0")
            assert (condition["status"], condition["reason"]) == ("False", "Unreachable")
            assert "check the address in PulsarConnection pulsar" in condition["message"]
            assert ("KeepAfterDeletion" in condition["message"]) is (change == "deleted")
            outage.pulsar.down = False
            await asyncio.sleep(MAX_RETRY + 1)
            remaining = {obj.name: obj.is_true("Ready") for obj in (await outage.client.list(Tenant, "default")).items}
            assert remaining == ({f"t{TENANTS}": True} if change == "deleted" else dict.fromkeys(remaining, True))

    virtual.run(main())


@pytest.mark.parametrize(
    "answer",
    [Answer(404), Answer(200), Answer(200, b"<html>"), Answer(200, b'{"kind": "Status"}')],
    ids=["not found", "nothing", "a page", "another API"],
)
def test_connection_to_another_server_reports_not_pulsar(answer):
    async def main():
        async with running_operator() as outage:
            outage.pulsar.fixed_answer = answer
            await outage.connect()
            await asyncio.sleep(HOUR)
            condition = await outage.wait_until_ready(Connection, "pulsar")
            assert (condition["status"], condition["reason"]) == ("False", "NotPulsar")
            assert "not Pulsar's admin API" in condition["message"]
            assert "check the address in PulsarConnection pulsar" in condition["message"]
            assert_backs_off(outage.pulsar.times["/admin/v2/clusters"])

    virtual.run(main())


def test_object_reports_not_pulsar_when_the_server_changes():
    async def main():
        async with running_operator() as outage:
            await outage.connect(clusterName="")
            await asyncio.sleep(1)
            outage.pulsar.fixed_answer = Answer(404)
            await outage.create(Tenant, "tenant", name="tenant")
            await asyncio.sleep(1)
            assert (await outage.wait_until_ready(Tenant, "tenant"))["reason"] == "NotPulsar"

    virtual.run(main())


@pytest.mark.parametrize("content", [b"\xff\xfe", b"two\nlines", "tök".encode()], ids=["no text", "lines", "no ASCII"])
def test_secret_without_a_valid_token_is_reported_with_a_remedy(content):
    async def main():
        async with running_operator() as outage:
            secret = fl.Secret("token", "default", data={"token": b64encode(content).decode()})
            await outage.client.create(secret)
            await outage.connect(authentication={"token": {"secretRef": {"name": "token", "key": "token"}}})
            await asyncio.sleep(HOUR)
            condition = await outage.wait_until_ready(Connection, "pulsar")
            assert (condition["status"], condition["reason"]) == ("False", "SecretInvalid")
            assert "key token of Secret token" in condition["message"]
            assert not outage.pulsar.calls
            assert outage.reconciles() <= len(GAPS) + 3
            right = {"data": {"token": b64encode(b"right\n").decode()}}
            await outage.client.patch(fl.Secret, "token", "default", right, type=PatchType.MERGE)
            await asyncio.sleep(MAX_RETRY + 1)
            assert (await outage.wait_until_ready(Connection, "pulsar"))["status"] == "True"

    virtual.run(main())


def test_invalid_token_in_the_spec_is_reported_and_not_retried():
    async def main():
        async with running_operator() as outage:
            await outage.connect(authentication={"token": {"value": "two\nlines"}})
            await asyncio.sleep(HOUR)
            condition = await outage.wait_until_ready(Connection, "pulsar")
            assert (condition["status"], condition["reason"]) == ("False", "Invalid")
            assert "spec.authentication.token.value" in condition["message"]

    virtual.run(main())


def test_invalid_specs_are_retried_every_five_minutes_without_writes():
    async def main():
        async with running_operator() as outage:
            await outage.connect()
            for number, (kind, spec, *_) in enumerate(INVALID_SPECS):
                await outage.create(kind, f"bad-{number}", **spec)
            await asyncio.sleep(HOUR)
            for number, (kind, *_) in enumerate(INVALID_SPECS):
                condition = await outage.wait_until_ready(kind, f"bad-{number}")
                assert condition["status"] == "False"
                assert condition["message"]
            reconciles, writes = outage.reconciles(), outage.writes()
            outage.pulsar.times.clear()
            await asyncio.sleep(HOUR)
            assert outage.writes() == writes
            assert outage.reconciles() - reconciles <= len(INVALID_SPECS) * HOUR / MAX_RETRY
            assert max(len(times) for times in outage.pulsar.times.values()) <= HOUR / MAX_RETRY

    virtual.run(main())
