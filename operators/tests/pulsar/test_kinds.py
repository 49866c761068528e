"""All eleven kinds in Pulsar, on both API servers, and on both Pulsars where there is a real one."""

from pulsar_scene import acme, equals, every_kind, gone, name_of, there

from fairlead.client.client import PatchType
from fairlead.testing.network import CountingTransport
from fairlead_operators.pulsar.resources import (
    FINALIZER,
    Connection,
    GeoReplication,
    Namespace,
    Permission,
    Tenant,
    Topic,
)
from fairlead_operators.pulsar.standin import CLUSTER


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
    made = [*await every_kind(idle), Permission]
    for kind in made:
        await idle.ready(kind, name_of(kind))
    await running.quiet()
    calls, before = len(idle.pulsar.standin.calls), dict(counted.counts)
    for kind, name in ((Connection, "pulsar"), *((kind, name_of(kind)) for kind in made)):
        patch = {"metadata": {"labels": {"touched": "yes"}}}
        await running.seen(await idle.client.patch(kind, name, idle.namespace, patch, type=PatchType.MERGE))
    await running.quiet()
    assert len(idle.pulsar.standin.calls) == calls
    assert {key: n for key, n in counted.counts.items() if key[0] != "GET"} == {
        key: n for key, n in before.items() if key[0] != "GET"
    }
    await idle.clear()


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
