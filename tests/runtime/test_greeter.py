"""Tests of the greeter example of the documentation, on both servers."""

import asyncio
import contextlib
import importlib.util
from pathlib import Path

import pytest

import fairlead as fl
from fairlead.api.errors import NotFound
from fairlead.client.client import Client, PatchType
from fairlead.runtime.definitions import install_missing

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture
def greeter():
    spec = importlib.util.spec_from_file_location("greeter", EXAMPLES / "greeter.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def wait_for_greeting(client, namespace, name):
    async with asyncio.timeout(10):
        while True:
            with contextlib.suppress(NotFound):
                return await client.get(fl.ConfigMap, name, namespace)
            await asyncio.sleep(0.01)


async def test_greeter_creates_its_config_map_and_then_sends_nothing(api, greeter, recording_transport):
    client = Client(api.transport(), fl.World())
    await install_missing(client, [greeter.Greeting])
    await client.create(greeter.Greeting("hello", api.namespace, spec={"who": "world"}))
    transport = recording_transport(api.transport())
    async with greeter.op.running(transport, namespaces=[api.namespace]) as running:
        await running.wait_until_idle()
        config_map = await client.get(fl.ConfigMap, "hello", api.namespace)
        assert config_map["data"] == {"text": "Hello, world"}
        greeting = await client.get(greeter.Greeting, "hello", api.namespace)
        assert greeting.is_true("Ready")
        assert greeting.status["observedGeneration"] == 1
        assert config_map.metadata["ownerReferences"][0]["uid"] == greeting.uid

        transport.requests.clear()
        for _ in range(3):
            running.resync()
            await running.wait_until_idle()
        assert transport.requests == [], "a steady state sends nothing"
        metric_value = running.metrics.registry.get_sample_value
        assert metric_value("controller_runtime_reconcile_total", {"controller": "greeting", "result": "success"}) >= 4

        change = {"spec": {"who": "moon"}}
        await running.wait_until_seen(
            await client.patch(greeter.Greeting, "hello", api.namespace, change, type=PatchType.MERGE)
        )
        await running.wait_until_idle()
        assert (await client.get(fl.ConfigMap, "hello", api.namespace))["data"] == {"text": "Hello, moon"}

        await client.delete(fl.ConfigMap, "hello", api.namespace)
        assert (await wait_for_greeting(client, api.namespace, "hello"))["data"] == {"text": "Hello, moon"}
        await running.wait_until_idle()
        assert running.failures == {}
