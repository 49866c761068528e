"""Letting go: each object when it is out of Pulsar, and nobody else's finalizer with ours."""

import pytest
from pulsar_scene import (
    FOREIGN,
    POLICY,
    acme,
    add_foreign,
    drop_foreign,
    every_kind,
    gone,
    name_of,
)
from waiting import eventually

from fairlead.client.client import PatchType
from fairlead.testing.network import CountingTransport
from fairlead_operators.pulsar.resources import FINALIZER, RESOURCES, Connection, Function, Permission, Tenant, Topic


@pytest.mark.parametrize("moment", ["before ours", "after ours", "while the deletion is on its way"])
async def test_a_foreign_finalizer_survives_whenever_it_comes(idle, moment):
    gate = idle.gate()
    await idle.operator(gate)
    await idle.connect()
    await idle.ready(Connection, "pulsar")
    gate.closed = moment == "before ours"
    await idle.create(Tenant, "tenant", name=idle.tenant)
    if moment == "before ours":
        await add_foreign(idle, Tenant, "tenant")
        await gate.release(lambda _, obj: obj.kind == "PulsarTenant" and not obj.finalizers)
        await idle.until(Tenant, "tenant", lambda obj: FINALIZER in obj.finalizers)
        gate.closed = False
        await gate.release(lambda _, obj: obj.finalizers == [FOREIGN])
        await idle.ready(Tenant, "tenant")
    else:
        await idle.ready(Tenant, "tenant")
        gate.closed = moment == "while the deletion is on its way"
        await add_foreign(idle, Tenant, "tenant")
    assert {*(await idle.get(Tenant, "tenant")).finalizers} == {FINALIZER, FOREIGN}
    await idle.delete(Tenant, "tenant")
    if gate.closed:
        await gate.release(lambda _, obj: obj.deleting)
    await drop_foreign(idle, Tenant, "tenant")
    await idle.gone(Tenant, "tenant")
    await idle.pulsar.until(f"/v2/tenants/{idle.tenant}", gone)


async def deleting_behind_a_cache_that_lags(idle, running, gate):
    """A tenant on its way out whose newest versions the cache behind the gate will never see."""
    await running.quiet()
    gate.closed = True
    await idle.delete(Tenant, "tenant")
    for n in range(3):
        patch = {"metadata": {"annotations": {"example.com/n": str(n)}}}
        await idle.client.patch(Tenant, "tenant", idle.namespace, patch, type=PatchType.MERGE)
    await gate.release(lambda _, obj: obj.deleting and not obj.annotations)


async def test_removal_succeeds_on_the_first_pass_with_a_cache_that_lags_for_ever(idle):
    counted = CountingTransport(idle.api.transport())
    gate = idle.gate()
    gate.inner = counted
    running = await idle.operator(gate)
    await idle.connect()
    await idle.create(Tenant, "tenant", name=idle.tenant)
    await idle.ready(Tenant, "tenant")
    counted.counts.clear()
    await deleting_behind_a_cache_that_lags(idle, running, gate)
    await idle.gone(Tenant, "tenant")
    assert not [key for key in counted.counts if key[1] == 409]
    assert running.metrics.errors.labels("pulsartenant")._value.get() == 0


async def test_an_object_made_anew_under_the_name_is_left_alone(idle):
    gate = idle.gate()
    running = await idle.operator(gate)
    await idle.connect()
    old = await idle.create(Tenant, "tenant", name=idle.tenant, lifecyclePolicy="KeepAfterDeletion")
    await idle.ready(Tenant, "tenant")
    await running.seen(await add_foreign(idle, Tenant, "tenant"))
    await running.quiet()
    gate.closed = True
    await idle.delete(Tenant, "tenant")
    await idle.client.patch(Tenant, "tenant", idle.namespace, {"metadata": {"finalizers": None}}, type=PatchType.MERGE)
    await idle.gone(Tenant, "tenant")
    new = Tenant("tenant", idle.namespace, spec=old.spec)
    new["metadata"]["finalizers"] = [FINALIZER]
    new = await idle.client.create(new)
    before = idle.passes(running)
    await running.seen(await gate.release(lambda _, obj: obj.uid == old.uid and obj.deleting))
    await eventually(lambda: idle.passes(running) > before)
    live = await idle.get(Tenant, "tenant")
    assert (live.uid, live.resource_version) == (new.uid, new.resource_version)
    gate.closed = False
    await idle.client.patch(Tenant, "tenant", idle.namespace, {"metadata": {"finalizers": None}}, type=PatchType.MERGE)


