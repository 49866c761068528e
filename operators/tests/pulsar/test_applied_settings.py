"""Tests of status.applied: the operator stores the settings that it sent to Pulsar, and removes exactly these."""

from pulsar_objects import create_topic, equals
from waiting import gone

from fairlead_operators.pulsar.kinds import Namespace, Permission, Tenant


async def test_removed_role_is_revoked_even_after_a_restart(env):
    await env.connect()
    permissions = f"/v2/namespaces/{env.tenant}/orders/permissions"
    grants = {"roles": ["clerk", "auditor"], "actions": ["consume"]}
    async with env.stack.__class__() as stack:
        env.stack, outer = stack, env.stack
        await env.operator()
        await create_topic(env)
        await env.create(
            Permission, "permission", resourceName=f"{env.tenant}/orders", resourceType="namespace", **grants
        )
        await env.wait_until_ready(Permission, "permission")
        await env.pulsar.wait_until(permissions, equals({"clerk": ["consume"], "auditor": ["consume"]}))
    env.stack = outer
    await env.pulsar.admin.post(f"{permissions}/stranger", ["produce"])
    await env.change(Permission, "permission", roles=["clerk"], actions=["produce"])
    await env.operator()
    await env.pulsar.wait_until(permissions, equals({"clerk": ["produce"], "stranger": ["produce"]}))
    obj = await env.wait_until_ready(Permission, "permission")
    assert obj.status["applied"]["settings"] == ["permissions/clerk"]
    await env.delete(Permission, "permission")
    await env.pulsar.wait_until(permissions, equals({"stranger": ["produce"]}))
    await env.clear()


async def test_moved_permissions_are_revoked_on_the_old_resource(running_env):
    await create_topic(running_env)
    tenant = running_env.tenant
    grants = {"roles": ["clerk"], "actions": ["consume"]}
    await running_env.create(
        Permission, "permission", resourceName=f"{tenant}/orders", resourceType="namespace", **grants
    )
    await running_env.wait_until_ready(Permission, "permission")
    await running_env.change(Permission, "permission", resourceName=f"{tenant}/orders/placed", resourceType="topic")
    await running_env.pulsar.wait_until(f"/v2/namespaces/{tenant}/orders/permissions", equals({}))
    await running_env.pulsar.wait_until(
        f"/v2/persistent/{tenant}/orders/placed/permissions", equals({"clerk": ["consume"]})
    )


async def test_removed_policies_are_unset_in_pulsar(running_env):
    await create_topic(running_env)
    path = f"/v2/namespaces/{running_env.tenant}/orders"
    await running_env.change(Namespace, "namespace", messageTTL="1h30m", retentionTime="3d", retentionSize="2Gi")
    await running_env.pulsar.wait_until(f"{path}/messageTTL", equals(5400))
    retention = {"retentionTimeInMinutes": 4320, "retentionSizeInMB": 2048}
    await running_env.pulsar.wait_until(f"{path}/retention", equals(retention))
    await running_env.change(Namespace, "namespace", messageTTL=None)
    await running_env.pulsar.wait_until(f"{path}/messageTTL", gone)
    assert await running_env.pulsar.admin.get(f"{path}/retention") == retention


async def test_renaming_a_tenant_is_rejected_and_keeps_its_data(running_env):
    await create_topic(running_env)
    await running_env.change(Tenant, "tenant", name=f"{running_env.tenant}-2")
    assert "cannot move" in await running_env.wait_until_not_ready(Tenant, "tenant", "Invalid")
    assert await running_env.pulsar.admin.get(f"/v2/tenants/{running_env.tenant}") is not None
    await running_env.change(Tenant, "tenant", name=running_env.tenant)
    await running_env.wait_until_ready(Tenant, "tenant")
