"""The incident itself, in virtual time: what the old variant loses and ours keeps."""

import pytest

from fairlead.server.app import Server
from fairlead.testing import virtual
from fairlead.testing.demo.demo_run import DemoRun
from fairlead_operators.seinode import demo


def told(variant, seed=1, scale=5):
    async def main():
        world = virtual.world(seed)
        run = DemoRun(Server(world, controllers=["gc"]).transport, world)
        await demo.play(run, variant, scale)
        return run, await run.count_responses()

    return virtual.run(main())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_legacy_loses_plans_and_orphans_their_jobs(seed):
    run, _ = told("old", seed)
    assert any(loss.startswith("plan") for loss in run.losses)
    assert any(loss.startswith("Job") for loss in run.losses)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_operator_loses_nothing_and_gets_no_conflict(seed):
    run, counted = told("new", seed)
    assert (run.losses, run.stuck) == ([], [])
    assert not [key for key in counted if key[2] == 409]
    assert not [mark for mark in run.marks if mark.action == "reconcile" and mark.code]  # no pass failed


def test_same_seed_gives_the_same_outcome():
    assert told("old", scale=2)[1] == told("old", scale=2)[1]
