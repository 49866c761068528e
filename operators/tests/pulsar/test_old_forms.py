"""The three forms in which the finalizer was once written, each failing at what it fails at, beside ours."""

import asyncio

import pytest
from pulsar_gate import Gate
from pulsar_scene import FOREIGN
from waiting import PATIENCE

from fairlead.api.errors import Conflict
from fairlead.api.world import World
from fairlead.client.client import Client, PatchType
from fairlead.testing.network import CountingTransport
from fairlead_operators.old_way import View
from fairlead_operators.pulsar import legacy
from fairlead_operators.pulsar.resources import FINALIZER, Connection, Tenant


async def stale_copies(idle, *, deleting):
    """A view whose cache never moves on, the copy in it, and an object that has moved on."""
    transport = Gate(idle.api.transport())
    view = View(Client(transport, World()), World(), [Tenant], idle.namespace)
    made = Tenant("tenant", idle.namespace, spec={"name": "acme", "connectionRef": {"name": "pulsar"}})
    made["metadata"]["finalizers"] = [FINALIZER] if deleting else []
    made = await idle.client.create(made)
    await idle.stack.enter_async_context(view.cache)
    await view.views[Tenant].synced()
    transport.closed = True
    patch = {"metadata": {"finalizers": [*made.finalizers, FOREIGN]}}
    await idle.client.patch(Tenant, "tenant", idle.namespace, patch, type=PatchType.MERGE)
    if deleting:
        await idle.delete(Tenant, "tenant")
    return view, made


@pytest.mark.parametrize("deleting", [False, True], ids=["adding", "removing"])
@pytest.mark.parametrize("form", ["put", "retry"])
async def test_a_put_from_a_stale_copy_is_refused_however_often_the_same_cache_is_read(idle, form, deleting):
    view, stale = await stale_copies(idle, deleting=deleting)
    change = legacy.removed if deleting else legacy.added
    with pytest.raises(Conflict):
        await legacy.FORMS[form](view, Tenant, stale, change)
    left = (await idle.get(Tenant, "tenant")).finalizers
    assert (FINALIZER in left) is deleting


async def test_a_merge_patch_drops_the_foreign_finalizer_and_the_object_vanishes(idle):
    view, stale = await stale_copies(idle, deleting=True)
    await legacy.merge(view, Tenant, stale, legacy.removed)
    assert await idle.get(Tenant, "tenant") is None


async def test_a_merge_patch_drops_it_when_it_adds_its_own_too(idle):
    view, stale = await stale_copies(idle, deleting=False)
    await legacy.merge(view, Tenant, stale, legacy.added)
    assert (await idle.get(Tenant, "tenant")).finalizers == [FINALIZER]


@pytest.mark.parametrize("form", ["put", "retry"])
async def test_the_old_operator_stays_stuck_behind_a_cache_that_lags(idle, form):
    if idle.pulsar.real:
        pytest.skip("the old way needs no second Pulsar to fail")
    gate = Gate(counted := CountingTransport(idle.api.transport()))
    client, passes = Client(gate, World(), user_agent="legacy"), asyncio.Queue()
    options = {"form": legacy.FORMS[form], "namespace": idle.namespace}
    options["seen"] = lambda name, failed: passes.put_nowait(failed)
    running = legacy.running(client, World(), idle.pulsar.standin, **options)
    view = await idle.stack.enter_async_context(running)
    await idle.connect()
    await idle.create(Tenant, "tenant", name=idle.tenant)
    for kind, name in ((Tenant, "tenant"), (Connection, "pulsar")):
        ready = await idle.ready(kind, name)
        await view.views[kind].wait_until(ready.resource_version)
    gate.closed = True
    await idle.delete(Tenant, "tenant")
    patch = {"metadata": {"annotations": {"example.com/n": "1"}}}
    await idle.client.patch(Tenant, "tenant", idle.namespace, patch, type=PatchType.MERGE)
    await gate.release(lambda _, obj: obj.deleting and not obj.annotations)
    await idle.pulsar.until(f"/v2/tenants/{idle.tenant}", lambda found: found is None)
    counted.counts.clear()
    async with asyncio.timeout(PATIENCE):
        while counted.counts["PUT", 409] < 5:
            await passes.get()
    assert FINALIZER in (await idle.get(Tenant, "tenant")).finalizers  # gone from Pulsar, and still Terminating
