"""Measure a plan over 10,000 routes and 50 upstream clusters: requests, time, memory.

`python bench/orphans.py [--routes N] [--clusters N]`
"""

import argparse
import asyncio
import sys
import time
import tracemalloc
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import fleets

from fairlead.api.world import World
from fairlead.server.app import Server
from fairlead.tools.orphans.verdicts import State
from support import recording


async def main(options):
    routes, clusters = options.routes, options.clusters
    harness = fleets.FleetHarness(Server(World()).transport(), "default", World())
    names = [f"project-{i}" for i in range(clusters)]
    await harness.start(*names)
    for name in names:
        for i in range(20):
            await harness.create_gateway(f"gw-{i}", cluster=name)
    for i in range(routes):  # one in twenty names a Gateway that is not there
        gateway = "missing" if i % 20 == 0 else f"gw-{i % 20}"
        await harness.create_route(f"route-{i}", parents=[gateway], cluster=f"cluster-{names[i % clusters]}")
    for transport in (harness.downstream_transport, *harness.upstream_transports.values()):
        transport.requests.clear()
    started = time.perf_counter()
    plan = await harness.plan(grace=0.0)
    seconds = time.perf_counter() - started
    upstream = Counter(
        path.split("?")[0] for transport in harness.upstream_transports.values() for _, path, _ in transport.requests
    )
    downstream_requests = len(harness.downstream_transport.requests)
    tracemalloc.start()
    await harness.plan(grace=0.0)
    _, peak = tracemalloc.get_traced_memory()
    print(f"{routes} routes over {clusters} upstream clusters: {len(plan.of(State.ORPHAN))} orphans in {seconds:.2f} s")
    print(f"requests: {downstream_requests} downstream, {upstream.total() / clusters:.1f} for each upstream cluster")
    print(f"memory at the peak of a pass: {peak / 2**20:.0f} MiB, the embedded servers' own work for it included")
    if options.save:
        rows = {
            "s": seconds,
            "downstream": downstream_requests,
            "upstream": upstream.total() / clusters,
            "MiB": peak / 2**20,
        }
        recording.save("orphans", {"routes": routes, "clusters": clusters, "rows": rows})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--routes", type=int, default=10_000)
    parser.add_argument("--clusters", type=int, default=50)
    parser.add_argument("--save", action="store_true", help="keep the figures for docs/benchmarks.md")
    asyncio.run(main(parser.parse_args()))
