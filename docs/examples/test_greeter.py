"""How an operator is tested: docs/how-to/test-an-operator.md explains each part."""

import asyncio

import pytest
from greeter import Greeting, op

import fairlead as fl
from fairlead.server.faults import Fault


async def test_a_greeting_is_answered_and_follows_its_spec(cluster, operator):
    greeting = await cluster.create(Greeting("hello", spec={"who": "world"}))
    await operator(op)
    await cluster.wait_until_idle()
    assert (await cluster.get(fl.ConfigMap, "hello"))["data"] == {"text": "Hello, world"}

    await cluster.edit(greeting, spec={"who": "moon"})
    await cluster.wait_until_idle()
    assert (await cluster.get(fl.ConfigMap, "hello"))["data"] == {"text": "Hello, moon"}
    assert (await cluster.get(Greeting, "hello")).is_true("Ready")


async def test_at_rest_nothing_is_sent(cluster, operator):
    await cluster.create(Greeting("hello", spec={"who": "world"}))
    running = await operator(op)
    await cluster.wait_until_idle()
    before = cluster.request_counts[0].copy()
    running.resync()
    await cluster.wait_until_idle()
    assert cluster.request_counts[0] == before


async def test_what_fails_for_a_while_is_put_right(cluster, operator):
    faults = cluster.faults(
        Fault(status=503, verb="patch", count=6),
        Fault(drop="after", verb="patch", count=2),
        Fault(cut=20.0),
        seed=7,
    )
    await operator(op)
    await cluster.create(Greeting("hello", spec={"who": "world"}))
    await cluster.wait_until_idle()
    assert (await cluster.get(fl.ConfigMap, "hello"))["data"] == {"text": "Hello, world"}
    assert faults.counts["503"] == 6
    await cluster.check_caches()


async def test_a_day_passes_at_once(cluster, operator):
    if cluster.world.clock.__class__.__name__ != "VirtualClock":
        pytest.skip("nobody waits a day for a test")
    running = await operator(op)
    await asyncio.sleep(24 * 3600)
    assert running.unready() == {}
