"""Run an operator under churn and faults for minutes, and check that its memory, tasks and descriptors do not grow.

    python scripts/soak.py [--minutes 10] [--objects 200]

The soak uses real time and sockets. The embedded server listens on loopback with TLS. The operator's transport delays,
refuses and resets requests and interrupts watches. Writers create, edit and delete its objects and their children.
Every few seconds the faults pause. The soak then compares the cluster with the expected state and records the tasks,
descriptors and memory. After a warm-up it fits a line through the samples and reports which figures grew, and where the
memory was allocated. The exit code is 1 if a figure grew, or if the cluster was ever wrong while the faults paused.
"""

import argparse
import asyncio
import contextlib
import gc
import itertools
import linecache
import logging
import os
import random
import statistics
import sys
import time
import tracemalloc
from pathlib import Path

import fairlead as fl
from fairlead.client import http
from fairlead.client.access import Cluster
from fairlead.client.client import Client, PatchType
from fairlead.client.credentials import StaticCredentials
from fairlead.runtime.definitions import install_missing
from fairlead.server.app import Server

Thing = fl.kind("soak.example.com/v1", "Thing")
ROUND = 12.0  # seconds of faults between two samples
WARM_UP = 1 / 3  # of the duration, and until every object has existed: caches and pools fill first
IDLE_TIMEOUT = 1.0  # seconds until unused connections close: samples count only connections in use
SLACK = {"tasks": 2, "descriptors": 4, "traced MB": 0.5, "resident MB": 4}  # growth allowed beyond 5 %


def operator():
    op = fl.Operator("soak")

    @op.reconcile(Thing, owns=[fl.ConfigMap], resync=20.0)
    async def reconcile(obj, ctx):
        for number in range(obj.spec["children"]):
            await ctx.apply(fl.ConfigMap(f"{obj.name}-{number}", data={"turn": str(obj.spec["turn"])}))
        await ctx.prune(fl.ConfigMap)
        ctx.status(turn=obj.spec["turn"])

    @op.cleanup(Thing)
    async def clean_up(obj, ctx): ...

    return op


class FaultyTransport:
    """A transport that injects faults while `on` is true."""

    def __init__(self, inner, rng):
        self._inner, self._random, self.on, self.requests, self.faults = inner, rng, False, 0, 0
        self.interrupted = asyncio.Event()

    async def request(self, request):
        self.requests += 1
        draw = self._random.random() if self.on else 1.0
        if draw < 0.04:
            self.faults += 1
            raise ConnectionRefusedError("refused")
        if self.on:
            await asyncio.sleep(self._random.expovariate(200))
        response = await self._inner.request(request)
        if draw < 0.08:
            self.faults += 1
            raise ConnectionResetError("the response was lost")
        return response

    async def stream(self, request):
        return InterruptibleStream(await self._inner.stream(request), self)

    async def close(self):
        await self._inner.close()


class InterruptibleStream:
    def __init__(self, inner, transport):
        self._inner, self._interrupted = inner, transport.interrupted
        self.status, self.headers = inner.status, inner.headers

    async def read(self):
        read = asyncio.ensure_future(self._inner.read())
        interrupt = asyncio.ensure_future(self._interrupted.wait())
        try:
            await asyncio.wait([read, interrupt], return_when=asyncio.FIRST_COMPLETED)
            if not read.done():
                raise ConnectionResetError("interrupted")
            return read.result()
        finally:
            for task in (read, interrupt):
                task.cancel()
            await asyncio.gather(read, interrupt, return_exceptions=True)

    async def close(self):
        await self._inner.close()


