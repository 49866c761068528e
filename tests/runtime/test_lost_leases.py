"""Tests of a leader whose lease somebody else deletes or edits: it stops writing at once, on both servers."""

import asyncio
import contextlib

import pytest

import fairlead as fl
from fairlead.api.errors import NotFound
from fairlead.api.world import World
from fairlead.client.client import Client, PatchType
from fairlead.runtime.leases import LeaseLost


class WriteRecorder:
    """A transport that records the writes that were sent, except those of the lease and of Events."""

    def __init__(self, inner):
        self._inner = inner
        self.writes = []

    async def request(self, request):
        if request.method != "GET" and "/leases" not in request.path and "/events" not in request.path:
            check = request.before_send
            assert check is not None, "a write without a check of the lease"
            check()
            self.writes.append(request.path)
        return await self._inner.request(request)

    async def stream(self, request):
        return await self._inner.stream(request)

    async def close(self): ...


def writing_operator(name, wrote):
    """Return an operator that writes its object in every pass, without a pause, and sets `wrote` after ten writes."""
    op = fl.Operator(name)
    count = 0

    @op.reconcile(fl.ConfigMap)
    async def write_forever(obj, ctx):
        nonlocal count
        while True:
            count += 1
            await ctx.unguarded.patch(
                fl.ConfigMap, obj.name, obj.namespace, {"data": {"n": str(count)}}, type=PatchType.MERGE
            )
            if count >= 10:
                wrote.set()

    return op


async def take(client, namespace):
    patch = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 3600}}
    await client.patch(fl.Lease, "writer", namespace, patch, type=PatchType.MERGE)


async def delete(client, namespace):
    await client.delete(fl.Lease, "writer", namespace)


async def delete_and_take(client, namespace):
    await client.delete(fl.Lease, "writer", namespace)
    await client.create(fl.Lease("writer", namespace, spec={"holderIdentity": "thief", "leaseDurationSeconds": 3600}))


# A renewal every two seconds notices the change after some hundred writes. The watch needs 0 or 1; 50 allow for a slow
# machine.
@pytest.mark.parametrize("change", [take, delete_and_take])
async def test_old_leader_stops_writing_when_its_lease_is_taken(api, change):
    client, namespace, wrote = Client(api.transport(), World()), api.namespace, asyncio.Event()
    await client.create(fl.ConfigMap("written", namespace))
    transport = WriteRecorder(api.transport())
    op = writing_operator("writer", wrote)
    async with op.running(transport, namespaces=[namespace], lease_namespace=namespace) as running:
        await wrote.wait()
        before = len(transport.writes)
        await change(client, namespace)
        at_change = len(transport.writes)
        while running.lease.seconds_left() > 0:  # noqa: ASYNC110 - the watch sets no event
            await asyncio.sleep(0)
        after = len(transport.writes)
        with pytest.raises(LeaseLost):
            await running.wait()
        assert len(transport.writes) == after, "no write after the leader noticed"
        assert after - at_change <= 50, f"{after - at_change} writes after the change, {before} before"
    assert (await client.get(fl.Lease, "writer", namespace)).spec["holderIdentity"] == "thief"


async def test_leader_whose_lease_is_deleted_creates_it_before_it_writes_again(api):
    client, namespace, wrote = Client(api.transport(), World()), api.namespace, asyncio.Event()
    await client.create(fl.ConfigMap("written", namespace))
    transport = WriteRecorder(api.transport())
    op = writing_operator("writer", wrote)
    async with op.running(transport, namespaces=[namespace], lease_namespace=namespace) as running:
        await wrote.wait()
        old = await client.get(fl.Lease, "writer", namespace)
        await delete(client, namespace)
        new = old
        while new.uid == old.uid:
            with contextlib.suppress(NotFound):
                new = await client.get(fl.Lease, "writer", namespace)
        assert new.spec["holderIdentity"] == running.lease.identity
