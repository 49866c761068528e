"""Tests of the requests that a reconcile without changes sends, on both servers."""

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
RECONCILES = 3


async def versions(env):
    return [(await env.wait_until(kind, name, there)).resource_version for kind, name in CHILDREN]


async def annotate(env, number):
    """Change an annotation, which triggers a reconcile, and return the proxy."""
    patch = {"metadata": {"annotations": {"example.com/n": str(number)}}}
    return await env.client.patch(HTTPProxy, "web", env.namespace, patch, type=PatchType.MERGE)


def writes(counter):
    return {key: count for key, count in counter.counts.items() if key[0] != "GET"}


async def test_unchanged_proxy_costs_no_write(env):
    counter = CountingTransport(env.api.transport())
    running = op.running(counter, World(), namespaces=[env.namespace])
    running = await env.stack.enter_async_context(running)
    await env.create()
    before = await versions(env)
    await running.wait_until_idle()
    counter.counts.clear()
    for number in range(RECONCILES):
        await running.wait_until_seen(await annotate(env, number))
        await running.wait_until_idle()
    assert writes(counter) == {}
    assert await versions(env) == before


async def test_legacy_puts_the_unchanged_route_on_every_reconcile(env):
    """The server's defaults make the route differ from the desired one forever. The PUT changes nothing."""
    run, reconciles = DemoRun(env.api.transport, World(), env.namespace, network=False), asyncio.Queue()
    options = {"on_reconcile": lambda name, failed: reconciles.put_nowait(failed)}
    await env.stack.enter_async_context(demo.run_legacy(run.transport("old"), World(), env.namespace, **options))
    await env.create()
    before = await versions(env)
    async with asyncio.timeout(PATIENCE):
        for number in itertools.count():
            puts = [
                record
                for record in run.records
                if (record.verb, record.outcome) == ("PUT", "200") and "httproutes" in record.path
            ]
            if len(puts) >= RECONCILES:
                break
            await annotate(env, number)
            await reconciles.get()
    assert await versions(env) == before
