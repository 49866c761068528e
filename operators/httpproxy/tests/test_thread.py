"""The thread through every room: watch, queue, reconcile, apply, finalizer, status, on both servers."""

import asyncio
from collections import Counter

import pytest

from fairlead.api.world import World
from fairlead.client.client import Client
from fairlead.operators.httpproxy import bed
from fairlead.operators.httpproxy.kinds import HTTPRoute
from fairlead.operators.outcomes import tell
from fairlead.operators.stage import Stage
from fairlead.server.app import Server
from fairlead.testing import virtual


async def test_a_proxy_is_programmed_in_a_handful_of_writes_and_without_a_conflict(api):
    stage = Stage(api.transport, World(), api.namespace, network=False)
    await bed.play(stage, "new", 1)
    writes = Counter(
        (m.what, m.code) for m in stage.marks if m.who == "operator" and m.what not in ("GET", "reconcile")
    )
    assert writes.pop(("PATCH", 201)) == 3  # the children
    # the finalizer, and as many reports as there were stages to see: in virtual time two
    assert 2 <= writes.pop(("PATCH", 200)) <= 5
    assert not writes
    await stage.close()


def told(way, *, seed=1, scale=3):
    async def main():
        world = virtual.world(seed)
        return await tell(bed, way, scale, Server(world).transport, world)

    return virtual.run(main())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_old_way_meets_conflicts_where_ours_meets_none(seed):
    theirs, ours = told("old", seed=seed), told("new", seed=seed)
    assert theirs.conflicts > 10
    assert ours.conflicts == ours.already_exists == 0
    assert not [mark for mark in ours.marks if mark.what == "reconcile" and mark.who == "operator" and mark.code]
    mine = Counter((mark.what, mark.code) for mark in ours.marks if mark.who == "operator" and mark.what == "PATCH")
    assert mine == {("PATCH", 200): 3 * 3, ("PATCH", 201): 3 * 3}
    assert ours.done(1.0) < theirs.done(1.0)


def test_ours_is_programmed_within_a_second_and_writes_nothing_after():
    ours = told("new", scale=1)
    assert ours.done(1.0) <= 1.0
    assert not [mark for mark in ours.marks if mark.who == "operator" and mark.what == "PATCH" and mark.at > 1.0]


def test_one_seed_gives_one_outcome():
    assert told("old", scale=2) == told("old", scale=2)


async def test_sixteen_forced_applies_of_one_payload_make_one_change_and_no_conflict(api):
    client = Client(api.transport(), World())
    await bed.install(client)
    payload = HTTPRoute("one", api.namespace, spec={"parentRefs": [{"name": "one"}]})
    answers = await asyncio.gather(*(client.apply(payload, field_manager="m") for _ in range(16)))
    assert len({answer.resource_version for answer in answers}) == 1
    assert (await client.get(HTTPRoute, "one", api.namespace)).resource_version == answers[0].resource_version
