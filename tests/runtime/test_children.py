"""Tests of the objects that a handler writes through its context, on both servers."""

import asyncio

import pytest

import fairlead as fl
from fairlead.api.errors import Invalid, NotFound
from fairlead.client.client import Client, PatchType
from fairlead.runtime.definitions import install_missing

Parent = fl.kind("children.example.com/v1", "Parent")


@pytest.fixture
async def client(api):
    client = Client(api.transport(), fl.World(), user_agent="somebody-else")
    await install_missing(client, [Parent])
    return client


def operator(function, **options):
    op = fl.Operator("parent")
    op.reconcile(Parent, owns=[fl.ConfigMap], **options)(function)
    return op


async def apply_children(obj, ctx):
    for name in obj.spec["children"]:
        await ctx.apply(fl.ConfigMap(name, data={"of": obj.name}))


async def test_apply_all_writes_concurrently_and_attempts_every_child(api, client):
    """Tests five children, two of which exist and are not ours: apply_all creates the other three and prunes none."""

    async def apply_all_children(obj, ctx):
        config_maps = await ctx.apply_all(fl.ConfigMap(name, data={"of": obj.name}) for name in obj.spec["children"])
        ctx.status(children=[child.name for child in config_maps])

    class ConcurrencyRecorder:
        """A transport that records the highest number of concurrent requests.

        Before it sends a request, it waits for another one.
        """

        def __init__(self, transport):
            self.transport, self.active, self.peak = transport, 0, 0

        async def request(self, request):
            self.active += "configmaps/" in request.path
            self.peak = max(self.peak, self.active)
            try:
                await asyncio.sleep(0)
                return await self.transport.request(request)
            finally:
                self.active -= "configmaps/" in request.path

        def __getattr__(self, name):
            return getattr(self.transport, name)

    for name in ("b", "d"):
        await client.create(fl.ConfigMap(name, api.namespace, data={"by": "hand"}))
    await client.create(Parent("p", api.namespace, spec={"children": list("abcde")}))
    concurrency_recorder = ConcurrencyRecorder(api.transport())
    async with operator(apply_all_children).running(
        concurrency_recorder, namespaces=[api.namespace], tries=2
    ) as running:
        await running.wait_until_idle()
        children = {child.name: child["data"] for child in (await client.list(fl.ConfigMap, api.namespace)).items}
        assert {name: children[name] for name in "abcde"} == {
            name: {"by": "hand"} if name in "bd" else {"of": "p"} for name in "abcde"
        }
        assert (await client.get(Parent, "p", api.namespace)).condition("Ready")["reason"] == "ForeignObject"
        assert concurrency_recorder.peak > 1
        for name in ("b", "d"):
            await client.delete(fl.ConfigMap, name, api.namespace)
        running.resync()
        await running.wait_until_idle()
        assert (await client.get(Parent, "p", api.namespace)).status["children"] == list("abcde")


async def test_two_payloads_for_one_child_in_a_pass_are_rejected(api, client):
    """Tests two different payloads for one child: without the error, each pass would remove fields of the other
    payload.
    """

    async def apply_two_payloads(obj, ctx):
        for data in ({"a": "1"}, {"a": "1"}, {"b": "2"}):
            await ctx.apply(fl.ConfigMap("c", data=data))

    await client.create(Parent("p", api.namespace, spec={}))
    async with operator(apply_two_payloads).running(api.transport(), namespaces=[api.namespace], tries=2) as running:
        await running.wait_until_idle()
        ready_condition = (await client.get(Parent, "p", api.namespace)).condition("Ready")
        assert (ready_condition["status"], ready_condition["reason"]) == ("False", "DuplicatePayload")
        assert "one payload" in ready_condition["message"]
        assert (await client.get(fl.ConfigMap, "c", api.namespace))["data"] == {"a": "1"}


async def test_another_payload_may_follow_a_rejected_one_in_the_same_pass(api, client):
    async def apply_other_payload(obj, ctx):
        try:
            await ctx.apply(fl.ConfigMap("c", data={"no key/": "1"}))
        except Invalid:
            await ctx.apply(fl.ConfigMap("c", data={"a": "1"}))

    await client.create(Parent("p", api.namespace, spec={}))
    async with operator(apply_other_payload).running(api.transport(), namespaces=[api.namespace]) as running:
        await running.wait_until_idle()
        assert (await client.get(fl.ConfigMap, "c", api.namespace))["data"] == {"a": "1"}