async def test_what_is_gone_from_pulsar_already_holds_nothing_up(world):
    made = await every_kind(world)
    for kind in made:
        await world.ready(kind, name_of(kind))
    await world.ready(Permission, "permission")
    t = world.tenant
    for resource in reversed(RESOURCES):
        obj = await world.get(resource.kind, name_of(resource.kind))
        if obj is not None:
            await world.pulsar.take_out(resource, obj.status["applied"])
    assert await world.pulsar.admin.get(f"/v2/tenants/{t}") is None
    for kind in [*made, Permission]:
        await world.delete(kind, name_of(kind))
    for kind in [*made, Permission]:
        await world.gone(kind, name_of(kind))


async def test_a_topic_that_is_read_says_so_and_goes_after_its_reader(world):
    if world.pulsar.real:
        pytest.skip("a real function connects to its topic when it comes to it")
    await every_kind(world)
    await world.ready(Function, "function")
    await world.delete(Topic, "topic")
    assert "Stop what still uses it" in await world.not_ready(Topic, "topic", "InUse")
    await world.delete(Function, "function")
    await world.gone(Function, "function")
    await world.gone(Topic, "topic")
    await world.clear()


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind.kind)
async def test_the_connection_outlives_a_child_of_any_kind(world, resource):
    spec = {
        "name": world.tenant,
        "tenant": world.tenant,
        "namespace": "n",
        "packageURL": "function://no/such/package@1",
        "fileURL": "http://127.0.0.1:1/",
        "resourceName": "no/such",
        "resourceType": "namespace",
        "roles": [],
        "destinationConnectionRef": {"name": "pulsar"},
        **POLICY,
    }
    await world.create(resource.kind, "child", **spec)
    await add_foreign(world, resource.kind, "child")
    await world.until(resource.kind, "child", lambda obj: FINALIZER in obj.finalizers)
    await world.delete(Connection, "pulsar")
    assert f"1 {resource.kind.kind}" in await world.not_ready(Connection, "pulsar", "InUse")
    await world.delete(resource.kind, "child")
    await drop_foreign(world, resource.kind, "child")
    await world.gone(Connection, "pulsar")


@pytest.mark.parametrize("kind", [Tenant, Permission], ids=lambda kind: kind.kind)
async def test_keep_after_deletion_leaves_it_in_pulsar(world, kind):
    await acme(world)
    t = world.tenant
    grants = {"resourceName": f"{t}/orders", "resourceType": "namespace", "roles": ["clerk"], "actions": ["consume"]}
    spec = grants if kind is Permission else {"name": f"{t}-kept"}
    await world.create(kind, "kept", lifecyclePolicy="KeepAfterDeletion", **spec)
    await world.ready(kind, "kept")
    await world.delete(kind, "kept")
    await world.gone(kind, "kept")
    if kind is Permission:
        assert await world.pulsar.admin.get(f"/v2/namespaces/{t}/orders/permissions") == {"clerk": ["consume"]}
    else:
        assert await world.pulsar.admin.get(f"/v2/tenants/{t}-kept") is not None
        await world.pulsar.admin.delete(f"/v2/tenants/{t}-kept")


async def test_without_its_connection_a_deletion_waits_and_says_for_what(world):
    await world.create(Tenant, "tenant", name=world.tenant)
    await world.ready(Tenant, "tenant")
    await world.delete(Connection, "pulsar")
    patch = {"metadata": {"finalizers": None}}
    await world.client.patch(Connection, "pulsar", world.namespace, patch, type=PatchType.MERGE)  # by force
    await world.gone(Connection, "pulsar")
    await world.delete(Tenant, "tenant")
    await world.until(Tenant, "tenant", lambda obj: "KeepAfterDeletion" in obj.condition("Ready")["message"])
    await world.connect()
    await world.gone(Tenant, "tenant")
    await world.pulsar.until(f"/v2/tenants/{world.tenant}", gone)
