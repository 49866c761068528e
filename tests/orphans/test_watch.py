"""The controller scans periodically, keeps its evidence across restarts, elects a leader and stops at its cap."""

import asyncio
import json
from contextlib import asynccontextmanager

from fleets import Bed
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
async def started_bed():
    world = virtual.world()
    bed = Bed(Server(world).transport(), "default", world)
    yield await bed.start("project-a")
    await bed.clean()


def run_controller(bed, **options):
    def collector(ctx):
        fleet = Fleet(Cluster("downstream", ctx.unguarded), bed.fleet.upstreams, bed.retired)
        store = EvidenceConfigMap(ctx.unguarded, "default")
        return Collector(fleet, bed.rules, bed.world, store, bed.journal, **options)

    return operator(collector).running(bed.downstream_transport, bed.world, lease_namespace="default")


@in_virtual_time(environment=started_bed)
async def test_controller_deletes_after_the_grace_and_idles_without_writes(bed):
    await bed.create_gateway("alive")
    await bed.create_route("kept", parents=["alive"])
    await bed.create_route()
    async with run_controller(bed):
        await asyncio.sleep(GRACE - 10)
        assert await bed.find()
        await asyncio.sleep(20)
        assert await bed.find() is None
        bed.downstream_transport.requests.clear()
        await asyncio.sleep(3600)
    written = [path for method, path, _ in bed.downstream_transport.requests if method != "GET"]
    assert [path for path in written if "/leases/" not in path and "configmaps" not in path] == []
    assert (
        len([path for path in written if "configmaps" in path]) <= 2
    )  # the absence of the deleted orphan's Gateway is dropped
    assert await bed.find("kept")


@in_virtual_time(environment=started_bed)
async def test_restarted_controller_continues_the_grace(bed):
    await bed.create_route()
    async with run_controller(bed):
        await asyncio.sleep(GRACE / 2)
    async with run_controller(bed):
        await asyncio.sleep(GRACE / 2 - 30)
        assert await bed.find()
        await asyncio.sleep(60)
        assert await bed.find() is None


@in_virtual_time(environment=started_bed)
async def test_only_the_leader_scans_and_its_evidence_survives(bed):
    await bed.create_route()
    async with run_controller(bed), run_controller(bed):
        await asyncio.sleep(GRACE / 2)
        scans = [
            path
            for method, path, _ in bed.downstream_transport.requests
            if method == "GET" and path.endswith("/httproutes")
        ]
        assert len(scans) <= GRACE / 2 / 60 + 2  # not twice as many
        assert {method for method, path, _ in bed.downstream_transport.requests if "configmaps/" in path} <= {
            "GET",
            "PUT",
        }
    async with run_controller(bed):
        await asyncio.sleep(GRACE / 2 - 30)
        assert await bed.find()
        await asyncio.sleep(60)
        assert await bed.find() is None
    assert [entry["what"] for entry in bed.journal] == ["deleting", "deleted"]


@in_virtual_time(environment=started_bed)
async def test_reached_cap_lasts_an_hour_across_restarts(bed):
    for i in range(3):
        await bed.create_gateway(f"gw-{i}")
        await bed.create_route(f"web-{i}", parents=[f"gw-{i}"])
    for i in range(3):
        await bed.delete_gateway(f"gw-{i}")
        async with run_controller(bed, cap=Cap.parse("1")):
            await asyncio.sleep(GRACE + 65)
    remaining = [i for i in range(3) if await bed.find(f"web-{i}")]
    assert remaining == [1, 2]


@in_virtual_time(environment=started_bed)
async def test_nothing_is_deleted_while_evidence_cannot_be_saved(bed):
    await bed.create_route()
    bed.downstream_transport.fault = lambda method, path, query: (
        403 if "configmaps" in path and method != "GET" else None
    )
    async with run_controller(bed, grace=0.0):
        await asyncio.sleep(600)
        assert await bed.find()
        bed.downstream_transport.clear_fault()
        await asyncio.sleep(120)
        assert await bed.find() is None


@in_virtual_time(environment=started_bed)
async def test_oversized_evidence_keeps_the_oldest_entries(bed):
    bed.evidence.record_cluster("project-a", "uid")
    for i in range(12_000):
        bed.evidence.absent(
            "project-a", Parent("gateway.networking.k8s.io", "Gateway", "default", f"gw-{i:05}"), 1e9 + i
        )
    store = EvidenceConfigMap(bed.down, "default")
    await store.save(bed.evidence)
    stored = await bed.down.get(fl.ConfigMap, "fairlead-orphans", "default")
    absent = json.loads(stored["data"]["evidence.json"])["clusters"]["project-a"]["absent"]
    assert 5_000 < len(absent) < 12_000
    assert absent[0][3] == "gw-00000"
