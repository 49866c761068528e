"""Tests of the demo with the old operator, for each way to write the finalizer, and with the new operator."""

import pytest

from fairlead.api.world import World
from fairlead.server.app import Server
from fairlead.testing import virtual
from fairlead.testing.demo.demo_run import VARIANTS, DemoRun
from fairlead.testing.demo.outcomes import play
from fairlead_operators.pulsar import demo


def play_demo(variant, finalizer_write="put", scale=10):
    async def main():
        world = virtual.world(1)
        run = DemoRun(Server(world).transport, world)
        await demo.play(run, variant, scale, finalizer_write)
        counts = await run.count_responses()
        conflicts = sum(n for (verb, _, code), n in counts.items() if code == 409 and verb != "POST")
        await run.close()
        return run, conflicts

    return virtual.run(main())


@pytest.mark.parametrize("variant", VARIANTS)
async def test_legacy_gets_conflicts_and_operator_does_not_on_both_servers(api, variant):
    outcome = await play(demo, variant, 5, api.transport, World(), namespace=f"{api.namespace}-demo")
    if variant == "old":
        assert outcome.conflicts > 0
    else:
        assert (outcome.conflicts, outcome.losses, outcome.stuck) == (0, [], [])


def test_operator_gets_no_conflict_and_loses_no_hook():
    run, conflicts = play_demo("new")
    assert (conflicts, run.losses, run.stuck) == (0, [], [])


@pytest.mark.parametrize("finalizer_write", ["put", "retry"])
def test_legacy_gets_conflicts_and_takes_longer(finalizer_write):
    old, conflicts = play_demo("old", finalizer_write)
    new, _ = play_demo("new")
    assert conflicts > 10
    assert max(old.done_at.values(), default=1e9) > max(new.done_at.values())


def test_legacy_merge_patch_loses_hooks():
    run, _ = play_demo("old", "merge")
    assert run.losses
