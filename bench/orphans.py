"""Plan 10,000 downstream routes over 50 upstream clusters in one pass: requests, time, memory."""

import asyncio
import sys
import time
import tracemalloc
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import fleets

from fairlead.api.world import World
from fairlead.orphans.judging import State
from fairlead.server.app import Server

ROUTES, CLUSTERS = (int(n) for n in (sys.argv[1:3] or (10_000, 50)))


async def main():
    bed = fleets.Bed(Server(World()).transport(), "default", World())
    names = [f"project-{i}" for i in range(CLUSTERS)]
    await bed.start(*names)
    for name in names:
        for i in range(20):
            await bed.gateway(f"gw-{i}", cluster=name)
    for i in range(ROUTES):  # one in twenty names a Gateway that is not there
        gateway = "missing" if i % 20 == 0 else f"gw-{i % 20}"
        await bed.route(f"route-{i}", parents=[gateway], cluster=f"cluster-{names[i % CLUSTERS]}")
    for door in (bed.door, *bed.doors.values()):
        door.requests.clear()
    started = time.perf_counter()
    plan = await bed.plan(grace=0.0)
    took = time.perf_counter() - started
    upstream = Counter(path.split("?")[0] for door in bed.doors.values() for _, path, _ in door.requests)
    below = len(bed.door.requests)
    tracemalloc.start()
    await bed.plan(grace=0.0)
    _, peak = tracemalloc.get_traced_memory()
    print(f"{ROUTES} routes over {CLUSTERS} upstream clusters: {len(plan.of(State.ORPHAN))} orphans in {took:.2f} s")
    print(f"requests: {below} downstream, {upstream.total() / CLUSTERS:.1f} for each upstream cluster")
    print(f"memory at the peak of a pass: {peak / 2**20:.0f} MiB, the embedded servers' own work for it included")


asyncio.run(main())
