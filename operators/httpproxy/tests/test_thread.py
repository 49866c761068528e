"""The thread through every room: watch, queue, reconcile, apply, finalizer, status, on both servers."""

import asyncio

import pytest

from fairlead.api.world import World
from fairlead.client.client import Client
from fairlead.operators.httpproxy import bed
from fairlead.operators.httpproxy.kinds import HTTPRoute
from fairlead.server.app import Server
from fairlead.testing import virtual


async def test_a_proxy_is_programmed_in_a_handful_of_writes_and_without_a_conflict(api):
    outcome = await bed.race(api.transport, World(), bed.ours, proxies=1, namespace=api.namespace, idle=0)
    writes = {key: count for key, count in outcome.requests.items() if key[0] != "GET"}
    assert writes.pop(("PATCH", 201)) == 3  # the children
    # the finalizer, and as many reports as there were stages to see: in virtual time two
    assert 2 <= writes.pop(("PATCH", 200)) <= 5
    assert not writes
    assert outcome.conflicts == 0


def race(way, *, seed=1, **options):
    async def main():
        world = virtual.world(seed)
        return await bed.race(Server(world).transport, world, way, **options)

    return virtual.run(main())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_old_way_meets_conflicts_where_ours_meets_none(seed):
    theirs, ours = race(bed.theirs, seed=seed, proxies=3), race(bed.ours, seed=seed, proxies=3)
    assert theirs.conflicts > 10
    assert ours.conflicts == 0
    assert {key: count for key, count in ours.requests.items() if key[0] != "GET"} == {
        ("PATCH", 200): 3 * 3,
        ("PATCH", 201): 3 * 3,
    }
    assert ours.total < theirs.total / 2
    assert ours.programmed[-1] < theirs.programmed[-1]
    assert (ours.idle_writes, theirs.idle_writes > 0) == (0, True)


def test_one_seed_gives_one_outcome():
    assert race(bed.theirs, proxies=2) == race(bed.theirs, proxies=2)


async def test_sixteen_forced_applies_of_one_payload_make_one_change_and_no_conflict(api):
    client = Client(api.transport(), World())
    await bed.install(client)
    payload = HTTPRoute("one", api.namespace, spec={"parentRefs": [{"name": "one"}]})
    answers = await asyncio.gather(*(client.apply(payload, field_manager="m") for _ in range(16)))
    assert len({answer.resource_version for answer in answers}) == 1
    assert (await client.get(HTTPRoute, "one", api.namespace)).resource_version == answers[0].resource_version
