"""Tests of the controller: it scans periodically, keeps its evidence across restarts, elects a leader and has a cap."""

import asyncio
import json
from contextlib import asynccontextmanager

from fleets import FleetHarness
from virtual_time import in_virtual_time

import fairlead as fl
from fairlead.server.app import Server
from fairlead.testing import virtual
from fairlead.tools.orphans.caps import Cap
from fairlead.tools.orphans.clusters import Cluster, Fleet
from fairlead.tools.orphans.collector import Collector, operator
from fairlead.tools.orphans.evidence_stores import EvidenceConfigMap
from fairlead.tools.orphans.rules import Parent

GRACE = 300.0


@asynccontextmanager
async def started_harness():
    world = virtual.world()
    harness = FleetHarness(Server(world).transport(), "default", world)
    yield await harness.start("project-a")
    await harness.clean()


def run_controller(harness, **options):
    def collector(ctx):
        fleet = Fleet(Cluster("downstream", ctx.unguarded), harness.fleet.upstreams, harness.retired)
        store = EvidenceConfigMap(ctx.unguarded, "default")
        return Collector(fleet, harness.rules, harness.world, store, harness.journal, **options)

    return operator(collector).running(harness.downstream_transport, harness.world, lease_namespace="default")


@in_virtual_time(environment=started_harness)
async def test_controller_deletes_after_the_grace_and_idles_without_writes(harness):
    await harness.create_gateway("alive")
    await harness.create_route("kept", parents=["alive"])
    await harness.create_route()
    async with run_controller(harness):
        await asyncio.sleep(GRACE - 10)
        assert await harness.find()
        await asyncio.sleep(20)
        assert await harness.find() is None
        harness.downstream_transport.requests.clear()
        await asyncio.sleep(3600)
    written_paths = [path for method, path, _ in harness.downstream_transport.requests if method != "GET"]
    assert [path for path in written_paths if "/leases/" not in path and "configmaps" not in path] == []
    assert (
        len([path for path in written_paths if "configmaps" in path]) <= 2
    )  # the absence of the deleted orphan's Gateway is dropped
    assert await harness.find("kept")


@in_virtual_time(environment=started_harness)
async def test_restarted_controller_continues_the_grace(harness):
    await harness.create_route()
    async with run_controller(harness):
        await asyncio.sleep(GRACE / 2)
    async with run_controller(harness):
        await asyncio.sleep(GRACE / 2 - 30)
        assert await harness.find()
        await asyncio.sleep(60)
        assert await harness.find() is None


@in_virtual_time(environment=started_harness)
async def test_only_the_leader_scans_and_its_evidence_survives(harness):
    await harness.create_route()
    async with run_controller(harness), run_controller(harness):
        await asyncio.sleep(GRACE / 2)
        scans = [
            path
            for method, path, _ in harness.downstream_transport.requests
            if method == "GET" and path.endswith("/httproutes")
        ]
        assert len(scans) <= GRACE / 2 / 60 + 2  # not twice as many
        assert {method for method, path, _ in harness.downstream_transport.requests if "configmaps/" in path} <= {
            "GET",
            "PUT",
        }
    async with run_controller(harness):
        await asyncio.sleep(GRACE / 2 - 30)
        assert await harness.find()
        await asyncio.sleep(60)
        assert await harness.find() is None
    assert [entry["what"] for entry in harness.journal] == ["deleting", "deleted"]


@in_virtual_time(environment=started_harness)
async def test_reached_cap_lasts_an_hour_across_restarts(harness):
    for i in range(3):
        await harness.create_gateway(f"gw-{i}")
        await harness.create_route(f"web-{i}", parents=[f"gw-{i}"])
    for i in range(3):
        await harness.delete_gateway(f"gw-{i}")
        async with run_controller(harness, cap=Cap.parse("1")):
            await asyncio.sleep(GRACE + 65)
    remaining = [i for i in range(3) if await harness.find(f"web-{i}")]
    assert remaining == [1, 2]


@in_virtual_time(environment=started_harness)
async def test_nothing_is_deleted_while_evidence_cannot_be_saved(harness):
    await harness.create_route()
    harness.downstream_transport.fault = lambda method, path, query: (
        403 if "configmaps" in path and method != "GET" else None
    )
    async with run_controller(harness, grace=0.0):
        await asyncio.sleep(600)
        assert await harness.find()
        harness.downstream_transport.clear_fault()
        await asyncio.sleep(120)
        assert await harness.find() is None


@in_virtual_time(environment=started_harness)
async def test_oversized_evidence_keeps_the_oldest_entries(harness):
    harness.evidence.record_cluster("project-a", "uid")
    for i in range(12_000):
        harness.evidence.absent(
            "project-a", Parent("gateway.networking.k8s.io", "Gateway", "default", f"gw-{i:05}"), 1e9 + i
        )
    store = EvidenceConfigMap(harness.downstream_client, "default")
    await store.save(harness.evidence)
    evidence_config_map = await harness.downstream_client.get(fl.ConfigMap, "fairlead-orphans", "default")
    absent_entries = json.loads(evidence_config_map["data"]["evidence.json"])["clusters"]["project-a"]["absent"]
    assert 5_000 < len(absent_entries) < 12_000
    assert absent_entries[0][3] == "gw-00000"
