"""Tests that a change cuts the wait after an error, and that nothing else does."""

import asyncio

import pytest

import fairlead as fl
from fairlead.client.client import PatchType

Thing = fl.kind("test.example.com/v1", "Thing")
Other = fl.kind("test.example.com/v1", "Other")


def failing_operator(passes, *, before=None, **options):
    """Return an operator whose passes all fail. `passes` gets the time and the spec of each."""
    op = fl.Operator("tester")

    @op.reconcile(Thing, backoff_base=20, **options)
    async def fail(obj, ctx):
        passes.append((asyncio.get_running_loop().time(), obj.spec))
        if before is not None:
            await before(obj, ctx)
        raise ValueError("no such colour")

    return op


EDITS = {
    "spec": {"spec": {"colour": "red"}},
    "label": {"metadata": {"labels": {"colour": "red"}}},
    "annotation": {"metadata": {"annotations": {"colour": "red"}}},
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_of_the_object_cuts_the_wait(run_in_virtual_time, edit):
    async def test(cluster):
        passes = []
        await cluster.create("t")
        async with cluster.running(failing_operator(passes)):
            await asyncio.sleep(5)
            assert len(passes) == 1
            await cluster.patch_thing("t", **EDITS[edit])
            await asyncio.sleep(0.1)
            assert len(passes) == 2
            await asyncio.sleep(14)
            assert len(passes) == 2  # The error count was kept: the second wait is no shorter than the first.

    run_in_virtual_time(test)


def test_a_deletion_cuts_the_wait_for_the_clean_up(run_in_virtual_time):
    async def test(cluster):
        passes, cleaned = [], []
        op = failing_operator(passes)

        @op.cleanup(Thing)
        async def clean(obj, ctx):
            cleaned.append(asyncio.get_running_loop().time())

        await cluster.create("t")
        async with cluster.running(op):
            await asyncio.sleep(5)
            await cluster.client.delete(Thing, "t", "default")
            await asyncio.sleep(0.1)
            assert cleaned

    run_in_virtual_time(test)


def test_a_status_of_someone_else_does_not_cut_the_wait(run_in_virtual_time):
    async def test(cluster):
        passes = []
        await cluster.create("t")
        async with cluster.running(failing_operator(passes, ready=None)):
            await asyncio.sleep(5)
            status = {"status": {"phase": "Waiting"}}
            await cluster.client.patch(Thing, "t", "default", status, type=PatchType.MERGE, subresource="status")
            await asyncio.sleep(5)
            assert len(passes) == 1

    run_in_virtual_time(test)


def test_changes_of_children_and_watched_objects_cut_the_wait(run_in_virtual_time):
    async def test(cluster):
        passes = []

        async def apply(obj, ctx):
            await ctx.apply(fl.ConfigMap("child", data={"a": "b"}))

        op = failing_operator(passes, before=apply, owns=[fl.ConfigMap], watches={Other: lambda other: ["t"]})
        await cluster.create("t")
        async with cluster.running(op):
            await asyncio.sleep(5)
            assert len(passes) == 1  # The event of our own apply did not cut the wait.
            change = {"metadata": {"labels": {"by": "hand"}}}
            await cluster.client.patch(fl.ConfigMap, "child", "default", change, type=PatchType.MERGE)
            await asyncio.sleep(1.5)
            assert len(passes) == 2
            await cluster.create("o", kind=Other)
            await asyncio.sleep(1.5)
            assert len(passes) == 3

    run_in_virtual_time(test)


def test_an_edit_during_the_failing_pass_is_looked_at_after_it(run_in_virtual_time):
    async def test(cluster):
        passes = []

        async def work(obj, ctx):
            await asyncio.sleep(1)

        await cluster.create("t")
        async with cluster.running(failing_operator(passes, before=work)):
            await asyncio.sleep(0.5)
            await cluster.patch_thing("t", spec={"colour": "red"})
            await asyncio.sleep(1)
            assert [spec for _, spec in passes] == [{}, {"colour": "red"}]

    run_in_virtual_time(test)


class LateAnswers:
    """A transport whose answers to writes arrive long after the watch has reported them."""

    def __init__(self, inner, delay):
        self._inner, self._delay = inner, delay

    async def request(self, request):
        response = await self._inner.request(request)
        if request.method != "GET":
            await asyncio.sleep(self._delay)
        return response

    async def stream(self, request):
        return await self._inner.stream(request)


@pytest.mark.parametrize("delay", [0.0, 3.0])
def test_own_writes_never_cut_the_wait_even_if_their_events_come_first(run_in_virtual_time, delay):
    async def test(cluster):
        passes, count = [], 0

        async def annotate(obj, ctx):
            nonlocal count
            annotations = {"metadata": {"annotations": {"count": str(count)}}}
            await ctx.unguarded.patch(Thing, obj.name, obj.namespace, annotations, type=PatchType.MERGE)
            count += 1

        op = failing_operator(passes, before=annotate, timeout=100)

        @op.timer(2)
        async def annotate_again(view):  # A write of this process outside of the pass.
            await annotate(view.get(Thing, "t", "default"), view)

        await cluster.create("t")
        transport = LateAnswers(cluster.transport, delay)
        async with op.running(transport, cluster.world):
            await asyncio.sleep(19)
            assert count >= 3
            assert len(passes) == 1

    run_in_virtual_time(test)


def test_100_edits_a_second_add_at_most_one_pass_a_second_and_three(run_in_virtual_time):
    async def test(cluster):
        edited, left_alone = [], []
        op = fl.Operator("tester")

        @op.reconcile(Thing)
        async def fail(obj, ctx):
            (edited if obj.name == "edited" else left_alone).append(asyncio.get_running_loop().time())
            raise ValueError("no such colour")

        await cluster.create("alone")
        await cluster.create("edited")
        async with cluster.running(op):
            for number in range(6_000):
                await cluster.patch_thing("edited", spec={"number": number})
                await asyncio.sleep(0.01)
        assert len(left_alone) < 20
        assert 50 <= len(edited) <= len(left_alone) + 60 + 3

    run_in_virtual_time(test)
