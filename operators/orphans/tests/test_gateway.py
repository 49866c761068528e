"""The cause and the collector: what each clean-up leaves, and what of it is there in the end."""

import pytest

from fairlead.api.world import World
from fairlead.client.client import Client
from fairlead.operators.httpproxy.kinds import Gateway, HTTPRoute
from fairlead.operators.orphans import bed, gateway
from fairlead.server.app import Server
from fairlead.testing import virtual


class Lines(list):
    write = list.append


def outcome(detach):
    async def main():
        world = virtual.world()
        return await bed.run(Server(world).transport(), Server(world).transport(), world, Lines(), detach)

    return virtual.run(main())


def test_judged_by_status_it_leaves_one_and_loses_another():
    found = outcome(gateway.by_status)
    assert (found.orphans, found.lost) == (["stale-status"], ["no-status-yet"])


def test_judged_by_spec_it_leaves_and_loses_nothing():
    found = outcome(gateway.by_spec)
    assert (found.orphans, found.lost, found.orphans_in_the_end) == ([], [], [])


def test_what_was_left_is_collected_after_one_grace_and_not_before():
    found = outcome(gateway.by_status)
    assert found.orphans_in_the_end == []
    assert 300 <= found.collected_after <= 310


@pytest.mark.parametrize("detach", [gateway.by_status, gateway.by_spec])
async def test_both_forms_do_so_on_each_server(api, detach):
    world = World()
    up, down = Client(Server(world).transport(), world), Client(api.transport(), world)
    await bed.prepare(up, down, api.namespace)
    await detach(down, world, bed.CLUSTER, await up.get(Gateway, bed.GOING, "default"))
    left = {route.name: route for route in (await down.list(HTTPRoute, api.namespace)).items}
    if detach is gateway.by_spec:
        assert set(left) == {"no-status-yet", "on-both", "elsewhere"}
        assert [ref["name"] for ref in left["on-both"].spec["parentRefs"]] == [bed.STAYING]
    else:
        assert set(left) == {"stale-status", "on-both", "elsewhere"}
    for route in left.values():
        await down.delete(HTTPRoute, route.name, route.namespace)
