"""Tests of the migration from the legacy operator: unused fields are removed, fields of other writers stay."""

import pytest
from waiting import there

from fairlead.api.world import World
from fairlead.client.client import PatchType
from fairlead_operators.httpproxy import controller, demo, gateway_controller
from fairlead_operators.httpproxy.kinds import CERT_HOSTNAME, EndpointSlice, Gateway

HTTP = [{"backends": [{"endpoint": "http://backend.example.com"}]}]


async def migrate_slice_to_http(env):
    """Let the legacy operator create a slice for https, start the operator, and change the backend to http."""
    async with demo.run_legacy(env.api.transport(), World(), env.namespace):
        await env.create()
        await env.wait_until(EndpointSlice, "web-0-0", there)
    await env.operator()
    await env.change("web", rules=HTTP)
    return await env.wait_until(EndpointSlice, "web-0-0", lambda obj: obj["ports"][0]["appProtocol"] == "http")


async def test_migrated_legacy_fields_are_removed_when_unused(env):
    assert CERT_HOSTNAME not in (await migrate_slice_to_http(env)).annotations


async def test_legacy_fields_stay_without_migration(env, monkeypatch):
    monkeypatch.setattr(controller, "LEGACY_FIELDS", {})
    assert CERT_HOSTNAME in (await migrate_slice_to_http(env)).annotations


async def migrate_shared_gateway(env):
    """Migrate a Gateway that the legacy operator and the gateway controller wrote with the same user agent.

    Then remove the user's hostname. Return the Gateway as it was before the migration.
    """
    async with (
        demo.run_legacy(env.api.transport(), World(), env.namespace),
        demo.run_legacy_gateway_controller(env.api.transport(), World(), env.namespace),
    ):
        await env.create(hostnames=["www.example.com"])
        created = await env.wait_until(
            Gateway, "web", lambda obj: there(obj) and gateway_controller.FINALIZER in obj.finalizers
        )
    assert len(created.spec["listeners"]) == 4
    writers = {entry["manager"] for entry in created.metadata["managedFields"] if "subresource" not in entry}
    assert writers == {demo.LEGACY_USER_AGENT}
    await env.operator()
    await env.change("web", hostnames=None)
    await env.wait_until(
        Gateway, "web", lambda obj: any(e["operation"] == "Apply" for e in obj.metadata["managedFields"])
    )
    return created


async def test_migration_keeps_hostnames_written_with_the_same_user_agent(env):
    created = await migrate_shared_gateway(env)
    assigned = created.spec["listeners"][0]["hostname"]
    after = await env.wait_until(Gateway, "web", lambda obj: len(obj.spec["listeners"]) == 2)
    assert [item["hostname"] for item in after.spec["listeners"]] == [assigned, assigned]
    assert gateway_controller.FINALIZER in after.finalizers


async def test_migrating_the_whole_spec_would_delete_foreign_hostnames(env, monkeypatch):
    monkeypatch.setattr(controller, "LEGACY_FIELDS", {Gateway: ["spec"]})
    await migrate_shared_gateway(env)
    after = await env.wait_until(Gateway, "web", lambda obj: len(obj.spec["listeners"]) == 2)
    assert [item.get("hostname") for item in after.spec["listeners"]] == [None, None]


@pytest.mark.parametrize("actor", ["operator", "gateway"])
async def test_migrated_child_is_not_migrated_again(env, actor):
    """After the migration, a change by either writer does not cause a second migration."""
    created = await migrate_shared_gateway(env)
    await env.wait_until(Gateway, "web", lambda obj: len(obj.spec["listeners"]) == 2)
    if actor == "operator":
        await env.change("web", hostnames=["new.example.com"])
        await env.wait_until(Gateway, "web", lambda obj: len(obj.spec["listeners"]) == 4)
    else:
        touch = {"metadata": {"annotations": {"touched": "by the gateway"}}}
        await env.client.patch(Gateway, "web", env.namespace, touch, type=PatchType.MERGE)
    after = await env.wait_until(Gateway, "web", there)
    assert after.uid == created.uid
    assert after.spec["listeners"][0]["hostname"] == created.spec["listeners"][0]["hostname"]
