"""Tests of the finalizer: an object goes away only after its Pulsar resource, and finalizers of others stay."""

import pytest
from pulsar_objects import FOREIGN, POLICY, add_foreign, create_all_kinds, create_topic, name_of, remove_foreign
from waiting import eventually, gone

from fairlead.client.client import PatchType
from fairlead.testing.network import CountingTransport
from fairlead_operators.pulsar.kinds import FINALIZER, Connection, Function, Permission, Tenant, Topic
from fairlead_operators.pulsar.resources import RESOURCES


@pytest.mark.parametrize("moment", ["before the own finalizer", "after the own finalizer", "during the deletion"])
async def test_foreign_finalizer_survives_at_any_time(env, moment):
    gate = env.gate()
    await env.operator(gate)
    await env.connect()
    await env.wait_until_ready(Connection, "pulsar")
    gate.closed = moment == "before the own finalizer"
    await env.create(Tenant, "tenant", name=env.tenant)
    if moment == "before the own finalizer":
        await add_foreign(env, Tenant, "tenant")
        await gate.release(lambda _, obj: obj.kind == "PulsarTenant" and not obj.finalizers)
        await env.wait_until(Tenant, "tenant", lambda obj: FINALIZER in obj.finalizers)
        gate.closed = False
        await gate.release(lambda _, obj: obj.finalizers == [FOREIGN])
        await env.wait_until_ready(Tenant, "tenant")
    else:
        await env.wait_until_ready(Tenant, "tenant")
        gate.closed = moment == "during the deletion"
        await add_foreign(env, Tenant, "tenant")
    assert {*(await env.get(Tenant, "tenant")).finalizers} == {FINALIZER, FOREIGN}
    await env.delete(Tenant, "tenant")
    if gate.closed:
        await gate.release(lambda _, obj: obj.deleting)
    await remove_foreign(env, Tenant, "tenant")
    await env.wait_until_gone(Tenant, "tenant")
    await env.pulsar.wait_until(f"/v2/tenants/{env.tenant}", gone)


async def delete_with_a_lagging_cache(env, running, gate):
    """Delete a tenant and change it three times. The watch delivers only the deletion to the cache."""
    await running.wait_until_idle()
    gate.closed = True
    await env.delete(Tenant, "tenant")
    for n in range(3):
        patch = {"metadata": {"annotations": {"example.com/n": str(n)}}}
        await env.client.patch(Tenant, "tenant", env.namespace, patch, type=PatchType.MERGE)
    await gate.release(lambda _, obj: obj.deleting and not obj.annotations)


async def test_finalizer_is_removed_in_one_reconcile_with_a_lagging_cache(env):
    counter = CountingTransport(env.api.transport())
    gate = env.gate()
    gate.inner = counter
    running = await env.operator(gate)
    await env.connect()
    await env.create(Tenant, "tenant", name=env.tenant)
    await env.wait_until_ready(Tenant, "tenant")
    counter.counts.clear()
    await delete_with_a_lagging_cache(env, running, gate)
    await env.wait_until_gone(Tenant, "tenant")
    assert not [key for key in counter.counts if key[1] == 409]
    assert running.metrics.errors.labels("pulsartenant")._value.get() == 0


async def test_recreated_object_with_the_same_name_is_not_touched(env):
    gate = env.gate()
    running = await env.operator(gate)
    await env.connect()
    old = await env.create(Tenant, "tenant", name=env.tenant, lifecyclePolicy="KeepAfterDeletion")
    await env.wait_until_ready(Tenant, "tenant")
    await running.wait_until_seen(await add_foreign(env, Tenant, "tenant"))
    await running.wait_until_idle()
    gate.closed = True
    await env.delete(Tenant, "tenant")
    await env.client.patch(Tenant, "tenant", env.namespace, {"metadata": {"finalizers": None}}, type=PatchType.MERGE)
    await env.wait_until_gone(Tenant, "tenant")
    new = Tenant("tenant", env.namespace, spec=old.spec)
    new["metadata"]["finalizers"] = [FINALIZER]
    new = await env.client.create(new)
    before = env.reconciles(running)
    await running.wait_until_seen(await gate.release(lambda _, obj: obj.uid == old.uid and obj.deleting))
    await eventually(lambda: env.reconciles(running) > before)
    live = await env.get(Tenant, "tenant")
    assert (live.uid, live.resource_version) == (new.uid, new.resource_version)
    gate.closed = False
    await env.client.patch(Tenant, "tenant", env.namespace, {"metadata": {"finalizers": None}}, type=PatchType.MERGE)


