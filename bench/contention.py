"""Writers on one object under tight foreign PUT loops: `python bench/contention.py [--real]`.

Each way writes a field of status of its own so many times, while others get, change a label and put without a pause.
Printed: how many of the writes landed, and requests for each landed one.
"""

import asyncio
import sys
from contextlib import ExitStack, suppress

from fairlead.api.errors import AlreadyExists, ApiError, Conflict
from fairlead.api.kinds import kind
from fairlead.api.world import World
from fairlead.client.client import Client, PatchType
from fairlead.client.credentials import Static
from fairlead.client.http import Cluster, HttpTransport
from fairlead.server.app import Server
from fairlead.testing.real import RealServer
from fairlead.writes import Writer, decide

COUNTER = kind("bench.fairlead.test/v1", "Counter")
FOREIGN, WRITES, TRIES = 6, 300, 5  # client-go's RetryOnConflict tries five times, 10 ms apart at first
SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
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
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SCHEMA, "status": SCHEMA}}},
            }
        ],
    },
}


class Counting:
    """A transport that counts."""

    def __init__(self, transport):
        self.transport, self.requests = transport, 0

    async def request(self, *args, **kwargs):
        self.requests += 1
        return await self.transport.request(*args, **kwargs)


async def by_decide(client, world, mine):
    writer, obj = Writer(client, world, mine), await client.get(COUNTER, "c", "default")

    def count(draft):
        draft.status[mine] = (draft.status.get(mine) or 0) + 1

    for _ in range(WRITES):
        obj = (await decide(writer, COUNTER, obj, count)).object


async def by_get_and_put(client, world, mine):
    """Get, change, put, with retries: controller-runtime's usual way."""
    for _ in range(WRITES):
        for attempt in range(TRIES):
            obj = await client.get(COUNTER, "c", "default")
            obj["status"][mine] = obj["status"].get(mine, 0) + 1
            try:
                await client.replace(obj, subresource="status")
                break
            except Conflict:
                await asyncio.sleep(0.01 * attempt)


async def by_versioned_patch(client, world, mine):
    """Get and merge patch under the resourceVersion, with the same retries."""
    for _ in range(WRITES):
        for attempt in range(TRIES):
            obj = await client.get(COUNTER, "c", "default")
            patch = {
                "metadata": {"resourceVersion": obj.resource_version},
                "status": {mine: obj.status.get(mine, 0) + 1},
            }
            try:
                await client.patch(COUNTER, "c", "default", patch, type=PatchType.MERGE, subresource="status")
                break
            except Conflict:
                await asyncio.sleep(0.01 * attempt)


async def by_apply(client, world, mine):
    """A forced apply of a number kept in memory: it lands always, and overwrites always."""
    for n in range(1, WRITES + 1):
        body = COUNTER("c", "default", status={mine: n})
        await client.apply(body, field_manager=mine, subresource="status")


async def foreign_loop(client, name):
    while True:
        obj = await client.get(COUNTER, "c", "default")
        labels = obj["metadata"].setdefault("labels", {})
        labels[name] = str(int(labels.get(name, 0)) + 1)
        try:
            await client.replace(obj)
        except Conflict:
            await asyncio.sleep(0)


async def measure(open_transport, world):
    foreign = open_transport()
    others = Client(foreign, world, user_agent="others")
    with suppress(AlreadyExists):
        await others.create(CRD)
    while True:
        try:
            await others.create(COUNTER("c", "default"))
            break
        except (ApiError, LookupError):
            await asyncio.sleep(0.1)
    await others.patch(COUNTER, "c", "default", {"status": {"seed": 0}}, type=PatchType.MERGE, subresource="status")
    loops = [asyncio.create_task(foreign_loop(others, f"f{n}")) for n in range(FOREIGN)]
    print(f"{FOREIGN} foreign PUT loops, {WRITES} writes each way")
    print(f"{'way':24}{'landed':>8}{'requests for each landed':>28}")
    for way in (by_decide, by_get_and_put, by_versioned_patch, by_apply):
        wire = Counting(open_transport())
        await way(Client(wire, world), world, way.__name__)
        landed = (await others.get(COUNTER, "c", "default")).status.get(way.__name__, 0)
        print(f"{way.__name__:24}{landed:>8}{wire.requests / max(landed, 1):>28.2f}", flush=True)
        await wire.transport.close()
    for loop in loops:
        loop.cancel()
    await asyncio.gather(*loops, return_exceptions=True)
    await foreign.close()


async def main():
    world = World()
    with ExitStack() as stack:
        if "--real" in sys.argv:
            real = stack.enter_context(RealServer())
            await measure(lambda: HttpTransport(Cluster(real.url, real.ca_data), Static.token(real.token)), world)
        else:
            await measure(Server(world, tokens=["t"]).transport, world)


if __name__ == "__main__":
    asyncio.run(main())
