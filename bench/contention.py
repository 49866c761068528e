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


class CountingTransport:
    """A transport that counts requests and conflicts."""

    def __init__(self, transport):
        self.transport, self.requests, self.refused = transport, 0, 0

    async def request(self, request):
        self.requests += 1
        response = await self.transport.request(request)
        self.refused += response.status in (409, 422)
        return response


# The ways to write; each makes one writer's writes.


async def by_decide(client, world, counter_name, times, obj):
    """Increment the counter with fairlead's `decide`, starting from a cached copy."""
    writer = Writer(client, world, counter_name)

    def count(draft):
        counts = draft.status["counts"]
        counts[counter_name] = (counts.get(counter_name) or 0) + 1

    for _ in range(times):
        obj = (await decide(writer, COUNTER, obj, count)).object


async def by_get_and_put(client, world, counter_name, times, obj):
    """Increment the counter with GET and PUT and retries, as controllers usually do."""
    for _ in range(times):
        for attempt in range(TRIES):
            obj = await client.get(COUNTER, "c", "default")
            obj["status"]["counts"][counter_name] = obj["status"]["counts"].get(counter_name, 0) + 1
            try:
                await client.replace(obj, subresource="status")
                break
            except Conflict:
                await asyncio.sleep(0.01 * attempt)


async def by_versioned_patch(client, world, counter_name, times, obj):
    """Increment the counter with GET and a merge patch that has the resourceVersion, with the same retries."""
    for _ in range(times):
        for attempt in range(TRIES):
            obj = await client.get(COUNTER, "c", "default")
            counts = {counter_name: obj["status"]["counts"].get(counter_name, 0) + 1}
            patch = {"metadata": {"resourceVersion": obj.resource_version}, "status": {"counts": counts}}
            try:
                await client.patch(
                    COUNTER,
                    "c",
                    "default",
                    patch,
                    type=PatchType.MERGE,
                    subresource="status",
                    field_manager=counter_name,
                )
                break
            except Conflict:
                await asyncio.sleep(0.01 * attempt)


async def by_apply(client, world, counter_name, times, obj):
    """Increment the counter with a forced apply, which always succeeds because it checks nothing."""
    for number in range(1, times + 1):
        body = COUNTER("c", "default", status={"counts": {counter_name: number}})
        await client.apply(body, field_manager=counter_name, subresource="status")


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


