"""Tests of errors: the condition names the fix, and other objects are not affected."""

import pytest
from pulsar_objects import INVALID_SPECS, create_topic

import fairlead as fl
from fairlead.client.client import PatchType
from fairlead_operators.pulsar.fake_pulsar import CLUSTER
from fairlead_operators.pulsar.kinds import Connection, GeoReplication, Namespace, Tenant, Topic


@pytest.mark.parametrize(("kind", "spec", "reason", "message"), INVALID_SPECS)
async def test_invalid_spec_is_reported_with_a_remedy(running_env, kind, spec, reason, message):
    await running_env.create(kind, "bad", **spec)
    assert message in await running_env.wait_until_not_ready(kind, "bad", reason)
    await running_env.delete(kind, "bad")
    await running_env.wait_until_gone(kind, "bad")


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        ({}, "Invalid", "set spec.adminServiceURL"),
        ({"adminServiceURL": "ftp://pulsar"}, "Invalid", "http(s)://"),
        ({"adminServiceURL": "http://127.0.0.1:1"}, "Unreachable", "check the address"),
        ({"adminServiceURL": "http://x", "authentication": {"oauth2": {}}}, "Invalid", "only token"),
    ],
)
async def test_invalid_connection_is_reported_and_can_be_deleted(env, spec, reason, message):
    await env.operator()
    await env.client.create(Connection("pulsar", env.namespace, spec=spec))
    assert message in await env.wait_until_not_ready(Connection, "pulsar", reason)
    await env.delete(Connection, "pulsar")
    await env.wait_until_gone(Connection, "pulsar")


async def test_geo_replication_to_the_own_cluster_is_rejected(running_env):
    await running_env.create(GeoReplication, "far", destinationConnectionRef={"name": "pulsar"})
    assert "this cluster itself" in await running_env.wait_until_not_ready(GeoReplication, "far", "Invalid")
    await running_env.delete(GeoReplication, "far")
    await running_env.wait_until_gone(GeoReplication, "far")
    assert CLUSTER in await running_env.pulsar.admin.get("/v2/clusters")


async def test_failing_object_does_not_delay_other_objects(running_env):
    tenant = running_env.tenant
    await create_topic(running_env)
    await running_env.pulsar.admin.put(f"/v2/persistent/{tenant}/orders/unmanaged")
    await running_env.create(Tenant, "bad", name=f"{tenant}-bad", allowedClusters=["nowhere"])
    await running_env.wait_until_not_ready(Tenant, "bad", "Rejected")
    await running_env.delete(Topic, "topic")
    await running_env.delete(Namespace, "namespace")  # it cannot be deleted: it contains a topic that no object manages
    await running_env.wait_until_gone(Topic, "topic")
    await running_env.wait_until_not_ready(Namespace, "namespace", "InUse")
    await running_env.create(Tenant, "good", name=f"{tenant}-good")
    await running_env.wait_until_ready(Tenant, "good")
    await running_env.delete(Tenant, "good")
    await running_env.wait_until_gone(Tenant, "good")
    calls = [path for _, path, _ in running_env.pulsar.fake.calls]
    if not running_env.pulsar.real:
        assert (
            calls.count(f"/admin/v2/tenants/{tenant}-bad") <= 4
        )  # one reconcile each for finalizer, status.applied and condition
    await running_env.pulsar.admin.delete(f"/v2/persistent/{tenant}/orders/unmanaged")
    await running_env.change(
        Namespace, "namespace", lifecyclePolicy="CleanUpAfterDeletion"
    )  # any change triggers a reconcile
    await running_env.wait_until_gone(Namespace, "namespace")


async def test_token_is_read_from_the_secret_and_a_wrong_one_reported(env):
    if env.pulsar.real:
        pytest.skip("needs a Pulsar that wants a token")
    env.pulsar.fake.token = "right"
    await env.operator()
    await env.connect(authentication={"token": {"secretRef": {"name": "token", "key": "token"}}})
    assert "token" in await env.wait_until_not_ready(Connection, "pulsar", "SecretMissing")
    await env.client.create(fl.Secret("token", env.namespace, stringData={"token": "wrong"}))
    patch = {"metadata": {"labels": {"touched": "yes"}}}
    await env.client.patch(Connection, "pulsar", env.namespace, patch, type=PatchType.MERGE)
    assert "Check the token" in await env.wait_until_not_ready(Connection, "pulsar", "Forbidden")
    await env.client.patch(fl.Secret, "token", env.namespace, {"stringData": {"token": "right"}}, type=PatchType.MERGE)
    await env.change(Connection, "pulsar", clusterName="standalone-1")
    await env.wait_until_ready(Connection, "pulsar")
