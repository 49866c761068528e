"""The operator's cases, each on both API servers, and on both Pulsars where there is a real one."""

import asyncio

import pytest
from waiting import PATIENCE

from fairlead.client.client import PatchType
from fairlead.operators.pulsar.resources import (
    FINALIZER,
    RESOURCES,
    Connection,
    Function,
    GeoReplication,
    Namespace,
    NSIsolationPolicy,
    Package,
    Permission,
    Sink,
    Source,
    Tenant,
    Topic,
)
from fairlead.operators.pulsar.standin import CLUSTER
from fairlead.testing.network import CountingTransport

POLICY = {
    "cluster": CLUSTER,
    "namespaces": ["acme/.*"],
    "primary": ["broker-1.*"],
    "autoFailoverPolicyType": "min_available",
    "autoFailoverPolicyParams": {"min_limit": "1", "usage_threshold": "80"},
}


def there(found):
    return found is not None


def equals(wanted):
    return lambda found: found == wanted


def gone(found):
    return found is None


async def acme(world):
    """A tenant, a namespace and a topic, named as the bed's tenant."""
    await world.create(Tenant, "tenant", name=world.tenant)
    await world.create(Namespace, "namespace", name=f"{world.tenant}/orders")
    await world.create(Topic, "topic", name=f"{world.tenant}/orders/placed")
    await world.ready(Topic, "topic")


async def every_kind(world):
    """One object of each of the ten kinds, the last needed first; answers kind and path of each."""
    t = world.tenant
    where = {"tenant": t, "namespace": "orders"}
    code = {"archive": {"url": "builtin://nothing"}} if not world.pulsar.real else None
    await world.connect("far", clusterName=f"far-{t}", brokerServiceURL="pulsar://127.0.0.1:1")
    made = {}
    if code:  # a real Pulsar wants real code
        function = {**where, "className": "Echo", "jar": {"url": f"function://{t}/orders/echo@1"}}
        await world.create(Function, "function", name="echo", **function)
        await world.create(Sink, "sink", name="drain", **where, **code)
        await world.create(Source, "source", name="well", **where, **code)
        made = {
            Function: f"/v3/functions/{t}/orders/echo",
            Sink: f"/v3/sinks/{t}/orders/drain",
            Source: f"/v3/sources/{t}/orders/well",
        }
    await world.create(
        Package, "package", packageURL=f"function://{t}/orders/echo@1", fileURL=f"{world.pulsar.files}/code.jar"
    )
    grants = {"roles": ["clerk"], "actions": ["produce"]}
    await world.create(Permission, "permission", resourceName=f"{t}/orders", resourceType="namespace", **grants)
    await world.create(NSIsolationPolicy, "nsisolationpolicy", name=t, **POLICY)
    await world.create(GeoReplication, "georeplication", destinationConnectionRef={"name": "far"})
    await acme(world)
    made |= {
        Package: f"/v3/packages/function/{t}/orders/echo/1/metadata",
        NSIsolationPolicy: f"/v2/clusters/{CLUSTER}/namespaceIsolationPolicies/{t}",
        GeoReplication: f"/v2/clusters/far-{t}",
        Topic: f"/v2/persistent/{t}/orders/placed/partitions",
        Namespace: f"/v2/namespaces/{t}/orders",
        Tenant: f"/v2/tenants/{t}",
    }
    return made


def name_of(kind):
    return kind.kind.removeprefix("Pulsar").lower()


async def test_each_kind_is_made_in_pulsar_whatever_the_order_and_taken_out_again(world):
    made = await every_kind(world)
    for kind, path in made.items():
        assert FINALIZER in (await world.ready(kind, name_of(kind))).finalizers
        await world.pulsar.until(path, there)
    await world.ready(Permission, "permission")
    await world.pulsar.until(f"/v2/namespaces/{world.tenant}/orders/permissions", equals({"clerk": ["produce"]}))
    for kind in [*made, Permission]:
        await world.delete(kind, name_of(kind))
    for kind, path in made.items():
        await world.gone(kind, name_of(kind))
        await world.pulsar.until(path, gone)
    await world.gone(Permission, "permission")


async def test_in_the_steady_state_no_call_is_made_and_nothing_written(idle):
    counted = CountingTransport(idle.api.transport())
    running = await idle.operator(counted)
    await idle.connect()
    await acme(idle)
    await running.quiet()
    calls, before = len(idle.pulsar.standin.calls), dict(counted.counts)
    for kind, name in ((Connection, "pulsar"), (Tenant, "tenant"), (Topic, "topic")):
        patch = {"metadata": {"labels": {"touched": "yes"}}}
        await running.seen(await idle.client.patch(kind, name, idle.namespace, patch, type=PatchType.MERGE))
    await running.quiet()
    assert len(idle.pulsar.standin.calls) == calls
    assert {key: n for key, n in counted.counts.items() if key[0] != "GET"} == {
        key: n for key, n in before.items() if key[0] != "GET"
    }
    await idle.clear()


