"""What was once put into Pulsar is remembered: what is dropped is taken back, and nothing else."""

from pulsar_scene import acme, equals, gone

from fairlead_operators.pulsar.resources import Namespace, Permission, Tenant


async def test_a_role_that_is_dropped_is_revoked_also_after_a_restart(idle):
    await idle.connect()
    permissions = f"/v2/namespaces/{idle.tenant}/orders/permissions"
    grants = {"roles": ["clerk", "auditor"], "actions": ["consume"]}
    async with idle.stack.__class__() as stack:
        idle.stack, outer = stack, idle.stack
        await idle.operator()
        await acme(idle)
        await idle.create(
            Permission, "permission", resourceName=f"{idle.tenant}/orders", resourceType="namespace", **grants
        )
        await idle.ready(Permission, "permission")
        await idle.pulsar.until(permissions, equals({"clerk": ["consume"], "auditor": ["consume"]}))
    idle.stack = outer
    await idle.pulsar.admin.post(f"{permissions}/stranger", ["produce"])
    await idle.change(Permission, "permission", roles=["clerk"], actions=["produce"])
    await idle.operator()
    await idle.pulsar.until(permissions, equals({"clerk": ["produce"], "stranger": ["produce"]}))
    obj = await idle.ready(Permission, "permission")
    assert obj.status["applied"]["settings"] == ["permissions/clerk"]
    await idle.delete(Permission, "permission")
    await idle.pulsar.until(permissions, equals({"stranger": ["produce"]}))
    await idle.clear()


async def test_permissions_that_move_to_another_resource_are_revoked_on_the_first(world):
    await acme(world)
    t = world.tenant
    grants = {"roles": ["clerk"], "actions": ["consume"]}
    await world.create(Permission, "permission", resourceName=f"{t}/orders", resourceType="namespace", **grants)
    await world.ready(Permission, "permission")
    await world.change(Permission, "permission", resourceName=f"{t}/orders/placed", resourceType="topic")
    await world.pulsar.until(f"/v2/namespaces/{t}/orders/permissions", equals({}))
    await world.pulsar.until(f"/v2/persistent/{t}/orders/placed/permissions", equals({"clerk": ["consume"]}))


async def test_policies_that_are_dropped_are_taken_back(world):
    await acme(world)
    path = f"/v2/namespaces/{world.tenant}/orders"
    await world.change(Namespace, "namespace", messageTTL="1h30m", retentionTime="3d", retentionSize="2Gi")
    await world.pulsar.until(f"{path}/messageTTL", equals(5400))
    kept = {"retentionTimeInMinutes": 4320, "retentionSizeInMB": 2048}
    await world.pulsar.until(f"{path}/retention", equals(kept))
    await world.change(Namespace, "namespace", messageTTL=None)
    await world.pulsar.until(f"{path}/messageTTL", gone)
    assert await world.pulsar.admin.get(f"{path}/retention") == kept


async def test_a_tenant_cannot_be_renamed_and_keeps_what_is_in_it(world):
    await acme(world)
    await world.change(Tenant, "tenant", name=f"{world.tenant}-2")
    assert "cannot move" in await world.not_ready(Tenant, "tenant", "Invalid")
    assert await world.pulsar.admin.get(f"/v2/tenants/{world.tenant}") is not None
    await world.change(Tenant, "tenant", name=world.tenant)
    await world.ready(Tenant, "tenant")
