"""What a user's own tests get from the pytest plugin."""

import fairlead as fl
from fairlead.client.client import Client


async def test_an_operator_can_be_tested_on_a_server_of_its_own(fairlead_server):
    op = fl.Operator("greeter")
    seen = []

    @op.reconcile(fl.ConfigMap, ready=None)
    async def look(obj, ctx):
        seen.append(obj.name)

    transport = fairlead_server.transport()
    await Client(transport, fl.World()).create(fl.ConfigMap("hello", "default"))
    async with op.running(transport) as running:
        await running.quiet()
    assert seen == ["hello"]
