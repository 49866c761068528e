"""Tests that an operator with twenty children sends no requests in the steady state, and one per changed child."""

import fairlead as fl
from fairlead.client.client import Client, PatchType
from fairlead.runtime.definitions import install_missing

Thing = fl.kind("steady.example.com/v1", "Thing")


async def test_one_changed_field_of_twenty_children_costs_one_request(api, recording_transport):
    client = Client(api.transport(), fl.World())
    await install_missing(client, [Thing])
    op, texts = fl.Operator("steady"), ["same"] * 20

    @op.reconcile(Thing, owns=[fl.ConfigMap])
    async def reconcile(obj, ctx):
        for number, text in enumerate(texts):
            await ctx.apply(fl.ConfigMap(f"child-{number}", data={"text": text}))
        ctx.status(children=len(texts))

    await client.create(Thing("a", api.namespace, spec={}))
    transport = recording_transport(api.transport())
    async with op.running(transport, namespaces=[api.namespace]) as running:
        await running.wait_until_idle()
        transport.requests.clear()
        running.resync()
        await running.wait_until_idle()
        assert transport.requests == []

        texts[7] = "changed"
        running.resync()
        await running.wait_until_idle()
        path = f"/api/v1/namespaces/{api.namespace}/configmaps/child-7"
        assert transport.requests == [("PATCH", path, 200)]

        transport.requests.clear()  # A foreign change of one field of one child costs one request.
        foreign_patch = {"data": {"text": "drift"}}
        patched_child = await client.patch(fl.ConfigMap, "child-3", api.namespace, foreign_patch, type=PatchType.MERGE)
        await running.wait_until_seen(patched_child)
        await running.wait_until_idle()
        assert [request[:2] for request in transport.requests] == [("PATCH", path.replace("child-7", "child-3"))]
