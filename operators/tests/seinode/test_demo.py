"""Tests of the demo: the old operator loses plans, the new operator does not."""

import pytest

from fairlead.server.app import Server
from fairlead.testing import virtual
from fairlead.testing.demo.demo_run import DemoRun
from fairlead_operators.seinode import demo


def play_demo(variant, seed=1, scale=5):
    async def main():
        world = virtual.world(seed)
        run = DemoRun(Server(world, controllers=["gc"]).transport, world)
        await demo.play(run, variant, scale)
        return run, await run.count_responses()

    return virtual.run(main())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_legacy_loses_plans_and_orphans_their_jobs(seed):
    run, _ = play_demo("old", seed)
    assert any(loss.startswith("plan") for loss in run.losses)
    assert any(loss.startswith("Job") for loss in run.losses)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_operator_loses_nothing_and_gets_no_conflict(seed):
    run, responses = play_demo("new", seed)
    assert (run.losses, run.stuck) == ([], [])
    assert not [key for key in responses if key[2] == 409]
    assert not [
        record for record in run.records if record.verb == "reconcile" and record.outcome == "error"
    ]  # no reconcile failed


def test_same_seed_gives_the_same_outcome():
    assert play_demo("old", scale=2)[1] == play_demo("old", scale=2)[1]
