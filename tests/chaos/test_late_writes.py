"""Tests of a leader's write that arrives after its lease has ended: the server rejects some kinds of writes."""

import asyncio
import contextlib
from dataclasses import dataclass

import pytest

import fairlead as fl
from fairlead.api.errors import NotFound
from fairlead.client.client import Client, PatchType
from fairlead.runtime.definitions import install_missing
from fairlead.runtime.leases import LeaseLost
from fairlead.server.app import Server
from fairlead.server.faults import Fault, Plan
from fairlead.testing import virtual

Thing = fl.kind("chaos.example.com/v1", "Thing")


class TimingTransport:
    """A transport that records when each write was sent, and when its sender got the response or gave up."""

    def __init__(self, inner, clock):
        self._inner, self._clock, self.writes = inner, clock, []

    async def request(self, request):
        sent_at = self._clock.monotonic()
        try:
            return await self._inner.request(request)
        finally:
            if request.method != "GET":
                self.writes.append((request.path.rsplit("/", 1)[-1], sent_at, self._clock.monotonic()))

    async def stream(self, request):
        return await self._inner.stream(request)

    async def close(self): ...


def test_requests_held_past_the_lease_stay_within_the_stated_bound():
    """Tests a renewal and a status write that take a minute, while a successor becomes the leader."""

    def operator(replica_name):
        op = fl.Operator("tester")

        @op.reconcile(Thing)
        async def reconcile(obj, ctx):
            ctx.status(by=replica_name, turn=obj.spec["turn"])

        return op

    async def main():
        world = virtual.world()
        server = Server(world)
        client = Client(server.transport(), world, user_agent="others")
        await install_missing(client, [Thing])
        await client.create(Thing("thing", "default", spec={"turn": 0}))
        first, second = (TimingTransport(server.transport(), world.clock) for _ in range(2))
        leading = asyncio.create_task(operator("a").run(first, world, lease_namespace="default"))
        await asyncio.sleep(5)
        async with operator("b").running(second, world, lease_namespace="default") as standby:
            await asyncio.sleep(5)
            held_fault = server.inject(
                Plan([Fault(hold=60, verb=("update", "patch"), kind=("Lease", "Thing"), user_agent="tester*")])
            )
            renewed = max(sent_at for name, sent_at, _ in first.writes if name == "tester")
            await client.patch(Thing, "thing", "default", {"spec": {"turn": 1}}, type=PatchType.MERGE)
            with pytest.raises(LeaseLost):
                await leading
            server.inject(None)
            lost = world.clock.monotonic()
            assert lost <= renewed + 10 + 0.5
            assert all(known_at <= renewed + 10 + 0.01 for _, _, known_at in first.writes), (
                "nothing is waited for longer"
            )
            assert any(name == "status" and sent_at > renewed for name, sent_at, _ in first.writes), (
                "one was on its way"
            )
            while standby.lease.seconds_left() <= 0:  # noqa: ASYNC110 - the test measures the moment
                await asyncio.sleep(0.05)
            assert world.clock.monotonic() >= renewed + 15
            await standby.wait_until_idle()
            before = await client.get(Thing, "thing", "default")
            assert before.status["by"] == "b"
            await asyncio.sleep(120)  # The held requests have arrived by now.
            after = await client.get(Thing, "thing", "default")
            assert after.status == before.status
            assert after.resource_version == before.resource_version, "it was refused, not written and put right"
            lease = await client.get(fl.Lease, "tester", "default")
            assert lease.spec["holderIdentity"] == standby.lease.identity
            assert held_fault.counts["hold"] >= 2

    virtual.run(main())


class HoldingTransport:
    """A transport that holds the first matching write until `land`, which returns the status of the response."""

    def __init__(self, inner, fits):
        self._inner, self._fits = inner, fits
        self.sent, self._release, self.answer = asyncio.Event(), asyncio.Event(), None

    async def request(self, request):
        if self.sent.is_set() or not self._fits(request.method, request.path):
            return await self._inner.request(request)
        self.sent.set()
        self.answer = asyncio.create_task(self._later(request))
        return await asyncio.shield(self.answer)

    async def _later(self, request):
        await self._release.wait()
        return await self._inner.request(request)

    async def land(self):
        self._release.set()
        return (await self.answer).status

    async def stream(self, request):
        return await self._inner.stream(request)

    async def close(self): ...


@dataclass
class LateWriteCase:
    """A handler, the write to hold, the action of the successor meanwhile, and the expected status code."""

    work: object
    fits: object
    meanwhile: object
    expected_status: int | None
    before: object = None
    cleanup: bool = False


def is_patch_of(resource):
    return lambda method, path: method == "PATCH" and resource in path


def deletes(method, path):
    return method == "DELETE" and "configmaps" in path


async def _apply(obj, ctx):
    await ctx.apply(fl.ConfigMap(obj.name, data={"by": "the old leader"}))


async def _nothing(obj, ctx): ...


