"""Tests of a rolling update: two releases of one operator run at the same time and own different fields."""

import asyncio
import itertools
import json
from contextlib import AsyncExitStack

import pytest

import fairlead as fl
from fairlead.client.client import PatchType

Thing = fl.kind("test.example.com/v1", "Thing")
OLD_DATA, NEW_DATA = {"text": "same", "dropped": "x"}, {"text": "same", "added": "y"}


def operator_applying(data):
    op = fl.Operator("tester")

    @op.reconcile(Thing, owns=[fl.ConfigMap])
    async def reconcile(obj, ctx):
        await ctx.apply(fl.ConfigMap(obj.name, data=data))

    return op


@pytest.fixture
def child_recorder(recording_transport):
    class ChildRecorder(recording_transport):
        """A transport that records the data of the child after every write of the operators."""

        def __init__(self, inner, expected_writes=1_000):
            super().__init__(inner)
            self.states, self.expected_writes, self.has_expected_writes = [], expected_writes, asyncio.Event()

        async def request(self, request):
            response = await super().request(request)
            if request.method == "PATCH" and request.path.endswith("/configmaps/x"):
                self.states.append(json.loads(response.body)["data"])
                if len(self.states) >= self.expected_writes:
                    self.has_expected_writes.set()
            return response

    return ChildRecorder


def test_rolling_update_with_a_lease_changes_the_child_once(run_in_virtual_time, child_recorder):
    async def test(cluster):
        await cluster.create("x")
        child_transport = child_recorder(cluster.server.transport())
        async with AsyncExitStack() as new_run, AsyncExitStack() as old_run:
            await old_run.enter_async_context(
                operator_applying(OLD_DATA).running(child_transport, cluster.world, lease_namespace="default")
            )
            await asyncio.sleep(30)
            await new_run.enter_async_context(
                operator_applying(NEW_DATA).running(child_transport, cluster.world, lease_namespace="default")
            )
            foreign_patch = {"data": {"theirs": "z"}}
            await cluster.client.patch(fl.ConfigMap, "x", "default", foreign_patch, type=PatchType.MERGE)
            for number in range(5):  # Both releases see these changes.
                await cluster.patch_thing("x", spec={"round": number})
                await asyncio.sleep(10)
            assert child_transport.states == [OLD_DATA]
            await old_run.aclose()
            await asyncio.sleep(30)
            assert child_transport.states == [OLD_DATA, NEW_DATA | {"theirs": "z"}]

    run_in_virtual_time(test)


def test_rolling_update_without_a_lease_flaps_fields(run_in_virtual_time, child_recorder):
    """Tests the documented limitation: both releases have the same field manager, so the last apply wins.

    See docs/explanation/leader-election.md.
    """

    async def test(cluster):
        await cluster.create("x")
        child_transport = child_recorder(cluster.server.transport(), expected_writes=40)
        async with (
            operator_applying(OLD_DATA).running(child_transport, cluster.world),
            operator_applying(NEW_DATA).running(child_transport, cluster.world),
        ):
            await child_transport.has_expected_writes.wait()
        assert {frozenset(state.items()) for state in child_transport.states} == {
            frozenset(OLD_DATA.items()),
            frozenset(NEW_DATA.items()),
        }
        assert sum(earlier != later for earlier, later in itertools.pairwise(child_transport.states)) > 30

    run_in_virtual_time(test)
