"""The whole story, clean-up and collector, as it was and as it is; then the operator by itself on each server."""

import asyncio
import json

import pytest
from waiting import gone, until

import fairlead as fl
from fairlead.api.world import World
from fairlead.cli.load import load
from fairlead.client.client import Client
from fairlead.server.app import Server
from fairlead.testing import virtual
from fairlead.testing.demo.demo_run import DemoRun
from fairlead.testing.demo.outcomes import play
from fairlead_operators.httpproxy.kinds import HTTPRoute
from fairlead_operators.orphans import demo, gateway_cleanup, legacy
from fairlead_operators.orphans.controller import op


def played(variant, scale=3):
    async def main():
        world = virtual.world(1)
        run = DemoRun(Server(world).transport, world)
        await demo.play(run, variant, scale)
        await run.close()
        return run

    return virtual.run(main())


def sorts(names):
    return {name.removeprefix("HTTPRoute ").partition(",")[0].rpartition("-")[0] for name in names}


def test_legacy_deletes_live_routes_and_misses_orphans():
    run = played("old")
    assert sorts(run.losses) == {"no-status-yet", "replaced", "service-parent", "cross-namespace"}
    assert sorts(run.stuck) == {"old-label", "deleted-project"}


def test_operator_deletes_all_orphans_and_no_live_route():
    run = played("new")
    assert (run.losses, run.stuck) == ([], [])
    late = {name: at for name, at in run.done_at.items() if at > 1}
    assert sorts(late) == {"old-label", "deleted-project"}
    assert all(300 <= at <= 310 for at in late.values())


@pytest.mark.parametrize(("variant", "lost"), [("old", True), ("new", False)])
def test_age_does_not_protect_a_route_whose_gateway_is_replaced(variant, lost):
    """The belief was that they do. Each route is ten minutes old: age is not absence."""
    assert ("replaced" in sorts(played(variant, 1).losses)) is lost


def test_orphans_of_the_cleanup_by_status_go_after_one_grace_period(monkeypatch):
    monkeypatch.setattr(gateway_cleanup, "by_spec", gateway_cleanup.by_status)
    run = played("new")
    assert sorts(run.losses) == {"no-status-yet"}  # what the first form took, no collector brings back
    assert run.stuck == []
    assert all(300 <= run.done_at[f"stale-status-{i}"] <= 310 for i in range(3))


def test_demo_counts_requests_of_both_servers():
    async def main():
        world = virtual.world(1)
        return (await play(demo, "new", 1, Server(world).transport, world)).to_json()

    told = virtual.run(main())
    counts = {(row["verb"], row["resource"]): row["count"] for row in told["by_verb"]}
    assert counts["LIST", "gateways"] > 5  # these are upstream only
    assert counts["DELETE", "httproutes"] == 4
    assert json.dumps(told)


def test_dry_run_logs_orphans_and_deletes_nothing(caplog):
    async def main():
        world = virtual.world(1)
        down, up = Server(world).transport, Server(world).transport
        scenario = demo.Scenario(Client(up(), world), Client(down(), world), "default")
        await scenario.create()
        await scenario.delete_gateways(world, gateway_cleanup.by_status)
        journal = demo.MemoryJournal()
        told = {"retired": [scenario.deleted_cluster], "grace": None, "journal": journal, "cap": None}
        there = await names(scenario.down, "default")
        async with op.running(down(), world, clusters={scenario.cluster: up()}, resources=told, dry_run=True):
            await asyncio.sleep(1000)
        assert await names(scenario.down, "default") == there
        assert journal == []
        assert not [obj.name for obj in (await scenario.down.list(fl.ConfigMap, "default")).items]
        assert not [obj for obj in (await scenario.down.list(fl.Event)).items if obj["reason"] == "OrphanDeleted"]

    virtual.run(main())
    said = [record.getMessage() for record in caplog.records]
    would = {line.split()[1].rpartition("/")[2] for line in said if "would be deleted" in line}
    assert would == {"stale-status-0", "old-label-0", "deleted-project-0"}
    assert not [line for line in said if "nothing was judged" in line]


@pytest.mark.parametrize("variant", ["old", "new"])
async def test_both_collectors_behave_the_same_on_both_servers(api, variant):
    """What the clean-up left, in real time and with no grace: ours takes the orphans, theirs more and less."""
    world = World()
    upstream = Server(world).transport
    up, down = Client(upstream(), world), Client(api.transport(), world)
    scenario = demo.Scenario(up, down, api.namespace)
    await scenario.create()
    await scenario.delete_gateways(world, gateway_cleanup.by_status)
    told = {
        "namespace": api.namespace,
        "retired": [scenario.deleted_cluster],
        "grace": 0.0,
        "journal": demo.MemoryJournal(),
        "cap": None,
    }
    if variant == "new":
        running = op.running(api.transport(), world, clusters={scenario.cluster: upstream()}, resources=told)
        goes = {"stale-status", "old-label", "deleted-project"}
    else:
        running = legacy.running(down, up, world, scenario.cluster, age=0.0)
        goes = {"stale-status", "service-parent", "cross-namespace"}
    wanted = {copy.name for copy in demo.COPIES} - {"attached", "no-status-yet"} - goes
    async with running:
        for name in goes:
            await until(down, HTTPRoute, f"{name}-0", api.namespace, gone)
    assert await names(down, api.namespace) == wanted
    for name in wanted:
        await down.delete(HTTPRoute, f"{name}-0", api.namespace)


async def names(down, namespace):
    return {route.name.removesuffix("-0") for route in (await down.list(HTTPRoute, namespace)).items}


def test_fairlead_run_finds_the_operator():
    assert load("fairlead_operators.orphans").name == "orphans"