async def _child_of_ours(client, namespace_path):
    """Create the child as an earlier pass of the same operator would have created it."""
    thing = await client.get(Thing, "thing", namespace_path)
    owner = {"apiVersion": thing.api_version, "kind": thing.kind, "name": thing.name, "uid": thing.uid}
    child = fl.ConfigMap("thing", namespace_path, data={"by": "an earlier pass"})
    child["metadata"]["ownerReferences"] = [{**owner, "controller": True, "blockOwnerDeletion": True}]
    return await client.apply(child, field_manager="tester/thing")


async def _recreate_child(client, namespace_path):
    await client.delete(fl.ConfigMap, "thing", namespace_path)
    await _child_of_ours(client, namespace_path)


async def _recreate_thing(client, namespace_path):
    with contextlib.suppress(NotFound):
        await client.patch(Thing, "thing", namespace_path, {"metadata": {"finalizers": None}}, type=PatchType.MERGE)
        await client.delete(Thing, "thing", namespace_path)
    await client.create(Thing("thing", namespace_path, spec={"successor": True}))


async def _child_edited(client, namespace_path):
    await client.apply(
        fl.ConfigMap("thing", namespace_path, data={"by": "the successor"}), field_manager="tester/thing", force=True
    )


def _merge(patch, subresource=None):
    async def meanwhile(client, namespace_path):
        await client.patch(Thing, "thing", namespace_path, patch, type=PatchType.MERGE, subresource=subresource)

    return meanwhile


async def _decide(obj, ctx):
    def plan(draft):
        if not draft.get("spec", {}).get("plan"):
            draft["spec"]["plan"] = "the old leader's"

    await ctx.decide(plan)


async def _default(obj, ctx):
    await ctx.default(spec={"replicas": 1})


async def _status(obj, ctx):
    ctx.status(by="the old leader")


async def _delete(obj, ctx):
    await ctx.delete(ctx.get(fl.ConfigMap, "thing"))


async def _delete_unchanged(obj, ctx):
    await ctx.delete(ctx.get(fl.ConfigMap, "thing"), unchanged=True)


async def _prune(obj, ctx):
    await ctx.prune(fl.ConfigMap)


async def _deleting(client, namespace_path):
    await client.delete(Thing, "thing", namespace_path)


THING, STATUS, MAP = is_patch_of("/things/thing"), is_patch_of("/status"), is_patch_of("configmaps")
PLANNED = _merge({"spec": {"plan": "the successor's"}})
CASES = {
    "decide": LateWriteCase(_decide, THING, PLANNED, 422),
    "default": LateWriteCase(_default, THING, _merge({"spec": {"replicas": 3}}), 422),
    "status": LateWriteCase(_status, STATUS, _merge({"status": {"by": "the successor"}}, "status"), 422),
    "finalizer added": LateWriteCase(
        _nothing, THING, _merge({"metadata": {"finalizers": ["a.b/c"]}}), 422, cleanup=True
    ),
    "finalizer of a successor": LateWriteCase(_nothing, THING, _recreate_thing, 422, cleanup=True),
    "first apply": LateWriteCase(_apply, MAP, _child_of_ours, 409),
    "apply of a child that was recreated": LateWriteCase(_apply, MAP, _recreate_child, 422, before=_child_of_ours),
    "delete of a child that was recreated": LateWriteCase(
        _delete, deletes, _recreate_child, 409, before=_child_of_ours
    ),
    "delete that depends on content": LateWriteCase(
        _delete_unchanged, deletes, _child_edited, 409, before=_child_of_ours
    ),
    "prune": LateWriteCase(_prune, deletes, _child_edited, 409, before=_child_of_ours),
    # Accepted, as documented.
    "apply of a child that still exists": LateWriteCase(_apply, MAP, _child_edited, None, before=_child_of_ours),
    "delete of a child that still exists": LateWriteCase(_delete, deletes, _child_edited, None, before=_child_of_ours),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_late_write_is_rejected_by_its_guard(api, case):
    world = fl.World()
    client = Client(api.transport(), world)
    await install_missing(client, [Thing])
    await client.create(Thing("thing", api.namespace, spec={"turn": 1}))
    if case.before:
        await case.before(client, api.namespace)
    op = fl.Operator("tester")
    op.reconcile(Thing, owns=[fl.ConfigMap])(case.work)
    if case.cleanup:
        op.cleanup(Thing)(_nothing)
    holding_transport = HoldingTransport(api.transport(), case.fits)
    async with asyncio.timeout(60):
        with contextlib.suppress(LeaseLost):
            async with op.running(holding_transport, world, namespaces=[api.namespace]):
                await holding_transport.sent.wait()
                raise LeaseLost("nothing more is sent, and this one is")
        await case.meanwhile(client, api.namespace)
        before = [await client.list(kind, api.namespace) for kind in (Thing, fl.ConfigMap)]
        landed = await holding_transport.land()
        after = [await client.list(kind, api.namespace) for kind in (Thing, fl.ConfigMap)]
    if case.expected_status is None:
        assert landed in (200, 201)
    else:
        assert landed == case.expected_status
        assert [listed.items for listed in after] == [listed.items for listed in before]