async def test_deletion_succeeds_when_pulsar_no_longer_has_the_objects(running_env):
    created = await create_all_kinds(running_env)
    for kind in created:
        await running_env.wait_until_ready(kind, name_of(kind))
    await running_env.wait_until_ready(Permission, "permission")
    tenant = running_env.tenant
    for resource in reversed(RESOURCES):
        obj = await running_env.get(resource.kind, name_of(resource.kind))
        if obj is not None:
            await running_env.pulsar.remove(resource, obj.status["applied"])
    assert await running_env.pulsar.admin.get(f"/v2/tenants/{tenant}") is None
    for kind in [*created, Permission]:
        await running_env.delete(kind, name_of(kind))
    for kind in [*created, Permission]:
        await running_env.wait_until_gone(kind, name_of(kind))


async def test_topic_with_a_reader_waits_until_the_reader_is_deleted(running_env):
    if running_env.pulsar.real:
        pytest.skip("a real function connects to its topic some time later")
    await create_all_kinds(running_env)
    await running_env.wait_until_ready(Function, "function")
    await running_env.delete(Topic, "topic")
    assert "Stop the producers and consumers" in await running_env.wait_until_not_ready(Topic, "topic", "InUse")
    await running_env.delete(Function, "function")
    await running_env.wait_until_gone(Function, "function")
    await running_env.wait_until_gone(Topic, "topic")
    await running_env.clear()


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind.kind)
async def test_connection_stays_until_objects_of_create_all_kinds_are_deleted(running_env, resource):
    spec = {
        "name": running_env.tenant,
        "tenant": running_env.tenant,
        "namespace": "n",
        "packageURL": "function://no/such/package@1",
        "fileURL": "http://127.0.0.1:1/",
        "resourceName": "no/such",
        "resourceType": "namespace",
        "roles": [],
        "destinationConnectionRef": {"name": "pulsar"},
        **POLICY,
    }
    await running_env.create(resource.kind, "child", **spec)
    await add_foreign(running_env, resource.kind, "child")
    await running_env.wait_until(resource.kind, "child", lambda obj: FINALIZER in obj.finalizers)
    await running_env.delete(Connection, "pulsar")
    assert f"1 {resource.kind.kind}" in await running_env.wait_until_not_ready(Connection, "pulsar", "InUse")
    await running_env.delete(resource.kind, "child")
    await remove_foreign(running_env, resource.kind, "child")
    await running_env.wait_until_gone(Connection, "pulsar")


@pytest.mark.parametrize("kind", [Tenant, Permission], ids=lambda kind: kind.kind)
async def test_keep_after_deletion_keeps_the_resource_in_pulsar(running_env, kind):
    await create_topic(running_env)
    tenant = running_env.tenant
    grants = {
        "resourceName": f"{tenant}/orders",
        "resourceType": "namespace",
        "roles": ["clerk"],
        "actions": ["consume"],
    }
    spec = grants if kind is Permission else {"name": f"{tenant}-kept"}
    await running_env.create(kind, "kept", lifecyclePolicy="KeepAfterDeletion", **spec)
    await running_env.wait_until_ready(kind, "kept")
    await running_env.delete(kind, "kept")
    await running_env.wait_until_gone(kind, "kept")
    if kind is Permission:
        assert await running_env.pulsar.admin.get(f"/v2/namespaces/{tenant}/orders/permissions") == {
            "clerk": ["consume"]
        }
    else:
        assert await running_env.pulsar.admin.get(f"/v2/tenants/{tenant}-kept") is not None
        await running_env.pulsar.admin.delete(f"/v2/tenants/{tenant}-kept")


async def test_deletion_without_its_connection_waits_and_reports_the_remedy(running_env):
    await running_env.create(Tenant, "tenant", name=running_env.tenant)
    await running_env.wait_until_ready(Tenant, "tenant")
    await running_env.delete(Connection, "pulsar")
    patch = {"metadata": {"finalizers": None}}
    await running_env.client.patch(
        Connection, "pulsar", running_env.namespace, patch, type=PatchType.MERGE
    )  # force the deletion
    await running_env.wait_until_gone(Connection, "pulsar")
    await running_env.delete(Tenant, "tenant")
    await running_env.wait_until(Tenant, "tenant", lambda obj: "KeepAfterDeletion" in obj.condition("Ready")["message"])
    await running_env.connect()
    await running_env.wait_until_gone(Tenant, "tenant")
    await running_env.pulsar.wait_until(f"/v2/tenants/{running_env.tenant}", gone)
