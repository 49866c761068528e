"""A rolling update: two releases of one operator, which own different fields of one child, run at the same time."""

import asyncio
import itertools
import json
from contextlib import AsyncExitStack

import pytest

import fairlead as fl
from fairlead.client.client import PatchType

Thing = fl.kind("test.example.com/v1", "Thing")
OLD, NEW = {"text": "same", "dropped": "x"}, {"text": "same", "added": "y"}


def release(data):
    op = fl.Operator("tester")

    @op.reconcile(Thing, owns=[fl.ConfigMap])
    async def reconcile(obj, ctx):
        await ctx.apply(fl.ConfigMap(obj.name, data=data))

    return op


@pytest.fixture
def recording(counting):
    class Recording(counting):
        """Records the child after each write of the operators."""

        def __init__(self, inner, enough=1_000):
            super().__init__(inner)
            self.states, self.enough, self.seen_enough = [], enough, asyncio.Event()

        async def request(self, request):
            answer = await super().request(request)
            if request.method == "PATCH" and request.path.endswith("/configmaps/x"):
                self.states.append(json.loads(answer.body)["data"])
                if len(self.states) >= self.enough:
                    self.seen_enough.set()
            return answer

    return Recording


def test_rolling_update_with_a_lease_changes_the_child_once(virtually, recording):
    async def test(bed):
        await bed.make("x")
        wire = recording(bed.server.transport())
        async with AsyncExitStack() as new, AsyncExitStack() as old:
            await old.enter_async_context(release(OLD).running(wire, bed.world, lease_namespace="default"))
            await asyncio.sleep(30)
            await new.enter_async_context(release(NEW).running(wire, bed.world, lease_namespace="default"))
            theirs = {"data": {"theirs": "z"}}
            await bed.client.patch(fl.ConfigMap, "x", "default", theirs, type=PatchType.MERGE)
            for number in range(5):  # Both releases see these changes.
                await bed.edit("x", spec={"round": number})
                await asyncio.sleep(10)
            assert wire.states == [OLD]
            await old.aclose()
            await asyncio.sleep(30)
            assert wire.states == [OLD, NEW | {"theirs": "z"}]

    virtually(test)


def test_rolling_update_without_a_lease_flaps_fields(virtually, recording):
    """See docs/explanation/leader-election.md: both releases are one field manager, so the last apply wins."""

    async def test(bed):
        await bed.make("x")
        wire = recording(bed.server.transport(), enough=40)
        async with release(OLD).running(wire, bed.world), release(NEW).running(wire, bed.world):
            await wire.seen_enough.wait()
        assert {frozenset(state.items()) for state in wire.states} == {frozenset(OLD.items()), frozenset(NEW.items())}
        assert sum(one != other for one, other in itertools.pairwise(wire.states)) > 30

    virtually(test)
