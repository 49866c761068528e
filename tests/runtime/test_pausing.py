"""The pause annotation: no handler, no write and no clean-up for an object until it is removed."""

import pytest

import fairlead as fl
from fairlead.api.errors import NotFound
from fairlead.client.client import Client, PatchType
from fairlead.runtime.definitions import install_missing
from fairlead.runtime.pausing import is_paused

Thing = fl.kind("pausing.example.com/v1", "Thing")
PAUSED = {"metadata": {"annotations": {"fairlead.dev/paused": "true"}}}
RESUMED = {"metadata": {"annotations": {"fairlead.dev/paused": None}}}


@pytest.fixture
async def client(api):
    client = Client(api.transport(), fl.World(), user_agent="somebody-else")
    await install_missing(client, [Thing])
    return client


def operator(log):
    op = fl.Operator("tester")

    @op.reconcile(Thing, owns=[fl.ConfigMap])
    async def reconcile(obj, ctx):
        log.append(("reconcile", obj.name))
        await ctx.apply(fl.ConfigMap(obj.name, data={"text": obj.spec["text"]}))

    @op.cleanup(Thing)
    async def clean(obj, ctx):
        log.append(("clean", obj.name))

    return op


async def test_paused_object_is_left_alone_until_the_annotation_is_removed(api, client, caplog):
    caplog.set_level("INFO")
    log = []

    async def edit(patch):
        seen = await client.patch(Thing, "a", api.namespace, patch, type=PatchType.MERGE)
        await running.wait_until_seen(seen)
        await running.wait_until_idle()

    await client.create(Thing("a", api.namespace, spec={"text": "1"}))
    async with operator(log).running(api.transport(), namespaces=[api.namespace]) as running:
        await running.wait_until_idle()
        await edit(PAUSED)
        log.clear()
        await edit({"spec": {"text": "2"}})
        await edit({"spec": {"text": "3"}})
        before = await client.get(Thing, "a", api.namespace)
        await client.delete(fl.ConfigMap, "a", api.namespace)
        running.resync()
        await running.wait_until_idle()
        assert log == []
        assert await client.get(Thing, "a", api.namespace) == before
        await edit(RESUMED)
        assert log[:1] == [("reconcile", "a")]
        assert (await client.get(fl.ConfigMap, "a", api.namespace))["data"] == {"text": "3"}
    messages = [record.getMessage() for record in caplog.records]
    assert len([message for message in messages if message.startswith("paused")]) == 1
    events = [event for event in (await client.list(fl.Event, api.namespace)).items if event["reason"] == "Paused"]
    assert [(event["type"], event["count"]) for event in events] == [("Normal", 1)]
    assert "fairlead.dev/paused" in events[0]["message"]


async def test_clean_up_of_a_paused_object_waits(api, client):
    log = []
    await client.create(Thing("a", api.namespace, spec={"text": "1"}))
    async with operator(log).running(api.transport(), namespaces=[api.namespace]) as running:
        await running.wait_until_idle()
        await running.wait_until_seen(await client.patch(Thing, "a", api.namespace, PAUSED, type=PatchType.MERGE))
        await running.wait_until_idle()
        log.clear()
        await client.delete(Thing, "a", api.namespace)
        await running.wait_until_seen(await client.get(Thing, "a", api.namespace))
        await running.wait_until_idle()
        assert log == []
        await running.wait_until_seen(await client.patch(Thing, "a", api.namespace, RESUMED, type=PatchType.MERGE))
        await running.wait_until_idle()
        assert log == [("clean", "a")]
        with pytest.raises(NotFound):
            await client.get(Thing, "a", api.namespace)


async def test_predicate_does_not_hide_that_an_object_is_resumed(api, client):
    log = []
    thing = Thing("a", api.namespace, spec={})
    thing["metadata"] |= PAUSED["metadata"]
    await client.create(thing)
    op = fl.Operator("tester")
    op.reconcile(fl.select(Thing, when_changed=fl.generation_changed))(lambda obj, ctx: log.append(obj.name))
    async with op.running(api.transport(), namespaces=[api.namespace]) as running:
        await running.wait_until_idle()
        assert log == []
        await running.wait_until_seen(await client.patch(Thing, "a", api.namespace, RESUMED, type=PatchType.MERGE))
        await running.wait_until_idle()
        assert log == ["a"]


@pytest.mark.parametrize(
    ("value", "paused"), [("true", True), ("True", True), ("yes", True), ("", True), ("false", False), (None, False)]
)
def test_every_value_but_false_pauses(value, paused):
    annotations = {} if value is None else {"fairlead.dev/paused": value}
    assert is_paused(fl.Object({"metadata": {"annotations": annotations}})) is paused
