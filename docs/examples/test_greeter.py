"""Tests of the greeter. docs/how-to/test-an-operator.md explains each part."""

import asyncio

import pytest
from greeter import Greeting, op

import fairlead as fl
from fairlead.testing import Cluster, Fault, StartOperator, VirtualClock


async def greeting_text(cluster: Cluster) -> object:
    config_map = await cluster.get(fl.ConfigMap, "hello")
    assert config_map is not None
    return config_map["data"]["text"]


async def test_config_map_follows_the_spec(cluster: Cluster, operator: StartOperator) -> None:
    greeting = await cluster.create(Greeting("hello", spec={"who": "world"}))
    await operator(op)
    await cluster.wait_until_idle()
    assert await greeting_text(cluster) == "Hello, world"

    await cluster.edit(greeting, spec={"who": "moon"})
    await cluster.wait_until_idle()
    assert await greeting_text(cluster) == "Hello, moon"


async def test_object_becomes_ready(cluster: Cluster, operator: StartOperator) -> None:
    await cluster.create(Greeting("hello", spec={"who": "world"}))
    await operator(op)
    await cluster.wait_until_idle()
    greeting = await cluster.get(Greeting, "hello")
    assert greeting is not None
    assert greeting.is_true("Ready")


async def test_resync_sends_no_request(cluster: Cluster, operator: StartOperator) -> None:
    await cluster.create(Greeting("hello", spec={"who": "world"}))
    running = await operator(op)
    await cluster.wait_until_idle()
    before = cluster.request_counts[0].copy()
    running.resync()
    await cluster.wait_until_idle()
    assert cluster.request_counts[0] == before


async def test_operator_recovers_from_faults(cluster: Cluster, operator: StartOperator) -> None:
    faults = cluster.faults(
        Fault(status=503, verb="patch", count=6),
        Fault(drop="after", verb="patch", count=2),
        Fault(cut=20.0),
        seed=7,
    )
    await operator(op)
    await cluster.create(Greeting("hello", spec={"who": "world"}))
    await cluster.wait_until_idle()
    assert await greeting_text(cluster) == "Hello, world"
    assert faults.counts["503"] == 6
    await cluster.check_caches()


async def test_watches_stay_fresh_for_a_day(cluster: Cluster, operator: StartOperator) -> None:
    if not isinstance(cluster.world.clock, VirtualClock):
        pytest.skip("a day takes a day on a real server")
    running = await operator(op)
    await asyncio.sleep(24 * 3600)
    assert running.readiness_problems() == {}