async def test_foreign_object_is_reported_in_the_condition_and_not_changed(api, client, caplog):
    await client.create(fl.ConfigMap("a", api.namespace, data={"by": "hand"}))
    await client.create(Parent("p", api.namespace, spec={"children": ["a"]}))
    async with operator(apply_children).running(api.transport(), namespaces=[api.namespace], tries=3) as running:
        await running.wait_until_idle()
    ready_condition = (await client.get(Parent, "p", api.namespace)).condition("Ready")
    assert (ready_condition["status"], ready_condition["reason"]) == ("False", "ForeignObject")
    assert "choose another name" in ready_condition["message"]
    assert "adopt" not in ready_condition["message"]  # The reader of a condition has kubectl, not the code.
    assert "adopt=True" in caplog.text
    assert (await client.get(fl.ConfigMap, "a", api.namespace))["data"] == {"by": "hand"}


async def test_create_makes_an_object_once_and_keeps_later_edits(api, client):
    async def create_child(obj, ctx):
        await ctx.create(fl.ConfigMap("settings", data={"colour": "blue"}))

    await client.create(Parent("p", api.namespace, spec={}))
    async with operator(create_child).running(api.transport(), namespaces=[api.namespace]) as running:
        await running.wait_until_idle()
        edit = {"data": {"colour": "red"}}
        await running.wait_until_seen(
            await client.patch(fl.ConfigMap, "settings", api.namespace, edit, type=PatchType.MERGE)
        )
        running.resync()
        await running.wait_until_idle()
        assert (await client.get(fl.ConfigMap, "settings", api.namespace))["data"] == {"colour": "red"}


async def test_failure_is_recorded_as_an_event(api, client):
    async def record_failure(obj, ctx):
        ctx.event("Noticed", "something of note")
        raise fl.Terminal("BadSpec", "the colour is unknown")

    await client.create(Parent("p", api.namespace, spec={}))
    async with operator(record_failure).running(api.transport(), namespaces=[api.namespace]) as running:
        await running.wait_until_idle()
    events = (await client.list(fl.Event, api.namespace)).items
    recorded = {(event["type"], event["reason"], event["message"]) for event in events}
    assert recorded == {("Normal", "Noticed", "something of note"), ("Warning", "BadSpec", "the colour is unknown")}


async def test_delete_spares_an_object_that_was_recreated(api, client):
    reads = []

    async def delete_victim(obj, ctx):
        victim = await ctx.live.get(fl.ConfigMap, "victim")
        if victim is not None and not reads:
            reads.append(victim.uid)
            await client.delete(fl.ConfigMap, "victim", api.namespace)
            await client.create(fl.ConfigMap("victim", api.namespace))
            await ctx.delete(victim)

    await client.create(fl.ConfigMap("victim", api.namespace))
    await client.create(Parent("p", api.namespace, spec={}))
    async with operator(delete_victim).running(api.transport(), namespaces=[api.namespace]) as running:
        await running.wait_until_idle()
        assert (await client.get(fl.ConfigMap, "victim", api.namespace)).uid != reads[0]


async def test_cache_sees_a_write_of_the_plain_client(api, client):
    reads = []

    async def write(obj, ctx):
        if not reads:
            await ctx.unguarded.create(fl.ConfigMap("raw", api.namespace))
            reads.append(ctx.get(fl.ConfigMap, "raw") is not None)
            await ctx.unguarded.delete(fl.ConfigMap, "raw", api.namespace)
            reads.append(ctx.get(fl.ConfigMap, "raw") is None)

    await client.create(Parent("p", api.namespace, spec={}))
    async with operator(write).running(api.transport(), namespaces=[api.namespace]) as running:
        await running.wait_until_idle()
    assert reads == [True, True]
    with pytest.raises(NotFound):
        await client.get(fl.ConfigMap, "raw", api.namespace)
