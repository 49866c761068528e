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
from fairlead.testing.demo.demo_run import DemoRun, Variant, limit_concurrency
from fairlead_operators import crds
from fairlead_operators.httpproxy import gateway, legacy
from fairlead_operators.httpproxy.controller import op
from fairlead_operators.httpproxy.kinds import Connector, HTTPProxy

SCALE = 1
OLD_NAME = "network-services-operator"
WATCH_LAGS = {"configmaps": (1.0, 2.0)}
"""The simulated watch lag of the old operator's ConfigMaps, in seconds. README.md explains the values."""
ADDRESSES, ADDRESS_INTERVAL = 16, 0.06
"""How many addresses the agent of a new tunnel reports, and the seconds between two reports."""


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
        await asyncio.sleep(ADDRESS_INTERVAL)


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


async def play(run: DemoRun, variant: Variant, scale: int, *, mode: gateway.Mode = "update") -> None:
    """Create so many proxies at once; done is Programmed=True."""
    admin, world, where = run.admin, run.world, run.namespace
    await install(admin, run.labels)
    await report_connector(admin, "tunnel", where)
    names = [f"proxy-{i}" for i in range(scale)]
    async with AsyncExitStack() as stack:
        beside = gateway.running(
            run.client("gateway"), world, namespace=where, mode=mode, seen=run.reconcile_recorder("gateway")
        )
        await stack.enter_async_context(beside)
        if variant == "new":
            running = run.record_reconciles(op).running(run.transport("operator"), world, namespaces=[where])
        else:
            running = theirs(
                run.transport("operator", watch_lags=WATCH_LAGS), world, where, seen=run.reconcile_recorder()
            )
        await stack.enter_async_context(running)
        cache = await stack.enter_async_context(Cache(admin, world))
        view = cache.watch(HTTPProxy, namespaces=[where])
        view.subscribe(lambda change: _programmed(change, run))
        await view.synced()
        await run.start(names)
        proxies = [a_proxy(name, where, rules=TUNNELLED) for name in names]
        await asyncio.gather(*map(limit_concurrency(admin.create), proxies), agent(admin, "tunnel", where))
        await run.wait_until_done()
        await run.record_idle_time()


def _programmed(change: Change, run: DemoRun) -> None:
    if change.new is not None and change.new.object().is_true("Programmed"):
        run.mark_done(change.name)