FOREIGN = "example.com/mine"


async def add_foreign(world, kind, name):
    mine = kind(name, world.namespace)
    mine["metadata"]["finalizers"] = [FOREIGN]
    return await world.client.apply(mine, field_manager="example")


async def drop_foreign(world, kind, name):
    await world.until(kind, name, lambda obj: obj.finalizers == [FOREIGN])
    await world.client.patch(kind, name, world.namespace, {"metadata": {"finalizers": None}}, type=PatchType.MERGE)


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
    await gate.release(lambda _, obj: obj.uid == old.uid and obj.deleting)
    async with asyncio.timeout(PATIENCE):
        while idle.passes(running) == before:
            await asyncio.sleep(0.02)
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
            applied = obj.status["applied"]
            await resource.remove(world.pulsar.admin, applied["path"], applied["settings"])
    assert await world.pulsar.admin.get(f"/v2/tenants/{t}") is None
    for kind in [*made, Permission]:
        await world.delete(kind, name_of(kind))
    for kind in [*made, Permission]:
        await world.gone(kind, name_of(kind))


async def test_one_siblings_trouble_neither_delays_nor_blocks_the_others(world):
    t = world.tenant
    await acme(world)
    await world.pulsar.admin.put(f"/v2/persistent/{t}/orders/unmanaged")
    await world.create(Tenant, "bad", name=f"{t}-bad", allowedClusters=["nowhere"])
    await world.not_ready(Tenant, "bad", "Refused")
    await world.delete(Topic, "topic")
    await world.delete(Namespace, "namespace")  # and cannot: there is a topic in it that is nobody's here
    await world.gone(Topic, "topic")
    await world.not_ready(Namespace, "namespace", "InUse")
    await world.create(Tenant, "good", name=f"{t}-good")
    await world.ready(Tenant, "good")
    await world.delete(Tenant, "good")
    await world.gone(Tenant, "good")
    calls = [path for _, path, _ in world.pulsar.standin.calls]
    if not world.pulsar.real:
        assert calls.count(f"/admin/v2/tenants/{t}-bad") <= 2  # its own condition wakes it once
    await world.pulsar.admin.delete(f"/v2/persistent/{t}/orders/unmanaged")
    await world.change(Namespace, "namespace", lifecyclePolicy="CleanUpAfterDeletion")  # any change is looked at
    await world.gone(Namespace, "namespace")


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


async def test_the_default_address_never_overwrites_an_edit_that_came_meanwhile(idle):
    gate = idle.gate()
    await (await idle.operator(gate)).quiet()
    gate.closed = True
    secure = "https://127.0.0.1:1"
    await idle.client.create(Connection("pulsar", idle.namespace, spec={"adminServiceSecureURL": secure}))
    await idle.change(Connection, "pulsar", adminServiceURL="http://127.0.0.1:2")
    await gate.release(lambda kind, obj: obj.kind == "PulsarConnection" and "adminServiceURL" not in obj.spec)
    await idle.not_ready(Connection, "pulsar", "Unreachable")
    assert (await idle.get(Connection, "pulsar")).spec["adminServiceURL"] == "http://127.0.0.1:2"


async def test_the_default_address_is_the_secure_one(idle):
    await idle.operator()
    await idle.client.create(
        Connection("pulsar", idle.namespace, spec={"adminServiceSecureURL": "https://127.0.0.1:1"})
    )
    await idle.until(Connection, "pulsar", lambda obj: obj.spec.get("adminServiceURL") == "https://127.0.0.1:1")


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


async def test_policies_of_a_topic_and_its_partitions_grow(world):
    await acme(world)
    path = f"/v2/persistent/{world.tenant}/orders/lines"
    await world.create(Topic, "lines", name=f"persistent://{world.tenant}/orders/lines", partitions=2, maxProducers=5)
    await world.ready(Topic, "lines")
    await world.pulsar.until(f"{path}/maxProducers", equals(5))
    await world.change(Topic, "lines", partitions=4, maxProducers=None, messageTTL="1m")
    await world.ready(Topic, "lines")
    assert (await world.pulsar.admin.get(f"{path}/partitions"))["partitions"] == 4
    await world.pulsar.until(f"{path}/messageTTL", equals(60))
    await world.pulsar.until(f"{path}/maxProducers", gone)
    await world.change(Topic, "lines", partitions=3)
    await world.not_ready(Topic, "lines", "Refused")


async def test_a_namespace_replicates_to_the_far_cluster_as_long_as_it_says_so(world):
    t = world.tenant
    await world.connect("far", clusterName=f"far-{t}", brokerServiceURL="pulsar://127.0.0.1:1")
    far = {"geoReplicationRefs": [{"name": "far"}]}
    await world.create(Tenant, "tenant", name=t, **far)
    await world.create(Namespace, "namespace", name=f"{t}/orders", **far)
    assert "far" in await world.not_ready(Tenant, "tenant", "NoGeoReplication")
    await world.create(GeoReplication, "far", destinationConnectionRef={"name": "far"})
    await world.ready(Namespace, "namespace")
    path = f"/v2/namespaces/{t}/orders/replication"
    await world.pulsar.until(path, lambda found: {*found} == {CLUSTER, f"far-{t}"})
    await world.change(Namespace, "namespace", geoReplicationRefs=None)
    await world.pulsar.until(path, equals([CLUSTER]))


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


