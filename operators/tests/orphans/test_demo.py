"""Tests of the demo with the old and the new operator, and of the collectors alone on both servers."""

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


def play_demo(variant, scale=3):
    async def main():
        world = virtual.world(1)
        run = DemoRun(Server(world).transport, world)
        await demo.play(run, variant, scale)
        await run.close()
        return run

    return virtual.run(main())


def copy_names(names):
    return {name.removeprefix("HTTPRoute ").partition(",")[0].rpartition("-")[0] for name in names}


def test_legacy_deletes_live_routes_and_misses_orphans():
    run = play_demo("old")
    assert copy_names(run.losses) == {"no-status-yet", "replaced", "service-parent", "cross-namespace"}
    assert copy_names(run.stuck) == {"old-label", "deleted-project"}


def test_operator_deletes_all_orphans_and_no_live_route():
    run = play_demo("new")
    assert (run.losses, run.stuck) == ([], [])
    late = {name: at for name, at in run.done_at.items() if at > 1}
    assert copy_names(late) == {"old-label", "deleted-project"}
    assert all(300 <= at <= 310 for at in late.values())


@pytest.mark.parametrize(("variant", "lost"), [("old", True), ("new", False)])
def test_age_does_not_protect_a_route_whose_gateway_is_replaced(variant, lost):
    """The design assumed that a minimum age protects routes. In the demo each route is ten minutes old."""
    assert ("replaced" in copy_names(play_demo(variant, 1).losses)) is lost


def test_orphans_of_the_cleanup_by_status_go_after_one_grace_period(monkeypatch):
    monkeypatch.setattr(gateway_cleanup, "clean_up_by_spec", gateway_cleanup.clean_up_by_status)
    run = play_demo("new")
    assert copy_names(run.losses) == {"no-status-yet"}  # the cleanup deleted these; a collector cannot restore them
    assert run.stuck == []
    assert all(300 <= run.done_at[f"stale-status-{i}"] <= 310 for i in range(3))


def test_demo_counts_requests_of_both_servers():
    async def main():
        world = virtual.world(1)
        return (await play(demo, "new", 1, Server(world).transport, world)).to_json()

    figures = virtual.run(main())
    counts = {(row["verb"], row["resource"]): row["count"] for row in figures["by_verb"]}
    assert counts["LIST", "gateways"] > 5  # only the upstream server has Gateways
    assert counts["DELETE", "httproutes"] == 4
    assert json.dumps(figures)


def test_dry_run_logs_orphans_and_deletes_nothing(caplog):
    async def main():
        world = virtual.world(1)
        downstream_client, upstream_client = Server(world).transport, Server(world).transport
        scenario = demo.Scenario(Client(upstream_client(), world), Client(downstream_client(), world), "default")
        await scenario.create()
        await scenario.delete_gateways(world, gateway_cleanup.clean_up_by_status)
        journal = demo.MemoryJournal()
        settings = {"retired": [scenario.deleted_cluster], "grace": None, "journal": journal, "cap": None}
        before = await names(scenario.down, "default")
        async with op.running(
            downstream_client(), world, clusters={scenario.cluster: upstream_client()}, resources=settings, dry_run=True
        ):
            await asyncio.sleep(1000)
        assert await names(scenario.down, "default") == before
        assert journal == []
        assert not [obj.name for obj in (await scenario.down.list(fl.ConfigMap, "default")).items]
        assert not [obj for obj in (await scenario.down.list(fl.Event)).items if obj["reason"] == "OrphanDeleted"]

    virtual.run(main())
    messages = [record.getMessage() for record in caplog.records]
    orphans = {line.split()[1].rpartition("/")[2] for line in messages if "would be deleted" in line}
    assert orphans == {"stale-status-0", "old-label-0", "deleted-project-0"}
    assert not [line for line in messages if "nothing was judged" in line]


@pytest.mark.parametrize("variant", ["old", "new"])
async def test_collectors_delete_the_expected_copies_on_both_servers(api, variant):
    """After the cleanup by status, without a grace period: the new collector deletes exactly the orphans."""
    world = World()
    upstream = Server(world).transport
    upstream_client, downstream_client = Client(upstream(), world), Client(api.transport(), world)
    scenario = demo.Scenario(upstream_client, downstream_client, api.namespace)
    await scenario.create()
    await scenario.delete_gateways(world, gateway_cleanup.clean_up_by_status)
    settings = {
        "namespace": api.namespace,
        "retired": [scenario.deleted_cluster],
        "grace": 0.0,
        "journal": demo.MemoryJournal(),
        "cap": None,
    }
    if variant == "new":
        running = op.running(api.transport(), world, clusters={scenario.cluster: upstream()}, resources=settings)
        deleted = {"stale-status", "old-label", "deleted-project"}
    else:
        running = legacy.running(downstream_client, upstream_client, world, scenario.cluster, age=0.0)
        deleted = {"stale-status", "service-parent", "cross-namespace"}
    expected = {copy.name for copy in demo.COPIES} - {"attached", "no-status-yet"} - deleted
    async with running:
        for name in deleted:
            await until(downstream_client, HTTPRoute, f"{name}-0", api.namespace, gone)
    assert await names(downstream_client, api.namespace) == expected
    for name in expected:
        await downstream_client.delete(HTTPRoute, f"{name}-0", api.namespace)


async def names(downstream_client, namespace):
    return {route.name.removesuffix("-0") for route in (await downstream_client.list(HTTPRoute, namespace)).items}


def test_fairlead_run_finds_the_operator():
    assert load("fairlead_operators.orphans").name == "orphans"
