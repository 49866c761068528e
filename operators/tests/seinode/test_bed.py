"""The incident itself, in virtual time: what the old way loses and ours keeps."""

import pytest

from fairlead.server.app import Server
from fairlead.testing import virtual
from fairlead.testing.demo.stage import Stage
from fairlead_operators.seinode import demo


def told(way, seed=1, scale=5):
    async def main():
        world = virtual.world(seed)
        stage = Stage(Server(world, controllers=["gc"]).transport, world)
        await demo.play(stage, way, scale)
        return stage, await stage.counted()

    return virtual.run(main())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_old_way_loses_plans_and_orphans_their_jobs(seed):
    stage, _ = told("old", seed)
    assert any(loss.startswith("plan") for loss in stage.losses)
    assert any(loss.startswith("Job") for loss in stage.losses)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ours_loses_nothing_and_meets_no_conflict(seed):
    stage, counted = told("new", seed)
    assert (stage.losses, stage.stuck) == ([], [])
    assert not [key for key in counted if key[2] == 409]
    assert not [mark for mark in stage.marks if mark.what == "reconcile" and mark.code]  # no pass failed


def test_one_seed_gives_one_outcome():
    assert told("old", scale=2)[1] == told("old", scale=2)[1]