@pytest.mark.parametrize(
    ("kind", "spec", "reason", "said"),
    [
        (Tenant, {"name": "a/b"}, "Invalid", "1 part"),
        (Tenant, {"name": "fine", "allowedClusters": ["nowhere"]}, "Refused", "Change the spec"),
        (Namespace, {"name": "no-slash"}, "Invalid", "such as acme/orders"),
        (Namespace, {"name": "no-such-tenant/n"}, "Missing", "Create what this is in"),
        (Namespace, {"name": "public/n", "messageTTL": "soon"}, "Invalid", "no duration"),
        (Topic, {"name": "kafka://a/b/c"}, "Invalid", "persistent://"),
        (Topic, {"name": "a/b/c", "retentionSize": "big"}, "Invalid", "no size"),
        (Package, {"packageURL": "nonsense", "fileURL": "http://127.0.0.1:1/"}, "Invalid", "name@version"),
        (Package, {"packageURL": "sink://public/default/x@1", "fileURL": "file:///etc/passwd"}, "Invalid", "http"),
        (
            Package,
            {"packageURL": "sink://public/default/x@1", "fileURL": "http://127.0.0.1:1/x"},
            "Unreachable",
            "check",
        ),
        (Function, {"tenant": "public", "namespace": "default", "name": "f"}, "Invalid", "jar"),
        (NSIsolationPolicy, {**POLICY, "name": "p", "cluster": "nowhere"}, "Refused", "Change the spec"),
        (GeoReplication, {"destinationConnectionRef": {"name": "nowhere"}}, "NoConnection", "create it"),
        (Tenant, {"name": "fine", "connectionRef": {"name": "nowhere"}}, "NoConnection", "create it"),
    ],
)
async def test_what_cannot_be_is_said_in_a_condition_with_what_to_do(world, kind, spec, reason, said):
    await world.create(kind, "bad", **spec)
    assert said in await world.not_ready(kind, "bad", reason)
    await world.delete(kind, "bad")
    await world.gone(kind, "bad")


@pytest.mark.parametrize(
    ("spec", "reason", "said"),
    [
        ({}, "Invalid", "set spec.adminServiceURL"),
        ({"adminServiceURL": "ftp://pulsar"}, "Invalid", "http(s)://"),
        ({"adminServiceURL": "http://127.0.0.1:1"}, "Unreachable", "check the address"),
        ({"adminServiceURL": "http://x", "authentication": {"oauth2": {}}}, "Invalid", "token alone"),
    ],
)
async def test_a_connection_that_cannot_be_says_what_to_do_and_can_be_deleted(idle, spec, reason, said):
    await idle.operator()
    await idle.client.create(Connection("pulsar", idle.namespace, spec=spec))
    assert said in await idle.not_ready(Connection, "pulsar", reason)
    await idle.delete(Connection, "pulsar")
    await idle.gone(Connection, "pulsar")


async def test_a_tenant_cannot_be_renamed_and_keeps_what_is_in_it(world):
    await acme(world)
    await world.change(Tenant, "tenant", name=f"{world.tenant}-2")
    assert "cannot move" in await world.not_ready(Tenant, "tenant", "Invalid")
    assert await world.pulsar.admin.get(f"/v2/tenants/{world.tenant}") is not None
    await world.change(Tenant, "tenant", name=world.tenant)
    await world.ready(Tenant, "tenant")


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


async def test_the_token_comes_from_the_secret_and_a_wrong_one_is_said(idle):
    import fairlead as fl

    if idle.pulsar.real:
        pytest.skip("needs a Pulsar that wants a token")
    idle.pulsar.standin.token = "right"
    await idle.operator()
    await idle.connect(authentication={"token": {"secretRef": {"name": "token", "key": "token"}}})
    assert "token" in await idle.not_ready(Connection, "pulsar", "SecretMissing")
    await idle.client.create(fl.Secret("token", idle.namespace, stringData={"token": "wrong"}))
    patch = {"metadata": {"labels": {"touched": "yes"}}}
    await idle.client.patch(Connection, "pulsar", idle.namespace, patch, type=PatchType.MERGE)
    assert "Check the token" in await idle.not_ready(Connection, "pulsar", "Forbidden")
    await idle.client.patch(
        fl.Secret, "token", idle.namespace, {"stringData": {"token": "right"}}, type=PatchType.MERGE
    )
    await idle.change(Connection, "pulsar", clusterName="standalone-1")
    await idle.ready(Connection, "pulsar")
