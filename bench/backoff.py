"""Measure how fast an edit of an object in error is acted on: `python bench/backoff.py [--embedded | --real]`.

First, every object fails and waits for 20 s or more. Someone corrects one after the other. The program prints the time
from sending the edit to the start of the pass that sees it. Then someone edits one failing object 100 times per second,
beside a failing object that nobody edits, and the program prints the passes over both.
"""

import argparse
import asyncio
import logging

import fairlead as fl
import report
from fairlead.api.world import World
from fairlead.client.client import Client, PatchType
from fairlead.client.credentials import StaticCredentials
from fairlead.client.http import Cluster, HttpTransport
from fairlead.runtime.definitions import install_missing
from fairlead.server.app import Server
from fairlead.testing.real import RealServer, missing
from support import recording

PAINTING = fl.kind("bench.fairlead.test/v1", "Painting")
OBJECTS, PAUSE = 200, 0.02
EDIT_SECONDS, EDITS_PER_SECOND = 20.0, 100


def build_operator(seen_edits, passes, **settings):
    op = fl.Operator("painter", **settings)

    @op.reconcile(PAINTING)
    async def paint(obj, ctx):
        now = asyncio.get_running_loop().time()
        passes[obj.name] = passes.get(obj.name, 0) + 1
        seen_edits.setdefault((obj.name, obj.spec.get("edit")), now)
        if not obj.spec.get("corrected"):
            raise ValueError("no such colour")

    return op


async def measure_reaction(transport, client, world, objects):
    """Return the milliseconds from each edit to the pass that sees it, sorted."""
    seen_edits, loop = {}, asyncio.get_running_loop()
    names = [f"painting-{number}" for number in range(objects)]
    for name in names:
        await client.create(PAINTING(name, "default", spec={"edit": 0}))
    sent_at = {}
    async with build_operator(seen_edits, {}, backoff_base=20).running(transport, world):
        while len(seen_edits) < objects:  # noqa: ASYNC110 - polling does not slow the measurement, which comes later
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)  # The status writes have ended.
        for name in names:
            sent_at[name] = loop.time()
            edit = {"spec": {"edit": 1, "corrected": True}}
            await client.patch(PAINTING, name, "default", edit, type=PatchType.MERGE)
            await asyncio.sleep(PAUSE)
        await asyncio.sleep(1)
    return sorted((seen_edits[name, 1] - sent_at[name]) * 1000 for name in names)


async def measure_error_rate(transport, client, world):
    """Return (edits, passes over the edited object, passes over the other one)."""
    passes, loop, edits = {}, asyncio.get_running_loop(), 0
    for name in ("edited", "left-alone"):
        await client.create(PAINTING(name, "default", spec={"edit": 0}))
    async with build_operator({}, passes).running(transport, world):
        started = loop.time()
        while (elapsed := loop.time() - started) < EDIT_SECONDS:
            edits += 1
            await client.patch(PAINTING, "edited", "default", {"spec": {"edit": edits}}, type=PatchType.MERGE)
            await asyncio.sleep(max(0.0, edits / EDITS_PER_SECOND - elapsed))
    return edits, passes["edited"], passes["left-alone"]


async def measure(open_transport, world, objects):
    transport, foreign = open_transport(), open_transport()
    client = Client(foreign, world, user_agent="somebody-else")
    await install_missing(client, [PAINTING])
    milliseconds = await measure_reaction(transport, client, world, objects)
    figures = {
        "p50 ms": milliseconds[len(milliseconds) // 2],
        "p99 ms": milliseconds[min(len(milliseconds) - 1, int(len(milliseconds) * 0.99))],
        "max ms": milliseconds[-1],
    }
    print("  ".join(f"{name} {value:.1f}" for name, value in figures.items()), f" ({objects} objects in error)")
    edits, edited, alone = await measure_error_rate(transport, client, world)
    bound = alone + 3 + EDIT_SECONDS
    print(
        f"{edits} edits in {EDIT_SECONDS:.0f} s: {edited} passes over the edited object, {alone} over the other one; "
        f"the bound is {alone} + 3 + {EDIT_SECONDS:.0f} = {bound:.0f}"
    )
    await transport.close()
    await foreign.close()
    return {**figures, "edits": edits, "edited": edited, "alone": alone}


async def on(name, objects):
    logging.disable(logging.ERROR)
    world = World()
    if name == "embedded":
        return await measure(Server(world, tokens=["t"]).transport, world, objects)
    with RealServer() as real:
        return await measure(
            lambda: HttpTransport(Cluster(real.url, real.ca_data), StaticCredentials.token(real.token)), world, objects
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    servers = parser.add_mutually_exclusive_group()
    for name in ("embedded", "real"):
        servers.add_argument(f"--{name}", dest="only", action="store_const", const=name, help="on that server alone")
    parser.add_argument("--objects", type=int, default=OBJECTS)
    parser.add_argument("--save", action="store_true", help="write the section of docs/benchmarks.md")
    options = parser.parse_args()
    figures = {}
    for name in [options.only] if options.only else ["embedded", "real"]:
        if name == "real" and (reason := missing()):
            print(f"the real server is left out: {reason}")
            continue
        print(f"\n{name}")
        figures[name] = asyncio.run(on(name, options.objects))
    if options.save:
        rows = {"objects": options.objects, "seconds": EDIT_SECONDS, "rows": figures}
        recording.save("backoff", rows, is_partial=bool(options.only))
        report.main()


if __name__ == "__main__":
    main()
