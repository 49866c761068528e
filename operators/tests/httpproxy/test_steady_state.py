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


async def versions(env):
    return [(await env.until(kind, name, there)).resource_version for kind, name in CHILDREN]


async def woken(env, number):
    """The proxy after a change that matters to nobody."""
    patch = {"metadata": {"annotations": {"example.com/n": str(number)}}}
    return await env.client.patch(HTTPProxy, "web", env.namespace, patch, type=PatchType.MERGE)


def writes(counted):
    return {key: count for key, count in counted.counts.items() if key[0] != "GET"}


async def test_unchanged_proxy_costs_no_write(env):
    counted = CountingTransport(env.api.transport())
    running = op.running(counted, World(), namespaces=[env.namespace])
    running = await env.stack.enter_async_context(running)
    await env.create()
    before = await versions(env)
    await running.quiet()
    counted.counts.clear()
    for number in range(WAKES):
        await running.seen(await woken(env, number))
        await running.quiet()
    assert writes(counted) == {}
    assert await versions(env) == before


async def test_legacy_puts_the_unchanged_route_on_every_reconcile(env):
    """The defaults that the server fills in make it differ for ever; the PUT changes nothing, and moves no version."""
    run, passes = DemoRun(env.api.transport, World(), env.namespace, network=False), asyncio.Queue()
    told = {"on_reconcile": lambda name, failed: passes.put_nowait(failed)}
    await env.stack.enter_async_context(demo.run_legacy(run.transport("old"), World(), env.namespace, **told))
    await env.create()
    before = await versions(env)
    async with asyncio.timeout(PATIENCE):
        for number in itertools.count():
            puts = [
                mark for mark in run.marks if (mark.action, mark.code) == ("PUT", 200) and "httproutes" in mark.target
            ]
            if len(puts) >= WAKES:
                break
            await woken(env, number)
            await passes.get()
    assert await versions(env) == before
