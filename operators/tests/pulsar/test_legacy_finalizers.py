"""The three forms in which the finalizer was once written, each failing at what it fails at, beside ours."""

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


async def stale_copies(env, *, deleting):
    """A ctx whose cache never moves on, the copy in it, and an object that has moved on."""
    transport = WatchGate(env.api.transport())
    ctx = ClassicContext(Client(transport, World()), World(), [Tenant], env.namespace)
    made = Tenant("tenant", env.namespace, spec={"name": "acme", "connectionRef": {"name": "pulsar"}})
    made["metadata"]["finalizers"] = [FINALIZER] if deleting else []
    made = await env.client.create(made)
    await env.stack.enter_async_context(ctx.cache)
    await ctx.caches[Tenant].wait_for_sync()
    transport.closed = True
    patch = {"metadata": {"finalizers": [*made.finalizers, FOREIGN]}}
    await env.client.patch(Tenant, "tenant", env.namespace, patch, type=PatchType.MERGE)
    if deleting:
        await env.delete(Tenant, "tenant")
    return ctx, made


@pytest.mark.parametrize("deleting", [False, True], ids=["adding", "removing"])
@pytest.mark.parametrize("form", ["put", "retry"])
async def test_put_of_a_stale_copy_conflicts_even_with_retries_from_the_cache(env, form, deleting):
    ctx, stale = await stale_copies(env, deleting=deleting)
    change = legacy.remove_finalizer if deleting else legacy.add_finalizer
    with pytest.raises(Conflict):
        await legacy.FINALIZER_WRITES[form](ctx, Tenant, stale, change)
    left = (await env.get(Tenant, "tenant")).finalizers
    assert (FINALIZER in left) is deleting


async def test_merge_patch_removes_a_foreign_finalizer_on_delete(env):
    ctx, stale = await stale_copies(env, deleting=True)
    await legacy.merge(ctx, Tenant, stale, legacy.remove_finalizer)
    assert await env.get(Tenant, "tenant") is None


async def test_merge_patch_removes_a_foreign_finalizer_on_add(env):
    ctx, stale = await stale_copies(env, deleting=False)
    await legacy.merge(ctx, Tenant, stale, legacy.add_finalizer)
    assert (await env.get(Tenant, "tenant")).finalizers == [FINALIZER]


@pytest.mark.parametrize("form", ["put", "retry"])
async def test_legacy_never_removes_its_finalizer_with_a_lagging_cache(env, form):
    if env.pulsar.real:
        pytest.skip("the old way needs no second Pulsar to fail")
    gate = WatchGate(counted := CountingTransport(env.api.transport()))
    client, passes = Client(gate, World(), user_agent="legacy"), asyncio.Queue()
    options = {"write": legacy.FINALIZER_WRITES[form], "namespace": env.namespace}
    options["on_reconcile"] = lambda name, failed: passes.put_nowait(failed)
    running = legacy.running(client, World(), env.pulsar.fake, **options)
    ctx = await env.stack.enter_async_context(running)
    await env.connect()
    await env.create(Tenant, "tenant", name=env.tenant)
    for kind, name in ((Tenant, "tenant"), (Connection, "pulsar")):
        ready = await env.ready(kind, name)
        await ctx.caches[kind].wait_until(ready.resource_version)
    gate.closed = True
    await env.delete(Tenant, "tenant")
    patch = {"metadata": {"annotations": {"example.com/n": "1"}}}
    await env.client.patch(Tenant, "tenant", env.namespace, patch, type=PatchType.MERGE)
    await gate.release(lambda _, obj: obj.deleting and not obj.annotations)
    await env.pulsar.until(f"/v2/tenants/{env.tenant}", lambda found: found is None)
    counted.counts.clear()
    async with asyncio.timeout(PATIENCE):
        while counted.counts["PUT", 409] < 5:
            await passes.get()
    assert FINALIZER in (await env.get(Tenant, "tenant")).finalizers  # gone from Pulsar, and still Terminating
