"""Tests of all eleven kinds, on both API servers, with the fake Pulsar and a real one if there is one."""

from pulsar_objects import create_all_kinds, create_topic, equals, name_of
from waiting import gone, there

from fairlead.client.client import PatchType
from fairlead.testing.network import CountingTransport
from fairlead_operators.pulsar.fake_pulsar import CLUSTER
from fairlead_operators.pulsar.kinds import FINALIZER, Connection, GeoReplication, Namespace, Permission, Tenant, Topic


async def test_all_kinds_are_created_and_deleted_in_any_order(running_env):
    created = await create_all_kinds(running_env)
    for kind, path in created.items():
        assert FINALIZER in (await running_env.wait_until_ready(kind, name_of(kind))).finalizers
        await running_env.pulsar.wait_until(path, there)
    await running_env.wait_until_ready(Permission, "permission")
    await running_env.pulsar.wait_until(
        f"/v2/namespaces/{running_env.tenant}/orders/permissions", equals({"clerk": ["produce"]})
    )
    for kind in [*created, Permission]:
        await running_env.delete(kind, name_of(kind))
    for kind, path in created.items():
        await running_env.wait_until_gone(kind, name_of(kind))
        await running_env.pulsar.wait_until(path, gone)
    await running_env.wait_until_gone(Permission, "permission")


async def test_unchanged_objects_cost_no_pulsar_request_and_no_write(env):
    counter = CountingTransport(env.api.transport())
    running = await env.operator(counter)
    await env.connect()
    created = [*await create_all_kinds(env), Permission]
    for kind in created:
        await env.wait_until_ready(kind, name_of(kind))
    await running.wait_until_idle()
    calls, before = len(env.pulsar.fake.calls), dict(counter.counts)
    for kind, name in ((Connection, "pulsar"), *((kind, name_of(kind)) for kind in created)):
        patch = {"metadata": {"labels": {"touched": "yes"}}}
        await running.wait_until_seen(await env.client.patch(kind, name, env.namespace, patch, type=PatchType.MERGE))
    await running.wait_until_idle()
    assert len(env.pulsar.fake.calls) == calls
    assert {key: n for key, n in counter.counts.items() if key[0] != "GET"} == {
        key: n for key, n in before.items() if key[0] != "GET"
    }
    await env.clear()


async def test_topic_policies_are_set_and_partitions_can_only_grow(running_env):
    await create_topic(running_env)
    topic_url_path = f"/v2/persistent/{running_env.tenant}/orders/lines"
    await running_env.create(
        Topic, "lines", name=f"persistent://{running_env.tenant}/orders/lines", partitions=2, maxProducers=5
    )
    await running_env.wait_until_ready(Topic, "lines")
    await running_env.pulsar.wait_until(f"{topic_url_path}/maxProducers", equals(5))
    await running_env.change(Topic, "lines", partitions=4, maxProducers=None, messageTTL="1m")
    await running_env.wait_until_ready(Topic, "lines")
    assert (await running_env.pulsar.admin.get(f"{topic_url_path}/partitions"))["partitions"] == 4
    await running_env.pulsar.wait_until(f"{topic_url_path}/messageTTL", equals(60))
    await running_env.pulsar.wait_until(f"{topic_url_path}/maxProducers", gone)
    await running_env.change(Topic, "lines", partitions=3)
    await running_env.wait_until_not_ready(Topic, "lines", "Rejected")


async def test_namespace_replicates_while_its_spec_has_the_reference(running_env):
    tenant = running_env.tenant
    await running_env.connect("far", clusterName=f"far-{tenant}", brokerServiceURL="pulsar://127.0.0.1:1")
    far = {"geoReplicationRefs": [{"name": "far"}]}
    await running_env.create(Tenant, "tenant", name=tenant, **far)
    await running_env.create(Namespace, "namespace", name=f"{tenant}/orders", **far)
    assert "far" in await running_env.wait_until_not_ready(Tenant, "tenant", "NoGeoReplication")
    await running_env.create(GeoReplication, "far", destinationConnectionRef={"name": "far"})
    await running_env.wait_until_ready(Namespace, "namespace")
    path = f"/v2/namespaces/{tenant}/orders/replication"
    await running_env.pulsar.wait_until(
        path, lambda replication_clusters: {*replication_clusters} == {CLUSTER, f"far-{tenant}"}
    )
    await running_env.change(Namespace, "namespace", geoReplicationRefs=None)
    await running_env.pulsar.wait_until(path, equals([CLUSTER]))


async def test_default_address_does_not_overwrite_a_concurrent_edit(env):
    gate = env.gate()
    await (await env.operator(gate)).wait_until_idle()
    gate.closed = True
    secure = "https://127.0.0.1:1"
    await env.client.create(Connection("pulsar", env.namespace, spec={"adminServiceSecureURL": secure}))
    await env.change(Connection, "pulsar", adminServiceURL="http://127.0.0.1:2")
    await gate.release(lambda kind, obj: obj.kind == "PulsarConnection" and "adminServiceURL" not in obj.spec)
    await env.wait_until_not_ready(Connection, "pulsar", "Unreachable")
    assert (await env.get(Connection, "pulsar")).spec["adminServiceURL"] == "http://127.0.0.1:2"


async def test_default_address_is_the_secure_address(env):
    await env.operator()
    await env.client.create(Connection("pulsar", env.namespace, spec={"adminServiceSecureURL": "https://127.0.0.1:1"}))
    await env.wait_until(Connection, "pulsar", lambda obj: obj.spec.get("adminServiceURL") == "https://127.0.0.1:1")
