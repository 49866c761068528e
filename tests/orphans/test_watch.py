"""The controller: it looks by itself, remembers across restarts, takes turns by lease, and stops at its cap."""

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


def watching(bed, **options):
    def collector(view):
        fleet = Fleet(Cluster("downstream", view.unguarded), bed.fleet.upstreams, bed.retired)
        store = EvidenceConfigMap(view.unguarded, "default")
        return Collector(fleet, bed.rules, bed.world, store, bed.journal, **options)

    return operator(collector).running(bed.door, bed.world, lease_namespace="default")


@in_virtual_time(environment=started_bed)
async def test_controller_deletes_after_the_grace_and_idles_without_writes(bed):
    await bed.gateway("alive")
    await bed.route("kept", parents=["alive"])
    await bed.route()
    async with watching(bed):
        await asyncio.sleep(GRACE - 10)
        assert await bed.there()
        await asyncio.sleep(20)
        assert await bed.there() is None
        bed.door.requests.clear()
        await asyncio.sleep(3600)
    written = [path for method, path, _ in bed.door.requests if method != "GET"]
    assert [path for path in written if "/leases/" not in path and "configmaps" not in path] == []
    assert len([path for path in written if "configmaps" in path]) <= 2  # the absence that nothing points at, dropped
    assert await bed.there("kept")


@in_virtual_time(environment=started_bed)
async def test_restarted_controller_continues_the_grace(bed):
    await bed.route()
    async with watching(bed):
        await asyncio.sleep(GRACE / 2)
    async with watching(bed):
        await asyncio.sleep(GRACE / 2 - 30)
        assert await bed.there()
        await asyncio.sleep(60)
        assert await bed.there() is None


@in_virtual_time(environment=started_bed)
async def test_only_the_leader_scans_and_its_evidence_survives(bed):
    await bed.route()
    async with watching(bed), watching(bed):
        await asyncio.sleep(GRACE / 2)
        looks = [path for method, path, _ in bed.door.requests if method == "GET" and path.endswith("/httproutes")]
        assert len(looks) <= GRACE / 2 / 60 + 2  # not twice as many
        assert {method for method, path, _ in bed.door.requests if "configmaps/" in path} <= {"GET", "PUT"}
    async with watching(bed):
        await asyncio.sleep(GRACE / 2 - 30)
        assert await bed.there()
        await asyncio.sleep(60)
        assert await bed.there() is None
    assert [entry["what"] for entry in bed.journal] == ["deleting", "deleted"]


@in_virtual_time(environment=started_bed)
async def test_reached_cap_lasts_an_hour_across_restarts(bed):
    for i in range(3):
        await bed.gateway(f"gw-{i}")
        await bed.route(f"web-{i}", parents=[f"gw-{i}"])
    for i in range(3):
        await bed.no_gateway(f"gw-{i}")
        async with watching(bed, cap=Cap.parse("1")):
            await asyncio.sleep(GRACE + 65)
    left = [i for i in range(3) if await bed.there(f"web-{i}")]
    assert left == [1, 2]


@in_virtual_time(environment=started_bed)
async def test_nothing_is_deleted_while_evidence_cannot_be_saved(bed):
    await bed.route()
    bed.door.fault = lambda method, path, query: 403 if "configmaps" in path and method != "GET" else None
    async with watching(bed, grace=0.0):
        await asyncio.sleep(600)
        assert await bed.there()
        bed.door.open()
        await asyncio.sleep(120)
        assert await bed.there() is None


@in_virtual_time(environment=started_bed)
async def test_oversized_evidence_keeps_the_oldest_entries(bed):
    bed.evidence.record_cluster("project-a", "uid")
    for i in range(12_000):
        bed.evidence.absent(
            "project-a", Parent("gateway.networking.k8s.io", "Gateway", "default", f"gw-{i:05}"), 1e9 + i
        )
    store = EvidenceConfigMap(bed.down, "default")
    await store.save(bed.evidence)
    held = await bed.down.get(fl.ConfigMap, "fairlead-orphans", "default")
    absent = json.loads(held["data"]["evidence.json"])["clusters"]["project-a"]["absent"]
    assert 5_000 < len(absent) < 12_000
    assert absent[0][3] == "gw-00000"
