"""Tests of simulated latency: requests are delayed, and watch events arrive late and in order."""

import asyncio
import json

from fairlead.api.requests import HttpRequest
from fairlead.server.app import Server
from fairlead.testing import virtual
from fairlead.testing.network import CountingTransport, SlowTransport

HEADERS = {"Content-Type": "application/json"}
PATH = "/api/v1/namespaces/default/configmaps"


def configmap(name):
    return json.dumps({"metadata": {"name": name}}).encode()


def test_requests_take_time_and_are_counted():
    async def main():
        world = virtual.world()
        counting = CountingTransport(Server(world).transport())
        slow = SlowTransport(counting, world, request=(0.5, 0.5), watch=(0, 0))
        await slow.request(HttpRequest("POST", PATH, headers=HEADERS, body=configmap("a")))
        await slow.request(HttpRequest("POST", PATH, headers=HEADERS, body=configmap("a")))
        return counting.counts, world.clock.monotonic()

    counts, seconds = virtual.run(main())
    assert counts == {("POST", 201): 1, ("POST", 409): 1}
    assert seconds == 1.0


def test_watch_events_come_late_in_order_and_not_one_lag_after_another():
    async def main():
        world = virtual.world()
        door = Server(world).transport()
        slow = SlowTransport(door, world, request=(0, 0), watch=(1.0, 3.0))
        stream = await slow.stream(HttpRequest("GET", PATH, query={"watch": "true"}))
        for i in range(20):
            await door.request(HttpRequest("POST", PATH, headers=HEADERS, body=configmap(f"c{i}")))
            await asyncio.sleep(0.01)
        received_bytes = b""
        while received_bytes.count(b"\n") < 20:
            received_bytes += await stream.read()
        await stream.close()
        names = [json.loads(line)["object"]["metadata"]["name"] for line in received_bytes.splitlines()]
        return names, world.clock.monotonic()

    names, seconds = virtual.run(main())
    assert names == [f"c{i}" for i in range(20)]
    assert 1.0 < seconds < 3.5
