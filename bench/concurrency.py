"""Measure the benefit of concurrent reconciles: `python bench/concurrency.py [--objects N]`.

Many new objects appear at once. The operator writes a child and a status for each. The embedded server and the real
server (if `make real` was run) run in their own processes, with and without ten milliseconds of latency. The program
prints the seconds until all writes are done, and our CPU time per object, which limits the benefit of concurrency.
"""

import argparse
import asyncio
import socket
import sys
import time

import fairlead as fl
from fairlead.client.access import Cluster
from fairlead.client.client import Client
from fairlead.client.credentials import StaticCredentials
from fairlead.client.http import HttpTransport
from fairlead.runtime.definitions import install_missing
from fairlead.testing import real
from fairlead.testing.network import SlowTransport
from support import recording

Thing = fl.kind("bench.example.com/v1", "Thing")
AT_ONCE = (1, 8, 16, 32, 64)
AWAY = (0.0, 0.01)


async def measure_burst(open_transport, objects, at_once, latency):
    """Return the seconds until every object has its child and status, and our CPU milliseconds per object."""
    world = fl.World()
    transport = open_transport()
    client = Client(transport, world)
    namespace = f"burst-{at_once}-{int(latency * 1000)}"
    await client.create(fl.kind("v1", "Namespace", namespaced=False)(namespace))
    for number in range(objects):
        await client.create(Thing(f"t{number}", namespace, spec={"n": number}))
    op = fl.Operator("burst")

    @op.reconcile(Thing, owns=[fl.ConfigMap], concurrency=at_once)
    async def reconcile(obj, ctx):
        await ctx.apply(fl.ConfigMap(obj.name, data={"n": str(obj.spec["n"])}))
        ctx.status(n=obj.spec["n"])

    transport_with_latency = (
        SlowTransport(transport, world, request=(latency, latency), watch=(latency / 2, latency / 2))
        if latency
        else transport
    )
    started, cpu = time.perf_counter(), time.process_time()
    async with op.running(transport_with_latency, world, namespaces=[namespace]) as running:
        await running.wait_until_idle()
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        assert running.failures == {}
    await transport.close()
    return seconds, cpu * 1000 / objects


async def measure(name, open_transport, objects):
    transport = open_transport()
    await install_missing(Client(transport, fl.World()), [Thing])
    await transport.close()
    figures = {}
    for latency in AWAY:
        durations = [await measure_burst(open_transport, objects, at_once, latency) for at_once in AT_ONCE]
        print(f"{name:9} {latency * 1000:3.0f} ms, s  " + "".join(f"{seconds:8.2f}" for seconds, _ in durations))
        print(f"{'':9} our CPU, ms" + "".join(f"{cpu:8.2f}" for _, cpu in durations), flush=True)
        figures[f"{name}, {latency * 1000:.0f} ms away"] = [seconds for seconds, _ in durations]
    return figures


async def main(objects):
    """Return the seconds for each concurrency in AT_ONCE, by server and latency."""
    print(f"{objects:4} objects, at once" + "".join(f"{number:8}" for number in AT_ONCE))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead", "serve", "--no-tls", "--listen", f"127.0.0.1:{port}"),
        env={"FAIRLEAD_TOKEN": "t"},
        stdout=asyncio.subprocess.PIPE,
    )
    await process.stdout.readline()
    try:
        address = Cluster(f"http://127.0.0.1:{port}", None)
        figures = await measure("embedded", lambda: HttpTransport(address, StaticCredentials.token("t")), objects)
    finally:
        process.kill()
        await process.wait()
    if reason := real.missing():
        print(f"not on a real server: {reason}")
        return figures
    with real.RealServer() as server:
        cluster = Cluster(server.url, server.ca_data)
        return figures | await measure(
            "real", lambda: HttpTransport(cluster, StaticCredentials.token(server.token)), objects
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, default=200)
    parser.add_argument("--save", action="store_true", help="keep the figures for docs/benchmarks.md")
    options = parser.parse_args()
    figures = asyncio.run(main(options.objects))
    if options.save:
        recording.save("concurrency", {"objects": options.objects, "at once": AT_ONCE, "rows": figures})