class Churn:
    """Writers that create, edit and delete objects, and know the expected state."""

    def __init__(self, client, rng, objects):
        self.client, self.random, self.objects = client, rng, objects
        self.expected, self.writes, self.turn = {}, 0, 0

    async def step(self):
        self.turn += 1
        self.writes += 1
        name = f"t{self.random.randrange(self.objects)}"
        spec = {"turn": self.turn, "children": self.random.randrange(4)}
        match self.random.random():
            case _ if name not in self.expected:
                try:
                    await self.client.create(Thing(name, "default", spec=spec))
                    self.expected[name] = spec
                except fl.ApiError:
                    pass  # The object's predecessor is still being cleaned up.
            case draw if draw < 0.15:
                del self.expected[name]
                await self.client.delete(Thing, name, "default")
            case draw if draw < 0.3:
                children = (await self.client.list(fl.ConfigMap, "default", limit=20)).items
                if children:
                    child = self.random.choice(children)
                    with contextlib.suppress(fl.ApiError):
                        await self.client.delete(fl.ConfigMap, child.name, "default")
            case _:
                self.expected[name] = spec
                await self.client.patch(Thing, name, "default", {"spec": spec}, type=PatchType.MERGE)

    async def find_problems(self):
        """Return the differences from the expected state."""
        things = {thing.name: thing for thing in (await self.client.list(Thing, "default")).items}
        children = {child.name: child for child in (await self.client.list(fl.ConfigMap, "default")).items}
        expected = {
            f"{name}-{n}": str(spec["turn"]) for name, spec in self.expected.items() for n in range(spec["children"])
        }
        actual = {name: child["data"]["turn"] for name, child in children.items() if "data" in child}
        problems = [f"Thing {name}" for name in things.keys() ^ self.expected.keys()]
        problems += [
            f"ConfigMap {name}" for name in expected.keys() | actual.keys() if expected.get(name) != actual.get(name)
        ]
        problems += [f"status of {t.name}" for t in things.values() if t.status.get("turn") != t.spec["turn"]]
        return problems


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def resident():
    """Return the resident memory of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def wait_until_correct(running, churn):
    """Wait until the cluster has the expected state, at most a minute. Return the remaining problems."""
    problems = ["not checked"]
    for _ in range(60):
        await asyncio.sleep(1.0)
        await running.wait_until_idle()
        problems = await churn.find_problems()
        if not problems:
            break
    return problems


async def soak(minutes, objects, seed):
    world, rng = fl.World(), random.Random(seed)
    server = Server(world, tokens=["soak"], controllers=("gc",))
    listening = await server.listen()
    cluster = Cluster(listening.url, listening.ca)
    operators, writers = (http.HttpTransport(cluster, StaticCredentials.token("soak")) for _ in range(2))
    churn = Churn(Client(writers, world, user_agent="others"), rng, objects)
    await install_missing(churn.client, [Thing])
    transport, samples, problems = FaultyTransport(operators, rng), [], []
    tracemalloc.start(1)
    baseline = None
    print(" minute   writes  requests  faults  tasks   fds  traced MB   RSS MB")
    began = started = time.monotonic()
    async with operator().running(transport, world) as running:
        while baseline is None or time.monotonic() - began < minutes * 60 * (1 - WARM_UP) or len(samples) < 4:
            transport.on = True
            until = time.monotonic() + min(ROUND, minutes * 60 / 8)
            while time.monotonic() < until:
                await churn.step()
                await asyncio.sleep(rng.expovariate(60))
                if rng.random() < 0.02:
                    transport.interrupted.set()
                    transport.interrupted = asyncio.Event()
            transport.on = False
            transport.interrupted.set()
            transport.interrupted = asyncio.Event()
            problems += await wait_until_correct(running, churn)
            await asyncio.sleep(2.5 * IDLE_TIMEOUT)
            # The server keeps up to ten thousand changes per kind. Compacting them leaves only leaks, and causes 410s.
            server.store.compact()
            linecache.clearcache()  # Tracebacks of the faults fill this cache late. Its size is bounded by the code.
            gc.collect()
            elapsed = time.monotonic() - started
            if baseline is None and elapsed >= minutes * 60 * WARM_UP and churn.writes >= 4 * objects:
                print("warm-up done")
                baseline = snapshot()  # before the samples that count: it needs memory itself
                began = time.monotonic()
                samples.clear()
            traced = tracemalloc.get_traced_memory()[0] / 1e6
            samples.append((len(asyncio.all_tasks()), descriptors(), traced, resident()))
            print(
                f"{elapsed / 60:7.1f} {churn.writes:8} {transport.requests:9} {transport.faults:7} "
                + "{:6} {:5} {:10.1f} {:8.1f}".format(*samples[-1]),
                flush=True,
            )
        grown = snapshot().compare_to(baseline, "lineno")
    await operators.close()
    await writers.close()
    await listening.close()
    return samples, problems, grown


def snapshot():
    """Return the places where the used memory was allocated, without tracemalloc's own memory."""
    return tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(False, tracemalloc.__file__)])


def verdict(samples, problems):
    """Print the trend of every figure. Return whether none grew and the cluster was always correct."""
    flat = []
    for index, (name, slack) in enumerate(SLACK.items()):
        first, last = trend([sample[index] for sample in samples])
        flat.append(last <= first * 1.05 + slack)
        print(f"{name:12} {first:8.1f} -> {last:8.1f}   {'flat' if flat[-1] else 'GREW'}")
    print(f"at rest      {'correct each time' if not problems else 'WRONG: ' + ', '.join(problems[:5])}")
    return all(flat) and not problems


def trend(figures):
    """Return both ends of a Theil-Sen line through the figures: outliers do not change its slope."""
    pairs = list(itertools.combinations(range(len(figures)), 2))
    slope = statistics.median((figures[b] - figures[a]) / (b - a) for a, b in pairs)
    start = statistics.median(figure - slope * index for index, figure in enumerate(figures))
    return start, start + slope * (len(figures) - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--objects", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    http.IDLE_TIMEOUT = IDLE_TIMEOUT
    logging.disable(logging.CRITICAL)  # The thousands of injected faults would fill the output.
    samples, problems, grown = asyncio.run(soak(options.minutes, options.objects, options.seed))
    print("allocated since the warm-up and still in use:")
    for line in grown[:8]:
        print(f"  {line.size_diff / 1e3:8.1f} kB in {line.count_diff:6} blocks  {line.traceback}")
    sys.exit(0 if verdict(samples, problems) else 1)


if __name__ == "__main__":
    main()
