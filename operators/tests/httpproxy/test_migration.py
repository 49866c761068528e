"""Objects that the operator before this one made: what is left out goes, what others wrote stays."""

import pytest
from waiting import there

from fairlead.api.world import World
from fairlead.client.client import PatchType
from fairlead_operators.httpproxy import controller, demo, gateway_controller
from fairlead_operators.httpproxy.kinds import CERT_HOSTNAME, EndpointSlice, Gateway

HTTP = [{"backends": [{"endpoint": "http://backend.example.com"}]}]


async def legacy_then_http(env):
    """A slice that the old operator made for https; then ours takes over, and the backend turns to http."""
    async with demo.run_legacy(env.api.transport(), World(), env.namespace):
        await env.create()
        await env.until(EndpointSlice, "web-0-0", there)
    await env.operator()
    await env.change("web", rules=HTTP)
    return await env.until(EndpointSlice, "web-0-0", lambda obj: obj["ports"][0]["appProtocol"] == "http")


async def test_migrated_legacy_fields_are_removed_when_unused(env):
    assert CERT_HOSTNAME not in (await legacy_then_http(env)).annotations


async def test_legacy_fields_stay_without_migration(env, monkeypatch):
    monkeypatch.setattr(controller, "LEGACY_FIELDS", {})
    assert CERT_HOSTNAME in (await legacy_then_http(env)).annotations


async def two_under_one_name(env):
    """A Gateway for two hostnames that the old operator and the old gateway controller wrote under one User-Agent; then
    ours takes over, and the user takes both hostnames away. The Gateway once two of its four listeners were dropped, or
    once ours has applied it."""
    async with (
        demo.run_legacy(env.api.transport(), World(), env.namespace),
        demo.run_legacy_gateway_controller(env.api.transport(), World(), env.namespace),
    ):
        await env.create(hostnames=["www.example.com"])
        made = await env.until(
            Gateway, "web", lambda obj: there(obj) and gateway_controller.FINALIZER in obj.finalizers
        )
    assert len(made.spec["listeners"]) == 4
    writers = {entry["manager"] for entry in made.metadata["managedFields"] if "subresource" not in entry}
    assert writers == {demo.LEGACY_USER_AGENT}
    await env.operator()
    await env.change("web", hostnames=None)
    await env.until(Gateway, "web", lambda obj: any(e["operation"] == "Apply" for e in obj.metadata["managedFields"]))
    return made


async def test_migration_keeps_hostnames_written_with_the_same_user_agent(env):
    made = await two_under_one_name(env)
    assigned = made.spec["listeners"][0]["hostname"]
    after = await env.until(Gateway, "web", lambda obj: len(obj.spec["listeners"]) == 2)
    assert [item["hostname"] for item in after.spec["listeners"]] == [assigned, assigned]
    assert gateway_controller.FINALIZER in after.finalizers


async def test_migrating_the_whole_spec_would_delete_foreign_hostnames(env, monkeypatch):
    monkeypatch.setattr(controller, "LEGACY_FIELDS", {Gateway: ["spec"]})
    await two_under_one_name(env)
    after = await env.until(Gateway, "web", lambda obj: len(obj.spec["listeners"]) == 2)
    assert [item.get("hostname") for item in after.spec["listeners"]] == [None, None]


@pytest.mark.parametrize("who", ["operator", "gateway"])
async def test_migrated_child_is_not_migrated_again(env, who):
    """Migration happens once: afterwards neither writer's change makes ours move ownership again."""
    made = await two_under_one_name(env)
    await env.until(Gateway, "web", lambda obj: len(obj.spec["listeners"]) == 2)
    if who == "operator":
        await env.change("web", hostnames=["new.example.com"])
        await env.until(Gateway, "web", lambda obj: len(obj.spec["listeners"]) == 4)
    else:
        touch = {"metadata": {"annotations": {"touched": "by the gateway"}}}
        await env.client.patch(Gateway, "web", env.namespace, touch, type=PatchType.MERGE)
    after = await env.until(Gateway, "web", there)
    assert after.uid == made.uid
    assert after.spec["listeners"][0]["hostname"] == made.spec["listeners"][0]["hostname"]
