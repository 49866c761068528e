"""At rest, on both servers: what a pass costs that has nothing to do."""

import asyncio
import itertools

from waiting import PATIENCE, there

from fairlead.api.world import World
from fairlead.client.client import PatchType
from fairlead.testing.demo.demo_run import DemoRun
from fairlead.testing.network import CountingTransport
from fairlead_operators.httpproxy import demo
from fairlead_operators.httpproxy.controller import op
from fairlead_operators.httpproxy.kinds import EndpointSlice, Gateway, HTTPProxy, HTTPRoute

CHILDREN = ((Gateway, "web"), (HTTPRoute, "web"), (EndpointSlice, "web-0-0"))
WAKES = 3


async def versions(scene):
    return [(await scene.until(kind, name, there)).resource_version for kind, name in CHILDREN]


async def woken(scene, number):
    """The proxy after a change that matters to nobody."""
    patch = {"metadata": {"annotations": {"example.com/n": str(number)}}}
    return await scene.client.patch(HTTPProxy, "web", scene.namespace, patch, type=PatchType.MERGE)


def writes(counted):
    return {key: count for key, count in counted.counts.items() if key[0] != "GET"}


async def test_ours_sends_nothing_and_moves_no_version(scene):
    counted = CountingTransport(scene.api.transport())
    running = op.running(counted, World(), namespaces=[scene.namespace])
    running = await scene.stack.enter_async_context(running)
    await scene.create()
    before = await versions(scene)
    await running.quiet()
    counted.counts.clear()
    for number in range(WAKES):
        await running.seen(await woken(scene, number))
        await running.quiet()
    assert writes(counted) == {}
    assert await versions(scene) == before


async def test_the_old_way_puts_the_route_on_every_pass_for_nothing(scene):
    """The defaults that the server fills in make it differ for ever; the PUT changes nothing, and moves no version."""
    run, passes = DemoRun(scene.api.transport, World(), scene.namespace, network=False), asyncio.Queue()
    told = {"seen": lambda name, failed: passes.put_nowait(failed)}
    await scene.stack.enter_async_context(demo.theirs(run.transport("old"), World(), scene.namespace, **told))
    await scene.create()
    before = await versions(scene)
    async with asyncio.timeout(PATIENCE):
        for number in itertools.count():
            puts = [
                mark for mark in run.marks if (mark.action, mark.code) == ("PUT", 200) and "httproutes" in mark.target
            ]
            if len(puts) >= WAKES:
                break
            await woken(scene, number)
            await passes.get()
    assert await versions(scene) == before
