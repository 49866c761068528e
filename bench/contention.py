"""Measure many writers on one object: `python bench/contention.py [--embedded | --real]`.

Half of the writers are foreign: they GET the object, change a label or a status field, and PUT it, without a pause. The
other half are ours, like separate processes, and each increments its own counter in the status. For each way to write,
the program prints how many of our writes succeeded and the requests per successful write. Then one of our writers adds
conditions to a list that others write all the time. Then another client labels 200 objects between our read and report.
"""

import argparse
import asyncio
from contextlib import suppress

import report

from fairlead.api.errors import AlreadyExists, ApiError, Conflict
from fairlead.api.kinds import kind
from fairlead.api.world import World
from fairlead.client.client import Client, PatchType
from fairlead.client.credentials import StaticCredentials
from fairlead.client.http import Cluster, HttpTransport
from fairlead.server.app import Server
from fairlead.testing.real import RealServer, missing
from fairlead.writes import StatusReport, Writer, decide, status
from support import recording

COUNTER = kind("bench.fairlead.test/v1", "Counter")
WRITERS, WRITES = (2, 8, 32), 48  # of ours together
TRIES = 5  # client-go's RetryOnConflict tries five times, 10 ms apart at first
LABELLED = 200
COUNTS = {"type": "object", "additionalProperties": {"type": "integer"}}
CONDITIONS = {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
STATUS = {"counts": COUNTS, "conditions": CONDITIONS, "observedGeneration": {"type": "integer"}}
SCHEMA = {"type": "object", "properties": {"status": {"type": "object", "properties": STATUS}}}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "counters.bench.fairlead.test"},
    "spec": {
        "group": COUNTER.group,
        "scope": "Namespaced",
        "names": {"kind": "Counter", "plural": "counters", "singular": "counter", "listKind": "CounterList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": SCHEMA},
            }
        ],
    },
}


class Counting:
    """A transport that counts requests and conflicts."""

    def __init__(self, transport):
        self.transport, self.requests, self.refused = transport, 0, 0

    async def request(self, request):
        self.requests += 1
        response = await self.transport.request(request)
        self.refused += response.status in (409, 422)
        return response


# The ways to write; each makes one writer's writes.


async def by_decide(client, world, mine, times, obj):
    """Increment the counter with fairlead's `decide`, starting from a cached copy."""
    writer = Writer(client, world, mine)

    def count(draft):
        counts = draft.status["counts"]
        counts[mine] = (counts.get(mine) or 0) + 1

    for _ in range(times):
        obj = (await decide(writer, COUNTER, obj, count)).object


async def by_get_and_put(client, world, mine, times, obj):
    """Increment the counter with GET and PUT and retries, as controllers usually do."""
    for _ in range(times):
        for attempt in range(TRIES):
            obj = await client.get(COUNTER, "c", "default")
            obj["status"]["counts"][mine] = obj["status"]["counts"].get(mine, 0) + 1
            try:
                await client.replace(obj, subresource="status")
                break
            except Conflict:
                await asyncio.sleep(0.01 * attempt)


async def by_versioned_patch(client, world, mine, times, obj):
    """Increment the counter with GET and a merge patch that has the resourceVersion, with the same retries."""
    for _ in range(times):
        for attempt in range(TRIES):
            obj = await client.get(COUNTER, "c", "default")
            counts = {mine: obj["status"]["counts"].get(mine, 0) + 1}
            patch = {"metadata": {"resourceVersion": obj.resource_version}, "status": {"counts": counts}}
            try:
                await client.patch(
                    COUNTER, "c", "default", patch, type=PatchType.MERGE, subresource="status", field_manager=mine
                )
                break
            except Conflict:
                await asyncio.sleep(0.01 * attempt)


async def by_apply(client, world, mine, times, obj):
    """Increment the counter with a forced apply, which always succeeds because it checks nothing."""
    for number in range(1, times + 1):
        body = COUNTER("c", "default", status={"counts": {mine: number}})
        await client.apply(body, field_manager=mine, subresource="status")


