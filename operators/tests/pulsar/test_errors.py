"""What goes wrong becomes a condition that says what to do, and is nobody else's trouble."""

import pytest
from pulsar_scene import IMPOSSIBLE, acme

import fairlead as fl
from fairlead.client.client import PatchType
from fairlead_operators.pulsar.resources import (
    Connection,
    GeoReplication,
    Namespace,
    Tenant,
    Topic,
)
from fairlead_operators.pulsar.standin import CLUSTER


@pytest.mark.parametrize(("kind", "spec", "reason", "said"), IMPOSSIBLE)
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


async def test_a_cluster_is_never_taken_for_its_own_far_one_and_deleted(world):
    await world.create(GeoReplication, "far", destinationConnectionRef={"name": "pulsar"})
    assert "this cluster itself" in await world.not_ready(GeoReplication, "far", "Invalid")
    await world.delete(GeoReplication, "far")
    await world.gone(GeoReplication, "far")
    assert CLUSTER in await world.pulsar.admin.get("/v2/clusters")


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
        assert calls.count(f"/admin/v2/tenants/{t}-bad") <= 4  # finalizer, memory and condition wake it once each
    await world.pulsar.admin.delete(f"/v2/persistent/{t}/orders/unmanaged")
    await world.change(Namespace, "namespace", lifecyclePolicy="CleanUpAfterDeletion")  # any change is looked at
    await world.gone(Namespace, "namespace")


async def test_the_token_comes_from_the_secret_and_a_wrong_one_is_said(idle):
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
