"""The test bed: proxies made at once beside a gateway controller, for the tests and `fairlead demo httpproxy`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import fairlead as fl
from fairlead.cache import Cache, Change
from fairlead.client.client import Client
from fairlead.client.transport import Transport
from fairlead.operators import crds
from fairlead.operators.httpproxy import gateway, legacy
from fairlead.operators.httpproxy.kinds import HTTPProxy
from fairlead.operators.httpproxy.operator import op
from fairlead.operators.stage import Stage, Way

SCALE = 1


async def install(client: Client) -> None:
    """The CRDs of this system: its own, and the genuine ones of Gateway API and Envoy Gateway."""
    await crds.install(client, __package__)


def a_proxy(name: str, namespace: str, **spec: Any) -> fl.Object:
    """A proxy with one plain backend, unless `spec` says otherwise."""
    rules = [{"backends": [{"endpoint": "https://backend.example.com"}]}]
    return HTTPProxy(name, namespace, spec={"rules": rules, **spec})


@asynccontextmanager
async def ours(transport: Transport, world: fl.World, namespace: str) -> AsyncIterator[None]:
    """The operator of this package."""
    async with op.running(transport, world, namespaces=[namespace]) as running:
        await running.quiet()
        yield


def theirs(transport: Transport, world: fl.World, namespace: str) -> AbstractAsyncContextManager[Any]:
    """The operator as it was."""
    client = Client(transport, world, user_agent="network-services-operator")
    return legacy.running(client, world, namespace=namespace)


async def play(stage: Stage, way: Way, scale: int, *, mode: gateway.Mode = "update") -> None:
    """Create so many proxies at once; done is Programmed=True."""
    admin, world, where = stage.admin, stage.world, stage.namespace
    await install(admin)
    names = [f"proxy-{i}" for i in range(scale)]
    async with AsyncExitStack() as stack:
        beside = gateway.running(stage.client("gateway"), world, namespace=where, mode=mode, seen=stage.seen("gateway"))
        await stack.enter_async_context(beside)
        if way == "new":
            running = stage.observed(op).running(stage.transport("operator"), world, namespaces=[where])
            await stack.enter_async_context(running)
        else:
            client = Client(stage.transport("operator"), world, user_agent="network-services-operator")
            await stack.enter_async_context(legacy.running(client, world, namespace=where, seen=stage.seen()))
        cache = await stack.enter_async_context(Cache(admin, world))
        view = cache.watch(HTTPProxy, namespaces=[where])
        view.subscribe(lambda change: _programmed(change, stage))
        await view.synced()
        await stage.begin(names)
        await asyncio.gather(*(admin.create(a_proxy(name, where)) for name in names))
        await stage.settled()
        await stage.idle()


def _programmed(change: Change, stage: Stage) -> None:
    if change.new is not None and change.new.object().is_true("Programmed"):
        stage.done(change.name)
