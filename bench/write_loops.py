"""Show what the brake does to write loops: `python bench/write_loops.py`.

A hot loop: an operator writes a timestamp to a status, and each write wakes its next pass. Two operators: each sets the
same field of one ConfigMap to its own value. Both run for minutes of virtual time on the embedded server, 20 ms away,
with and without the brake. The program prints the writes per minute, and the warnings as an operator logs them.
"""

import asyncio
import logging
import math
import sys

import fairlead as fl
from fairlead.client.client import Client
from fairlead.runtime import logs
from fairlead.runtime.definitions import install_missing
from fairlead.server.app import Server
from fairlead.testing import virtual
from fairlead.testing.network import CountingTransport, SlowTransport

Website = fl.kind("bench.example.com/v1", "Website")
ROUND_TRIP = 0.02


def make_clock_operator(world):
    op = fl.Operator("clock")

    @op.reconcile(Website)
    async def reconcile(site, ctx):
        ctx.status(checkedAt=f"{world.clock.now():.3f}")

    return op


def make_painter(name, color):
    op = fl.Operator(name)

    @op.reconcile(Website, watches={fl.ConfigMap: lambda settings: [settings.name]}, ready=None)
    async def paint(site, ctx):
        await ctx.apply(fl.ConfigMap(site.name, data={"color": color}), adopt=True)

    return op


async def count_writes(make_operators, minutes, brake_after):
    """Run the operators on a new server. Return the writes in each minute, of all operators together."""
    world = virtual.world()
    logs.configure(world, levels={"fairlead": logging.WARNING}, stream=sys.stdout)
    server = Server(world)
    client = Client(server.transport(), world)
    await install_missing(client, [Website])
    await client.create(Website("shop", "default", spec={}))
    delay = (ROUND_TRIP, ROUND_TRIP)
    transports, counts = [], []
    async with asyncio.TaskGroup() as group:
        stop = asyncio.Event()

        async def run(op, transport):
            async with op.running(transport, world, settings={"": {"brake_after": brake_after}}):
                await stop.wait()

        for op in make_operators(world):
            slow = SlowTransport(server.transport(), world, request=delay, watch=(0.001, 0.001))
            transports.append(CountingTransport(slow))
            group.create_task(run(op, transports[-1]))
        for _ in range(minutes):
            before = _writes(transports)
            await asyncio.sleep(60)
            counts.append(_writes(transports) - before)
        stop.set()
    return counts


def _writes(transports):
    """Return the number of objects written. An Event is a POST, and belongs to the report."""
    return sum(
        count
        for each in transports
        for (method, _), count in each.counts.items()
        if method in ("PATCH", "PUT", "DELETE")
    )


def show(title, make_operators, minutes):
    print(f"\n{title}")
    without = virtual.run(count_writes(make_operators, 1, math.inf))
    print(f"without the brake: {without[0]} writes per minute", flush=True)
    counts = virtual.run(count_writes(make_operators, minutes, 20))
    print(f"with the brake:    {', '.join(map(str, counts))} writes in minutes 1 to {minutes}")
    print(f"in {minutes} minutes:     about {without[0] * minutes} writes without the brake, {sum(counts)} with it")
    return without[0], counts


if __name__ == "__main__":
    show("A timestamp in a status", lambda world: [make_clock_operator(world)], 10)
    show(
        "Two operators that set the same field of one ConfigMap",
        lambda world: [make_painter("blue-operator", "blue"), make_painter("green-operator", "green")],
        10,
    )
