"""Tests of the copies that `clean_up_by_status` and `clean_up_by_spec` delete when a Gateway is deleted."""

import pytest

from fairlead.api.world import World
from fairlead.client.client import Client
from fairlead.server.app import Server
from fairlead_operators.httpproxy.kinds import HTTPRoute
from fairlead_operators.orphans import demo, gateway_cleanup


async def copies_after_cleanup(api, detach):
    """Run the cleanup without a collector, and return the remaining copies by name."""
    world = World()
    upstream_client, downstream_client = Client(Server(world).transport(), world), Client(api.transport(), world)
    scenario = demo.Scenario(upstream_client, downstream_client, api.namespace)
    await scenario.create()
    await scenario.delete_gateways(world, detach)
    routes = {
        route.name.removesuffix("-0"): route for route in (await downstream_client.list(HTTPRoute, api.namespace)).items
    }
    for route in routes.values():
        await downstream_client.delete(HTTPRoute, route.name, route.namespace)
    return routes


ALL = {copy.name for copy in demo.COPIES}


async def test_cleanup_by_status_leaves_an_orphan_and_deletes_a_live_route(api):
    assert ALL - (await copies_after_cleanup(api, gateway_cleanup.clean_up_by_status)).keys() == {
        "attached",
        "no-status-yet",
    }


async def test_cleanup_by_spec_deletes_exactly_the_orphans(api):
    routes = await copies_after_cleanup(api, gateway_cleanup.clean_up_by_spec)
    assert ALL - routes.keys() == {"attached", "stale-status"}
    assert [ref["name"] for ref in routes["two-parents"].spec["parentRefs"]] == ["kept-0"]


@pytest.mark.parametrize("label", ["cluster-a", "cluster-_a"])
def test_copy_has_labels_of_its_origin(label):
    route = HTTPRoute("web", "default", spec={})
    copy = gateway_cleanup.copy_of(route, "a", "ns-1", label.removesuffix("a"))
    assert copy.labels[f"{gateway_cleanup.LABELS}cluster-name"] == label
    assert (copy.namespace, copy.labels[f"{gateway_cleanup.LABELS}namespace"]) == ("ns-1", "default")
