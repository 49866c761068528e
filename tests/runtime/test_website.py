"""Tests of the website example of the documentation: a decision, children, an external service, and cleanup."""

import importlib.util
from pathlib import Path

import pytest

import fairlead as fl
from fairlead.api.errors import NotFound
from fairlead.client.client import Client
from fairlead.runtime.definitions import install_missing

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "website.py"


@pytest.fixture
def website():
    spec = importlib.util.spec_from_file_location("website", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def website_object(website, api, name, host):
    return website.Website(name, api.namespace, spec={"host": host, "html": "<h1>Hello & welcome</h1>"})


async def test_website_waits_serves_and_cleans_up(api, website, recording_transport):
    client = Client(api.transport(), fl.World())
    await install_missing(client, [website.Website])
    registrar = website.Registrar()
    created = await client.create(website_object(website, api, "hello", "hello.example.com"))
    transport = recording_transport(api.transport())
    running = website.op.running(transport, namespaces=[api.namespace], resources={"registrar": registrar})
    async with running as running:
        await running.wait_until_idle()
        website_read = await client.get(website.Website, "hello", api.namespace)
        assert (website_read.condition("Ready")["reason"], website_read.status["port"]) == ("Starting", 8080)
        assert website_read.finalizers == ["example.com/websites"]
        assert registrar.names == {"hello.example.com": created.uid}

        deployment = await client.get(fl.Deployment, "hello", api.namespace)
        available = {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "up"}
        status = {"conditions": [available]}
        await running.wait_until_seen(
            await client.replace(fl.Object(deployment | {"status": status}), subresource="status")
        )
        await running.wait_until_idle()
        assert (await client.get(website.Website, "hello", api.namespace)).is_true("Ready")
        transport.requests.clear()
        running.resync()
        await running.wait_until_idle()
        # Events are written in the background, and the first one needs discovery.
        other_requests = [
            request for request in transport.requests if "events" not in request[1] and request[1] != "/api"
        ]
        assert other_requests == [], "a steady state sends nothing"

        conflicting_website = await client.create(website_object(website, api, "other", "hello.example.com"))
        await running.wait_until_seen(conflicting_website)
        await running.wait_until_idle()
        taken_condition = (await client.get(website.Website, "other", api.namespace)).condition("Ready")
        assert (taken_condition["status"], taken_condition["reason"]) == ("False", "HostTaken")

        await running.wait_until_seen(await client.delete(website.Website, "hello", api.namespace))
        await running.wait_until_idle()
        assert registrar.names == {}
        with pytest.raises(NotFound):
            await client.get(website.Website, "hello", api.namespace)
