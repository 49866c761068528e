"""The story of the incident in virtual time, with the old operator in each of its forms, and with ours."""

import pytest

from fairlead.api.world import World
from fairlead.server.app import Server
from fairlead.testing import virtual
from fairlead.testing.demo.outcomes import tell
from fairlead.testing.demo.stage import WAYS, Stage
from fairlead_operators.pulsar import demo


def played(way, form="put", scale=10):
    async def main():
        world = virtual.world(1)
        stage = Stage(Server(world).transport, world)
        await demo.play(stage, way, scale, form)
        counts = await stage.counted()
        conflicts = sum(n for (verb, _, code), n in counts.items() if code == 409 and verb != "POST")
        await stage.close()
        return stage, conflicts

    return virtual.run(main())


@pytest.mark.parametrize("way", WAYS)
async def test_on_either_server_ours_meets_no_conflict_where_the_old_way_does(api, way):
    told = await tell(demo, way, 5, api.transport, World(), namespace=f"{api.namespace}-story")
    if way == "old":
        assert told.conflicts > 0
    else:
        assert (told.conflicts, told.losses, told.stuck) == (0, [], [])


def test_ours_meets_no_conflict_loses_no_hook_and_leaves_nothing_behind():
    stage, conflicts = played("new")
    assert (conflicts, stage.losses, stage.stuck) == (0, [], [])


@pytest.mark.parametrize("form", ["put", "retry"])
def test_the_old_way_meets_conflicts_and_takes_longer(form):
    old, conflicts = played("old", form)
    new, _ = played("new")
    assert conflicts > 10
    assert max(old.moments.values(), default=1e9) > max(new.moments.values())


def test_the_merge_patch_loses_hooks():
    stage, _ = played("old", "merge")
    assert stage.losses
