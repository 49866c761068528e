"""A soak: an operator under churn and faults for minutes, and whether anything piles up.

    python scripts/soak.py [--minutes 10] [--objects 200]

Real time and sockets: the embedded server listens on loopback with TLS; the operator reaches it through a proxy that
delays, refuses, resets and cuts watches; writers create, edit and delete its objects and their children. Every few
seconds the faults pause, the world is compared with what it should be, and tasks, descriptors and memory are noted.
The verdict draws a line through the samples after a warm-up: flat, or what grew and where the memory was taken.
Exit code 1 if anything did, or if the world was ever wrong at rest.
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
ROUND = 12.0  # seconds of trouble between two samples
WARM_UP = 1 / 3  # of the time, and until every object has been there: caches, pools and memos fill first
IDLE = 1.0  # seconds that unused connections are kept: samples shall count what is held, not what is kept for a while
SLACK = {"tasks": 2, "descriptors": 4, "traced MB": 0.5, "resident MB": 4}  # beyond a twentieth: what comes and goes


def operator():
    op = fl.Operator("soak")

    @op.reconcile(Thing, owns=[fl.ConfigMap], resync=20.0)
    async def reconcile(obj, ctx):
        for number in range(obj.spec["children"]):
            await ctx.apply(fl.ConfigMap(f"{obj.name}-{number}", data={"turn": str(obj.spec["turn"])}))
        ctx.status(turn=obj.spec["turn"])

    @op.cleanup(Thing)
    async def leave(obj, ctx): ...

    return op


class Trouble:
    """A transport that behaves, or while `on` does not."""

    def __init__(self, inner, chance):
        self._inner, self._chance, self.on, self.requests, self.faults = inner, chance, False, 0, 0
        self.cut = asyncio.Event()

    async def request(self, request):
        self.requests += 1
        fate = self._chance.random() if self.on else 1.0
        if fate < 0.04:
            self.faults += 1
            raise ConnectionRefusedError("refused")
        if self.on:
            await asyncio.sleep(self._chance.expovariate(200))
        answer = await self._inner.request(request)
        if fate < 0.08:
            self.faults += 1
            raise ConnectionResetError("the answer was lost")
        return answer

    async def stream(self, request):
        return Cuttable(await self._inner.stream(request), self)

    async def close(self):
        await self._inner.close()


class Cuttable:
    def __init__(self, inner, trouble):
        self._inner, self._cut = inner, trouble.cut
        self.status, self.headers = inner.status, inner.headers

    async def read(self):
        read, cut = asyncio.ensure_future(self._inner.read()), asyncio.ensure_future(self._cut.wait())
        try:
            await asyncio.wait([read, cut], return_when=asyncio.FIRST_COMPLETED)
            if not read.done():
                raise ConnectionResetError("cut")
            return read.result()
        finally:
            for task in (read, cut):
                task.cancel()
            await asyncio.gather(read, cut, return_exceptions=True)

    async def close(self):
        await self._inner.close()


class Churn:
    """Writers who create, edit and delete, and know what should be there in the end."""

    def __init__(self, client, chance, objects):
        self.client, self.chance, self.objects, self.wanted, self.writes, self.turn = client, chance, objects, {}, 0, 0

    async def step(self):
        self.turn += 1
        self.writes += 1
        name = f"t{self.chance.randrange(self.objects)}"
        spec = {"turn": self.turn, "children": self.chance.randrange(4)}
        match self.chance.random():
            case _ if name not in self.wanted:
                try:
                    await self.client.create(Thing(name, "default", spec=spec))
                    self.wanted[name] = spec
                except fl.ApiError:
                    pass  # the one before is still being cleaned up
            case luck if luck < 0.15:
                del self.wanted[name]
                await self.client.delete(Thing, name, "default")
            case luck if luck < 0.3:
                children = (await self.client.list(fl.ConfigMap, "default", limit=20)).items
                if children:
                    child = self.chance.choice(children)
                    with contextlib.suppress(fl.ApiError):
                        await self.client.delete(fl.ConfigMap, child.name, "default")
            case _:
                self.wanted[name] = spec
                await self.client.patch(Thing, name, "default", {"spec": spec}, type=PatchType.MERGE)

    async def wrong(self):
        """What is not as it should be."""
        things = {thing.name: thing for thing in (await self.client.list(Thing, "default")).items}
        children = {child.name: child for child in (await self.client.list(fl.ConfigMap, "default")).items}
        due = {f"{name}-{n}": str(spec["turn"]) for name, spec in self.wanted.items() for n in range(spec["children"])}
        found = {name: child["data"]["turn"] for name, child in children.items() if "data" in child}
        problems = [f"Thing {name}" for name in things.keys() ^ self.wanted.keys()]
        problems += [f"ConfigMap {name}" for name in due.keys() | found.keys() if due.get(name) != found.get(name)]
        problems += [f"status of {t.name}" for t in things.values() if t.status.get("turn") != t.spec["turn"]]
        return problems


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def resident():
    """Megabytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def settled(running, churn):
    """Wait until the world is right; answers what is still wrong after a while."""
    problems = ["never looked"]
    for _ in range(60):
        await asyncio.sleep(1.0)
        await running.wait_until_idle()
        problems = await churn.wrong()
        if not problems:
            break
    return problems


