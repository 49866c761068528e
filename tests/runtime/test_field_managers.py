"""Tests of the field managers of controllers, and of fields whose field manager was renamed."""

import pytest

import fairlead as fl
from fairlead.client.client import Client
from fairlead.runtime.definitions import install_missing

Thing = fl.kind("managers.example.com/v1", "Thing")
Other = fl.kind("managers.example.com/v1", "Other")


@pytest.fixture
async def client(api):
    client = Client(api.transport(), fl.World())
    await install_missing(client, [Thing, Other])
    return client


def operator_applying(data, *, more_kinds=(), **options):
    op = fl.Operator("tester", **options)

    @op.reconcile(Thing, owns=[fl.ConfigMap])
    async def reconcile(obj, ctx):
        await ctx.apply(fl.ConfigMap("child", data=data))
        await ctx.apply(fl.ConfigMap("unowned", data=data), owned=False)
        await ctx.prune(fl.ConfigMap)

    for kind in more_kinds:
        op.reconcile(kind)(lambda obj, ctx: None)
    return op


async def run_until_idle(op, api):
    async with op.running(api.transport(), namespaces=[api.namespace]) as running:
        await running.wait_until_idle()
        assert running.failures == {}


def managers(child):
    return sorted(entry["manager"] for entry in child.metadata["managedFields"] if entry["operation"] == "Apply")


async def test_second_controller_does_not_change_the_first_field_manager(api, client):
    await client.create(Thing("a", api.namespace, spec={}))
    await run_until_idle(operator_applying({"kept": "1", "dropped": "1"}), api)
    await run_until_idle(operator_applying({"kept": "2"}, more_kinds=[Other]), api)
    child = await client.get(fl.ConfigMap, "child", api.namespace)
    assert child["data"] == {"kept": "2"}
    assert managers(child) == ["tester/thing"]


@pytest.mark.parametrize("name", ["child", "unowned"])
async def test_field_of_a_former_manager_is_removed_when_left_out(api, client, name):
    """Tests that `formerly` removes a field that the payload leaves out.

    Without `formerly`, the old field manager keeps it.
    """
    thing = await client.create(Thing("a", api.namespace, spec={}))
    owner = {"apiVersion": Thing.api_version, "kind": "Thing", "name": "a", "uid": thing.uid, "controller": True}
    old_data = {"kept": "1", "dropped": "1"}
    for child_name, owner_references in (("child", [{**owner, "blockOwnerDeletion": True}]), ("unowned", [])):
        body = fl.ConfigMap(child_name, api.namespace, data=old_data)
        body["metadata"] |= {"ownerReferences": owner_references} if owner_references else {}
        await client.apply(body, field_manager="greeter")
    applied_without_formerly = await client.apply(
        fl.ConfigMap("child", api.namespace, data={"kept": "1"}), field_manager="tester/thing", dry_run=True
    )
    assert applied_without_formerly["data"] == old_data
    foreign_config_map = fl.ConfigMap(name, api.namespace, data={"foreign": "x"})
    await client.apply(foreign_config_map, field_manager="somebody", force=False)
    await run_until_idle(operator_applying({"kept": "2"}, formerly=("greeter",)), api)
    child = await client.get(fl.ConfigMap, name, api.namespace)
    assert child["data"] == {"kept": "2", "foreign": "x"}
    assert managers(child) == ["somebody", "tester/thing"]


async def test_children_of_a_former_field_manager_are_pruned(api, client):
    thing = await client.create(Thing("a", api.namespace, spec={}))
    owner = {"apiVersion": Thing.api_version, "kind": "Thing", "name": "a", "uid": thing.uid, "controller": True}
    body = fl.ConfigMap("old", api.namespace, data={"a": "b"})
    body["metadata"]["ownerReferences"] = [owner]
    await client.apply(body, field_manager="greeter")
    await run_until_idle(operator_applying({"a": "b"}, formerly=("greeter",)), api)
    names = {config_map.name for config_map in (await client.list(fl.ConfigMap, api.namespace)).items}
    assert names & {"old", "child", "unowned"} == {"child", "unowned"}
