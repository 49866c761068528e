"""The test bed: proxies made at once beside a gateway controller, for the tests and `fairlead demo httpproxy`."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import fairlead as fl
from fairlead.api.errors import NotFound
from fairlead.cache import Cache, Change
from fairlead.client.client import Client
from fairlead.client.transport import Transport
from fairlead.testing.demo.stage import Stage, Way, bounded
from fairlead_operators import crds
from fairlead_operators.httpproxy import gateway, legacy
from fairlead_operators.httpproxy.controller import op
from fairlead_operators.httpproxy.kinds import Connector, HTTPProxy

SCALE = 1
OLD_NAME = "network-services-operator"
LATE = {"configmaps": (1.0, 2.0)}
ADDRESSES, PACE = 16, 0.06
"""How many addresses the agent of a new tunnel finds, and the seconds between two."""
"""How late the old operator's cache learns of ConfigMaps; README.md has the reason and what other values give."""


async def install(client: Client, labels: Mapping[str, str] | None = None) -> None:
    """The CRDs of this system: its own, and the genuine ones of Gateway API and Envoy Gateway."""
    await crds.install(client, __package__, labels)


async def report_connector(
    client: Client, name: str, namespace: str, *, ready: bool = True, addresses: Iterable[str] = ()
) -> None:
    """What a tunnel's agent says of itself; the Connector is made where there is none."""
    try:
        obj = await client.get(Connector, name, namespace)
    except NotFound:
        obj = await client.create(Connector(name, namespace))
    said = {"type": "Ready", "status": str(ready), "reason": "Agent", "message": ""}
    found = [{"address": address, "port": 443} for address in addresses]
    status = {
        "conditions": [{**said, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "connectionDetails": {"type": "PublicKey", "publicKey": {"id": "key-1", "addresses": found}},
    }
    await client.replace(fl.Object({**obj, "status": status}), subresource="status")


async def agent(client: Client, name: str, namespace: str) -> None:
    """The far end of a new tunnel: it reports each address of its own as it finds it."""
    addresses: list[str] = []
    for i in range(ADDRESSES):
        addresses.append(f"198.51.100.{i}")
        await report_connector(client, name, namespace, addresses=addresses)
        await asyncio.sleep(PACE)


TUNNELLED = [{"backends": [{"endpoint": "http://localhost:8080", "connector": {"name": "tunnel"}}]}]


def a_proxy(name: str, namespace: str, **spec: Any) -> fl.Object:
    """A proxy with one plain backend, unless `spec` says otherwise."""
    rules = [{"backends": [{"endpoint": "https://backend.example.com"}]}]
    return HTTPProxy(name, namespace, spec={"rules": rules, **spec})


def theirs(transport: Transport, world: fl.World, namespace: str, **options: Any) -> AbstractAsyncContextManager[Any]:
    """The operator as it was."""
    return legacy.running(Client(transport, world, user_agent=OLD_NAME), world, namespace=namespace, **options)


def theirs_beside(transport: Transport, world: fl.World, namespace: str) -> AbstractAsyncContextManager[Any]:
    """The gateway controller as it was: in the same process, so under the same name."""
    return gateway.running(Client(transport, world, user_agent=OLD_NAME), world, namespace=namespace)


async def play(stage: Stage, way: Way, scale: int, *, mode: gateway.Mode = "update") -> None:
    """Create so many proxies at once; done is Programmed=True."""
    admin, world, where = stage.admin, stage.world, stage.namespace
    await install(admin, stage.labels)
    await report_connector(admin, "tunnel", where)
    names = [f"proxy-{i}" for i in range(scale)]
    async with AsyncExitStack() as stack:
        beside = gateway.running(stage.client("gateway"), world, namespace=where, mode=mode, seen=stage.seen("gateway"))
        await stack.enter_async_context(beside)
        if way == "new":
            running = stage.observed(op).running(stage.transport("operator"), world, namespaces=[where])
        else:
            running = theirs(stage.transport("operator", late=LATE), world, where, seen=stage.seen())
        await stack.enter_async_context(running)
        cache = await stack.enter_async_context(Cache(admin, world))
        view = cache.watch(HTTPProxy, namespaces=[where])
        view.subscribe(lambda change: _programmed(change, stage))
        await view.synced()
        await stage.begin(names)
        proxies = [a_proxy(name, where, rules=TUNNELLED) for name in names]
        await asyncio.gather(*map(bounded(admin.create), proxies), agent(admin, "tunnel", where))
        await stage.settled()
        await stage.idle()


def _programmed(change: Change, stage: Stage) -> None:
    if change.new is not None and change.new.object().is_true("Programmed"):
        stage.done(change.name)
