"""Kinds and namespaces that are not watched: one warning each, with the remedy, and no blocked clean-up."""

import pytest
from waiting import gone, until

import fairlead as fl
from fairlead.client.client import Client
from fairlead.runtime.definitions import install_missing

Thing = fl.kind("unwatched.example.com/v1", "Thing")


@pytest.fixture
async def client(api):
    client = Client(api.transport(), fl.World(), user_agent="somebody-else")
    await install_missing(client, [Thing])
    return client


async def run_twice(op, api):
    async with op.running(api.transport(), namespaces=[api.namespace]) as running:
        await running.wait_until_idle()
        running.resync()
        await running.wait_until_idle()
        return dict(running.failures)


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


async def test_applied_kind_that_is_not_watched_is_warned_about_once(api, client, caplog):
    op = fl.Operator("tester")

    @op.reconcile(Thing)
    async def reconcile(obj, ctx):
        await ctx.apply(fl.ConfigMap(obj.name, data={"a": "1"}))

    for name in ("a", "b"):
        await client.create(Thing(name, api.namespace, spec={}))
    assert await run_twice(op, api) == {}
    assert len(warnings(caplog)) == 1
    assert "ConfigMap is applied, but the operator does not watch it" in warnings(caplog)[0]
    assert "owns= or watches=" in warnings(caplog)[0]


async def test_payload_outside_the_watched_namespaces_is_warned_about_once(api, client, caplog):
    op, other = fl.Operator("tester"), f"{api.namespace}-other"

    @op.reconcile(Thing, owns=[fl.ConfigMap])
    async def reconcile(obj, ctx):
        await ctx.apply(fl.ConfigMap(obj.name, other, data={"a": "1"}), owned=False)

    await client.create(fl.Namespace(other))
    await client.create(Thing("a", api.namespace, spec={}))
    assert await run_twice(op, api) == {}
    assert len(warnings(caplog)) == 1
    assert f"in the namespace {other}, which the operator does not watch" in warnings(caplog)[0]
    assert f"-n {other}" in warnings(caplog)[0]


async def test_operator_without_controllers_is_warned_about(api, client, caplog):
    async with fl.Operator("empty").running(api.transport()):
        assert "declare one with @op.reconcile" in warnings(caplog)[0]


async def test_unwatched_kind_and_unwatched_namespace_are_distinguished(api, client):
    messages = []
    op = fl.Operator("tester")

    @op.reconcile(Thing, owns=[fl.ConfigMap])
    async def reconcile(obj, ctx):
        for kind, namespace in ((fl.Secret, None), (fl.ConfigMap, "kube-system")):
            with pytest.raises(fl.errors.NotWatched) as caught:
                ctx.get(kind, "a", namespace)
            messages.append(str(caught.value))

    await client.create(Thing("a", api.namespace, spec={}))
    assert await run_twice(op, api) == {}
    assert messages[0].startswith("Secret is not watched: name it in owns=")
    assert messages[1].startswith("the namespace kube-system is not watched: run with -n kube-system")


async def test_clean_up_that_reads_an_unwatched_kind_ends(api, client, caplog):
    found, op = [], fl.Operator("tester")
    op.reconcile(Thing)(lambda obj, ctx: None)

    @op.cleanup(Thing)
    async def clean(obj, ctx):
        mine = ctx.get(fl.ConfigMap, "mine")
        listed = [one.name for one in ctx.list(fl.ConfigMap, labels="a=b")]
        found.append((mine["data"], ctx.get(fl.ConfigMap, "absent"), listed, ctx.children(fl.ConfigMap)))

    config = fl.ConfigMap("mine", api.namespace, data={"a": "1"})
    config["metadata"]["labels"] = {"a": "b"}
    await client.create(config)
    await client.create(Thing("a", api.namespace, spec={}))
    async with op.running(api.transport(), namespaces=[api.namespace]) as running:
        await running.wait_until_idle()
        await client.delete(Thing, "a", api.namespace)
        await until(client, Thing, "a", api.namespace, gone)
    assert found == [({"a": "1"}, None, ["mine"], [])]
    assert "the clean-up reads from the server instead: ConfigMap is not watched" in caplog.text
