"""Tests of the three ways in which the legacy operator wrote its finalizer, and of how each one fails."""

import asyncio

import pytest
from pulsar_objects import FOREIGN
from waiting import PATIENCE
from watch_gate import WatchGate

from fairlead.api.errors import Conflict
from fairlead.api.world import World
from fairlead.client.client import Client, PatchType
from fairlead.testing.network import CountingTransport
from fairlead_operators.classic_controller import ClassicContext
from fairlead_operators.pulsar import legacy
from fairlead_operators.pulsar.kinds import FINALIZER, Connection, Tenant


async def make_stale_copy(env, *, deleting):
    """Return a context whose cache gets no more events, and its stale copy of an object."""
    transport = WatchGate(env.api.transport())
    ctx = ClassicContext(Client(transport, World()), World(), [Tenant], env.namespace)
    created = Tenant("tenant", env.namespace, spec={"name": "acme", "connectionRef": {"name": "pulsar"}})
    created["metadata"]["finalizers"] = [FINALIZER] if deleting else []
    created = await env.client.create(created)
    await env.stack.enter_async_context(ctx.cache)
    await ctx.caches[Tenant].wait_for_sync()
    transport.closed = True
    patch = {"metadata": {"finalizers": [*created.finalizers, FOREIGN]}}
    await env.client.patch(Tenant, "tenant", env.namespace, patch, type=PatchType.MERGE)
    if deleting:
        await env.delete(Tenant, "tenant")
    return ctx, created


@pytest.mark.parametrize("deleting", [False, True], ids=["adding", "removing"])
@pytest.mark.parametrize("write", ["put", "retry"])
async def test_put_of_a_stale_copy_conflicts_even_with_retries_from_the_cache(env, write, deleting):
    ctx, stale_copy = await make_stale_copy(env, deleting=deleting)
    change = legacy.remove_finalizer if deleting else legacy.add_finalizer
    with pytest.raises(Conflict):
        await legacy.FINALIZER_WRITES[write](ctx, Tenant, stale_copy, change)
    remaining = (await env.get(Tenant, "tenant")).finalizers
    assert (FINALIZER in remaining) is deleting


async def test_merge_patch_removes_a_foreign_finalizer_on_delete(env):
    ctx, stale_copy = await make_stale_copy(env, deleting=True)
    await legacy.merge(ctx, Tenant, stale_copy, legacy.remove_finalizer)
    assert await env.get(Tenant, "tenant") is None


async def test_merge_patch_removes_a_foreign_finalizer_on_add(env):
    ctx, stale_copy = await make_stale_copy(env, deleting=False)
    await legacy.merge(ctx, Tenant, stale_copy, legacy.add_finalizer)
    assert (await env.get(Tenant, "tenant")).finalizers == [FINALIZER]


@pytest.mark.parametrize("write", ["put", "retry"])
async def test_legacy_never_removes_its_finalizer_with_a_lagging_cache(env, write):
    if env.pulsar.real:
        pytest.skip("the legacy operator fails with the fake already")
    gate = WatchGate(counter := CountingTransport(env.api.transport()))
    client, reconciles = Client(gate, World(), user_agent="legacy"), asyncio.Queue()
    options = {"write": legacy.FINALIZER_WRITES[write], "namespace": env.namespace}
    options["on_reconcile"] = lambda name, failed: reconciles.put_nowait(failed)
    running = legacy.running(client, World(), env.pulsar.fake, **options)
    ctx = await env.stack.enter_async_context(running)
    await env.connect()
    await env.create(Tenant, "tenant", name=env.tenant)
    for kind, name in ((Tenant, "tenant"), (Connection, "pulsar")):
        ready_object = await env.wait_until_ready(kind, name)
        await ctx.caches[kind].wait_until(ready_object.resource_version)
    gate.closed = True
    await env.delete(Tenant, "tenant")
    patch = {"metadata": {"annotations": {"example.com/n": "1"}}}
    await env.client.patch(Tenant, "tenant", env.namespace, patch, type=PatchType.MERGE)
    await gate.release(lambda _, obj: obj.deleting and not obj.annotations)
    await env.pulsar.wait_until(f"/v2/tenants/{env.tenant}", lambda stored_tenant: stored_tenant is None)
    counter.counts.clear()
    async with asyncio.timeout(PATIENCE):
        while counter.counts["PUT", 409] < 5:
            await reconciles.get()
    assert FINALIZER in (await env.get(Tenant, "tenant")).finalizers  # deleted in Pulsar, but still Terminating
