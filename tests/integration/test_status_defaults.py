"""Tests of status defaults in a schema: reads return them, and the first write stores them."""

from fairlead.api.world import World
from fairlead.client.client import Client
from fairlead_operators.httpproxy import demo
from fairlead_operators.httpproxy.kinds import Gateway

LISTENER = {"name": "default-http", "port": 80, "protocol": "HTTP"}


async def made(api, name="one"):
    client = Client(api.transport(), World())
    await demo.install(client)
    return client, Gateway(name, api.namespace, spec={"gatewayClassName": "any", "listeners": [LISTENER]})


async def test_a_status_default_is_set_on_create(api):
    client, payload = await made(api)
    created = await client.create(payload)
    assert [c["status"] for c in created.status["conditions"]] == ["Unknown", "Unknown"]
    assert (await client.get(Gateway, "one", api.namespace)) == created


async def test_only_the_first_unchanged_write_changes_the_version(api):
    client, payload = await made(api)
    answers = [await client.create(payload)]
    for _ in range(3):
        answers.append(await client.replace(answers[-1]))
    versions = [answer.resource_version for answer in answers]
    assert versions[0] != versions[1]
    assert versions[1] == versions[2] == versions[3]


async def test_only_the_first_unchanged_apply_changes_the_version(api):
    client, payload = await made(api)
    versions = [(await client.apply(payload, field_manager="m")).resource_version for _ in range(4)]
    assert versions[0] != versions[1]
    assert versions[1] == versions[2] == versions[3]
