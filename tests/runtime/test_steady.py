"""A whole operator on an object with twenty children, on each server: at rest it sends nothing, a change costs one."""

import fairlead as fl
from fairlead.client.client import Client, PatchType
from fairlead.runtime.definitions import install_missing

Thing = fl.kind("steady.example.com/v1", "Thing")


async def test_twenty_children_cost_nothing_at_rest_and_one_changed_field_costs_one_request(api, counting):
    client = Client(api.transport(), fl.World())
    await install_missing(client, [Thing])
    op, texts = fl.Operator("steady"), ["same"] * 20

    @op.reconcile(Thing, owns=[fl.ConfigMap])
    async def reconcile(obj, ctx):
        for number, text in enumerate(texts):
            await ctx.apply(fl.ConfigMap(f"child-{number}", data={"text": text}))
        ctx.status(children=len(texts))

    await client.create(Thing("a", api.namespace, spec={}))
    wire = counting(api.transport())
    async with op.running(wire, namespaces=[api.namespace]) as running:
        await running.wait_until_idle()
        wire.requests.clear()
        running.resync()
        await running.wait_until_idle()
        assert wire.requests == []

        texts[7] = "changed"
        running.resync()
        await running.wait_until_idle()
        path = f"/api/v1/namespaces/{api.namespace}/configmaps/child-7"
        assert wire.requests == [("PATCH", path, 200)]

        wire.requests.clear()  # and a foreign change of one field of one child is put right by one
        drift = {"data": {"text": "drift"}}
        edited = await client.patch(fl.ConfigMap, "child-3", api.namespace, drift, type=PatchType.MERGE)
        await running.wait_until_seen(edited)
        await running.wait_until_idle()
        assert [request[:2] for request in wire.requests] == [("PATCH", path.replace("child-7", "child-3"))]