async def measure_contention(open_transport, world, foreign_client, writers, write_method, name):
    """Run our writers beside foreign ones and return one row of the table."""
    foreign_count = writers // 2
    await foreign_client.create(COUNTER("c", "default"))
    seed = {"status": {"counts": {"seed": 0}}}
    cached_object = await foreign_client.patch(
        COUNTER, "c", "default", seed, type=PatchType.MERGE, subresource="status"
    )
    loops = [
        asyncio.create_task(foreign_loop(foreign_client, f"f{n}", "status" if n % 2 else None))
        for n in range(foreign_count)
    ]
    transports = [CountingTransport(open_transport()) for _ in range(foreign_count)]
    clients = [Client(transport, world) for transport in transports]
    for client in clients:
        await client.served(COUNTER)  # discovery is made once, not for each write
    before = sum(transport.requests for transport in transports)
    await asyncio.gather(
        *(
            write_method(client, world, f"o{n}", WRITES // foreign_count, cached_object)
            for n, client in enumerate(clients)
        )
    )
    requests = sum(transport.requests for transport in transports) - before
    for loop in loops:
        loop.cancel()
    await asyncio.gather(*loops, return_exceptions=True)
    counts = (await foreign_client.get(COUNTER, "c", "default")).status["counts"]
    landed = sum(count for counter_name, count in counts.items() if counter_name.startswith("o"))
    print(f"{writers:>7}  {name:26}{landed:>4} of {WRITES}{requests / max(landed, 1):>16.2f}", flush=True)
    await foreign_client.delete(COUNTER, "c", "default")
    for transport in transports:
        await transport.transport.close()
    return {"landed": landed, "requests": requests}


async def add_by_report(client, world, names, obj):
    """Add a condition with a status report, which tests the existing types but not the contents."""
    writer = Writer(client, world, "ours")
    for name in names:
        method_name = StatusReport(obj.generation)
        method_name.condition(name, True, "Because")
        obj = await status.write_status(writer, COUNTER, obj, method_name)


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
        next(condition for condition in obj["status"]["conditions"] if condition["type"] == name)["message"] = str(
            count
        )
        with suppress(Conflict):
            await client.replace(obj, subresource="status")


async def add_conditions(open_transport, world, foreign_client):
    """Add conditions with one of our writers while `foreign` others write the list."""
    figures = {}
    for writers in WRITERS:
        foreign_types = [f"f{n}" for n in range(writers // 2)]
        for method_name, write_method in (("status report", add_by_report), ("get, put, retry", add_by_put)):
            await foreign_client.create(COUNTER("c", "default"))
            seed = {"status": {"conditions": [{"type": name, "status": "True"} for name in foreign_types]}}
            cached_object = await foreign_client.patch(
                COUNTER, "c", "default", seed, type=PatchType.MERGE, subresource="status"
            )
            transport = CountingTransport(open_transport())
            client = Client(transport, world)
            await client.served(COUNTER)
            before = transport.requests
            loops = [asyncio.create_task(condition_loop(foreign_client, name)) for name in foreign_types]
            await write_method(client, world, [f"o{n}" for n in range(WRITES)], cached_object)
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            types = {
                condition["type"]
                for condition in (await foreign_client.get(COUNTER, "c", "default")).status["conditions"]
            }
            landed, requests = len(types) - len(foreign_types), transport.requests - before
            print(
                f"{len(foreign_types):>7}  {method_name:26}{landed:>4} of {WRITES}{requests / max(landed, 1):>16.2f}",
                flush=True,
            )
            figures[f"{len(foreign_types)} {method_name}"] = {"landed": landed, "requests": requests}
            await foreign_client.delete(COUNTER, "c", "default")
            await transport.transport.close()
    return figures


async def label_between(open_transport, world, foreign_client):
    """Measure a status write after another client labelled the object, beside a PUT with a resourceVersion."""

    async def write_status(client, cached_object):
        method_name = StatusReport(cached_object.generation)
        method_name.condition("Ready", True, "Because")
        await status.write_status(Writer(client, world, "ours"), COUNTER, cached_object, method_name)

    async def put(client, cached_object):
        cached_object["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
        with suppress(Conflict):
            await client.replace(cached_object, subresource="status")

    figures = {}
    for name, write_method in (("status report", write_status), ("versioned put of the copy at hand", put)):
        transport = CountingTransport(open_transport())
        client = Client(transport, world)
        await client.served(COUNTER)
        before = transport.requests
        for number in range(LABELLED):
            cached_object = await foreign_client.create(COUNTER(f"l{number}", "default"))
            label = {"metadata": {"labels": {"theirs": "x"}}}
            await foreign_client.patch(COUNTER, cached_object.name, "default", label, type=PatchType.MERGE)
            await write_method(client, cached_object)
            await foreign_client.delete(COUNTER, cached_object.name, "default")
        print(f"{name:34}{transport.refused:>4} conflicts, {transport.requests - before} requests", flush=True)
        figures[name] = {"conflicts": transport.refused, "requests": transport.requests - before}
        await transport.transport.close()
    return figures


async def measure(open_transport, world):
    foreign = open_transport()
    foreign_client = Client(foreign, world, user_agent="others")
    with suppress(AlreadyExists):
        await foreign_client.create(CRD)
    while True:
        with suppress(ApiError, LookupError):
            await foreign_client.list(COUNTER, "default")
            break
        await asyncio.sleep(0.1)
    print(f"{'writers':>7}  {'way':26}{'landed':>10}{'requests each':>16}")
    rows = {}
    for writers in WRITERS:
        for name, write_method in WAYS.items():
            rows[f"{writers} {name}"] = await measure_contention(
                open_transport, world, foreign_client, writers, write_method, name
            )
    print("\nothers   conditions added by one of ours beside writers of that list")
    added_conditions = await add_conditions(open_transport, world, foreign_client)
    print(f"\n{LABELLED} objects, each labelled by someone between our look and our write of its status")
    labelled = await label_between(open_transport, world, foreign_client)
    await foreign.close()
    return {"contended": rows, "added": added_conditions, "labelled": labelled}


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
    figures = {}
    for name in [options.only] if options.only else ["embedded", "real"]:
        if name == "real" and (reason := missing()):
            print(f"the real server is left out: {reason}")
            continue
        print(f"\n{name}")
        figures[name] = asyncio.run(on(name))
    if options.save:
        recording.save(
            "contention", {"writes": WRITES, "objects": LABELLED, "rows": figures}, is_partial=bool(options.only)
        )
        report.main()


if __name__ == "__main__":
    main()
