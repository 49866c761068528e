"""Measure an idle controller and its reaction time: `python bench/runtime.py [--objects N]`.

The embedded server runs in the same process. The minimum cost of a pass is to decode the object and its child, and one
iteration of the event loop. Compare ratios within one run, not absolute values.
"""

import argparse
import asyncio
import statistics
import time

import msgspec

import fairlead as fl
from fairlead.client.client import Client, PatchType
from fairlead.runtime.definitions import install_missing
from fairlead.server.app import Server

Greeting = fl.kind("bench.example.com/v1", "Greeting")
ROUNDS, EVENTS = 5, 300


class CountingTransport:
    """A transport that counts requests, without watches."""

    def __init__(self, inner):
        self._inner = inner
        self.requests = 0

    async def request(self, request):
        self.requests += 1
        return await self._inner.request(request)

    async def stream(self, request):
        return await self._inner.stream(request)

    async def close(self): ...


async def main(objects):
    world = fl.World()
    server = Server(world)
    client = Client(server.transport(), world)
    transport = CountingTransport(server.transport())
    await install_missing(client, [Greeting])
    for number in range(objects):
        await client.create(Greeting(f"hello-{number}", "default", spec={"who": "world", "turn": 0}))
    op = fl.Operator("bench")
    passes, reached_by_turn = [], {}

    @op.reconcile(Greeting, owns=[fl.ConfigMap])
    async def greet(obj, ctx):
        passes.append(obj.name)
        if obj.spec["turn"] in reached_by_turn:
            reached_by_turn[obj.spec["turn"]].set_result(time.perf_counter())
            del reached_by_turn[obj.spec["turn"]]
        await ctx.apply(fl.ConfigMap(obj.name, data={"text": f"Hello, {obj.spec['who']}"}))

    async with op.running(transport, world) as running:
        await running.wait_until_idle()
        transport.requests = 0
        rates = []
        for _ in range(ROUNDS):
            passes.clear()
            started = time.process_time()
            running.resync()
            await running.wait_until_idle()
            rates.append(len(passes) / (time.process_time() - started))
        print(
            f"passes with nothing to do      {statistics.median(rates):8.0f} a second of CPU, "
            f"{transport.requests} requests"
        )
        floor = await floor_rate(client, objects)
        print(f"floor: decode two, one turn    {floor:8.0f} a second of CPU ({floor / statistics.median(rates):.1f}x)")

        delays = []
        for round_number in range(1, EVENTS + 1):
            reached_by_turn[round_number] = asyncio.get_running_loop().create_future()
            sent_at = time.perf_counter()
            reached = reached_by_turn[round_number]
            name = f"hello-{round_number % objects}"
            await client.patch(Greeting, name, "default", {"spec": {"turn": round_number}}, type=PatchType.MERGE)
            delays.append((await reached - sent_at) * 1e3)
            await running.wait_until_idle()
        delays.sort()
        p50, p99 = delays[len(delays) // 2], delays[int(len(delays) * 0.99)]
        print(f"from a write to its reconcile  p50 {p50:.2f} ms, p99 {p99:.2f} ms (the write itself included)")


async def floor_rate(client, objects):
    parents = [msgspec.json.encode(obj) for obj in (await client.list(Greeting, "default")).items]
    children = [msgspec.json.encode(obj) for obj in (await client.list(fl.ConfigMap, "default")).items[:objects]]
    started = time.process_time()
    for parent, child in zip(parents, children, strict=True):
        msgspec.json.decode(parent)
        msgspec.json.decode(child)
        await asyncio.sleep(0)
    return len(parents) / (time.process_time() - started)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=1000)
    asyncio.run(main(parser.parse_args().objects))