WAYS = {
    "decide": by_decide,
    "get, put, retry": by_get_and_put,
    "versioned status patch": by_versioned_patch,
    "forced apply (unguarded)": by_apply,
}


async def foreign_loop(client, name, subresource):
    """Act as a foreign writer: GET the object, change an own field and PUT it, until cancelled."""
    count = 0
    while True:
        count += 1
        obj = await client.get(COUNTER, "c", "default")
        if subresource:
            obj["status"]["counts"][name] = count
        else:
            obj["metadata"].setdefault("labels", {})[name] = str(count)
        with suppress(Conflict):
            await client.replace(obj, subresource=subresource)


async def contend(open_transport, world, others, writers, way, name):
    """Run our writers beside foreign ones and return one row of the table."""
    half = writers // 2
    await others.create(COUNTER("c", "default"))
    seed = {"status": {"counts": {"seed": 0}}}
    seen = await others.patch(COUNTER, "c", "default", seed, type=PatchType.MERGE, subresource="status")
    loops = [asyncio.create_task(foreign_loop(others, f"f{n}", "status" if n % 2 else None)) for n in range(half)]
    wires = [Counting(open_transport()) for _ in range(half)]
    clients = [Client(wire, world) for wire in wires]
    for client in clients:
        await client.served(COUNTER)  # discovery is made once, not for each write
    before = sum(wire.requests for wire in wires)
    await asyncio.gather(*(way(client, world, f"o{n}", WRITES // half, seen) for n, client in enumerate(clients)))
    requests = sum(wire.requests for wire in wires) - before
    for loop in loops:
        loop.cancel()
    await asyncio.gather(*loops, return_exceptions=True)
    counts = (await others.get(COUNTER, "c", "default")).status["counts"]
    landed = sum(count for mine, count in counts.items() if mine.startswith("o"))
    print(f"{writers:>7}  {name:26}{landed:>4} of {WRITES}{requests / max(landed, 1):>16.2f}", flush=True)
    await others.delete(COUNTER, "c", "default")
    for wire in wires:
        await wire.transport.close()
    return {"landed": landed, "requests": requests}


async def add_by_report(client, world, names, obj):
    """Add a condition with a status report, which tests the existing types but not the contents."""
    writer = Writer(client, world, "ours")
    for name in names:
        said = StatusReport(obj.generation)
        said.condition(name, True, "Because")
        obj = await status.write_status(writer, COUNTER, obj, said)


async def add_by_put(client, world, names, obj):
    """Add a condition with GET and PUT, with retries."""
    for name in names:
        for attempt in range(TRIES):
            obj = await client.get(COUNTER, "c", "default")
            obj["status"]["conditions"].append({"type": name, "status": "True"})
            try:
                await client.replace(obj, subresource="status")
                break
            except Conflict:
                await asyncio.sleep(0.01 * attempt)


async def condition_loop(client, name):
    """Act as a foreign writer: change the message of an own condition, until cancelled."""
    count = 0
    while True:
        count += 1
        obj = await client.get(COUNTER, "c", "default")
        next(each for each in obj["status"]["conditions"] if each["type"] == name)["message"] = str(count)
        with suppress(Conflict):
            await client.replace(obj, subresource="status")


async def add_conditions(open_transport, world, others):
    """Add conditions with one of our writers while `foreign` others write the list."""
    found = {}
    for writers in WRITERS:
        theirs = [f"f{n}" for n in range(writers // 2)]
        for said, way in (("status report", add_by_report), ("get, put, retry", add_by_put)):
            await others.create(COUNTER("c", "default"))
            seed = {"status": {"conditions": [{"type": name, "status": "True"} for name in theirs]}}
            seen = await others.patch(COUNTER, "c", "default", seed, type=PatchType.MERGE, subresource="status")
            wire = Counting(open_transport())
            client = Client(wire, world)
            await client.served(COUNTER)
            before = wire.requests
            loops = [asyncio.create_task(condition_loop(others, name)) for name in theirs]
            await way(client, world, [f"o{n}" for n in range(WRITES)], seen)
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            types = {each["type"] for each in (await others.get(COUNTER, "c", "default")).status["conditions"]}
            landed, requests = len(types) - len(theirs), wire.requests - before
            print(
                f"{len(theirs):>7}  {said:26}{landed:>4} of {WRITES}{requests / max(landed, 1):>16.2f}",
                flush=True,
            )
            found[f"{len(theirs)} {said}"] = {"landed": landed, "requests": requests}
            await others.delete(COUNTER, "c", "default")
            await wire.transport.close()
    return found


async def label_between(open_transport, world, others):
    """Measure a status write after another client labelled the object, beside a PUT with a resourceVersion."""

    async def write_status(client, seen):
        said = StatusReport(seen.generation)
        said.condition("Ready", True, "Because")
        await status.write_status(Writer(client, world, "ours"), COUNTER, seen, said)

    async def put(client, seen):
        seen["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
        with suppress(Conflict):
            await client.replace(seen, subresource="status")

    found = {}
    for name, way in (("status report", write_status), ("versioned put of the copy at hand", put)):
        wire = Counting(open_transport())
        client = Client(wire, world)
        await client.served(COUNTER)
        before = wire.requests
        for number in range(LABELLED):
            seen = await others.create(COUNTER(f"l{number}", "default"))
            label = {"metadata": {"labels": {"theirs": "x"}}}
            await others.patch(COUNTER, seen.name, "default", label, type=PatchType.MERGE)
            await way(client, seen)
            await others.delete(COUNTER, seen.name, "default")
        print(f"{name:34}{wire.refused:>4} conflicts, {wire.requests - before} requests", flush=True)
        found[name] = {"conflicts": wire.refused, "requests": wire.requests - before}
        await wire.transport.close()
    return found


async def measure(open_transport, world):
    foreign = open_transport()
    others = Client(foreign, world, user_agent="others")
    with suppress(AlreadyExists):
        await others.create(CRD)
    while True:
        with suppress(ApiError, LookupError):
            await others.list(COUNTER, "default")
            break
        await asyncio.sleep(0.1)
    print(f"{'writers':>7}  {'way':26}{'landed':>10}{'requests each':>16}")
    rows = {}
    for writers in WRITERS:
        for name, way in WAYS.items():
            rows[f"{writers} {name}"] = await contend(open_transport, world, others, writers, way, name)
    print("\nothers   conditions added by one of ours beside writers of that list")
    added = await add_conditions(open_transport, world, others)
    print(f"\n{LABELLED} objects, each labelled by someone between our look and our write of its status")
    labelled = await label_between(open_transport, world, others)
    await foreign.close()
    return {"contended": rows, "added": added, "labelled": labelled}


async def on(name):
    world = World()
    if name == "embedded":
        return await measure(Server(world, tokens=["t"]).transport, world)
    with RealServer() as real:
        return await measure(
            lambda: HttpTransport(Cluster(real.url, real.ca_data), StaticCredentials.token(real.token)), world
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    servers = parser.add_mutually_exclusive_group()
    for name in ("embedded", "real"):
        servers.add_argument(f"--{name}", dest="only", action="store_const", const=name, help="on that server alone")
    parser.add_argument("--save", action="store_true", help="write the section of docs/benchmarks.md")
    options = parser.parse_args()
    found = {}
    for name in [options.only] if options.only else ["embedded", "real"]:
        if name == "real" and (reason := missing()):
            print(f"the real server is left out: {reason}")
            continue
        print(f"\n{name}")
        found[name] = asyncio.run(on(name))
    if options.save:
        recording.save("contention", {"writes": WRITES, "objects": LABELLED, "rows": found}, partial=bool(options.only))
        report.main()


if __name__ == "__main__":
    main()