async def soak(minutes, objects, seed):
    world, chance = fl.World(), random.Random(seed)
    server = Server(world, tokens=["soak"], controllers=("gc",))
    listening = await server.listen()
    cluster = Cluster(listening.url, listening.ca)
    mine, theirs = (http.HttpTransport(cluster, StaticCredentials.token("soak")) for _ in range(2))
    churn = Churn(Client(theirs, world, user_agent="others"), chance, objects)
    await install_missing(churn.client, [Thing])
    trouble, samples, wrong = Trouble(mine, chance), [], []
    tracemalloc.start(1)
    held = None
    print(" minute   writes  requests  faults  tasks   fds  traced MB   RSS MB")
    began = started = time.monotonic()
    async with operator().running(trouble, world) as running:
        while held is None or time.monotonic() - began < minutes * 60 * (1 - WARM_UP) or len(samples) < 4:
            trouble.on = True
            until = time.monotonic() + min(ROUND, minutes * 60 / 8)
            while time.monotonic() < until:
                await churn.step()
                await asyncio.sleep(chance.expovariate(60))
                if chance.random() < 0.02:
                    trouble.cut.set()
                    trouble.cut = asyncio.Event()
            trouble.on = False
            trouble.cut.set()
            trouble.cut = asyncio.Event()
            wrong += await settled(running, churn)
            await asyncio.sleep(2.5 * IDLE)
            # A server keeps some ten thousand changes a kind; forgotten here, what grows is a leak. It makes 410s, too.
            server.store.compact()
            linecache.clearcache()  # what tracebacks of faults have read: no more than the code, but it comes late
            gc.collect()
            elapsed = time.monotonic() - started
            if held is None and elapsed >= minutes * 60 * WARM_UP and churn.writes >= 4 * objects:
                print("warm")
                held = snapshot()  # before the samples that count, for it takes memory itself
                began = time.monotonic()
                samples.clear()
            traced = tracemalloc.get_traced_memory()[0] / 1e6
            samples.append((len(asyncio.all_tasks()), descriptors(), traced, resident()))
            print(
                f"{elapsed / 60:7.1f} {churn.writes:8} {trouble.requests:9} {trouble.faults:7} "
                + "{:6} {:5} {:10.1f} {:8.1f}".format(*samples[-1]),
                flush=True,
            )
        grown = snapshot().compare_to(held, "lineno")
    await mine.close()
    await theirs.close()
    await listening.close()
    return samples, wrong, grown


def snapshot():
    """Where the memory in use was taken, tracemalloc's own left out."""
    return tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(False, tracemalloc.__file__)])


def verdict(samples, wrong):
    """Each figure at both ends of a line through the samples; whether all were flat and nothing wrong."""
    flat = []
    for place, (name, slack) in enumerate(SLACK.items()):
        first, last = trend([sample[place] for sample in samples])
        flat.append(last <= first * 1.05 + slack)
        print(f"{name:12} {first:8.1f} -> {last:8.1f}   {'flat' if flat[-1] else 'GREW'}")
    print(f"at rest      {'as it should be each time' if not wrong else 'WRONG: ' + ', '.join(wrong[:5])}")
    return all(flat) and not wrong


def trend(figures):
    """Both ends of the line through them that outliers do not bend: the median of the slopes between any two."""
    pairs = list(itertools.combinations(range(len(figures)), 2))
    slope = statistics.median((figures[b] - figures[a]) / (b - a) for a, b in pairs)
    start = statistics.median(figure - slope * place for place, figure in enumerate(figures))
    return start, start + slope * (len(figures) - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--objects", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    http.IDLE = IDLE
    logging.disable(logging.CRITICAL)  # thousands of faults are told; here only the figures matter
    samples, wrong, grown = asyncio.run(soak(options.minutes, options.objects, options.seed))
    print("taken since the warm-up and still held:")
    for line in grown[:8]:
        print(f"  {line.size_diff / 1e3:8.1f} kB in {line.count_diff:6} blocks  {line.traceback}")
    sys.exit(0 if verdict(samples, wrong) else 1)


if __name__ == "__main__":
    main()
