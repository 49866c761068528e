"""The demo of the HTTPProxy operator: proxies with a tunnel, and a gateway controller that writes their children."""

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
from fairlead_operators.httpproxy import gateway_controller, legacy
from fairlead_operators.httpproxy.controller import op
from fairlead_operators.httpproxy.kinds import Connector, HTTPProxy

SCALE = 1
LEGACY_USER_AGENT = "network-services-operator"
WATCH_LAGS = {"configmaps": (1.0, 2.0)}
"""The simulated watch lag of the old operator's ConfigMaps, in seconds. README.md explains the values."""
ADDRESSES, ADDRESS_INTERVAL = 16, 0.06
"""How many addresses the agent of a new tunnel reports, and the seconds between two reports."""


async def install(client: Client, labels: Mapping[str, str] | None = None) -> None:
    """Install the CRDs of this system, of Gateway API and of Envoy Gateway."""
    await crds.install(client, __package__, labels)


async def report_connector(
    client: Client, name: str, namespace: str, *, is_ready: bool = True, addresses: Iterable[str] = ()
) -> None:
    """Write the status of a Connector, as the agent of a tunnel does. Create the Connector if it does not exist."""
    try:
        obj = await client.get(Connector, name, namespace)
    except NotFound:
        obj = await client.create(Connector(name, namespace))
    condition = {"type": "Ready", "status": str(is_ready), "reason": "Agent", "message": ""}
    endpoints = [{"address": address, "port": 443} for address in addresses]
    status = {
        "conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "connectionDetails": {"type": "PublicKey", "publicKey": {"id": "key-1", "addresses": endpoints}},
    }
    await client.replace(fl.Object({**obj, "status": status}), subresource="status")


async def simulate_agent(client: Client, name: str, namespace: str) -> None:
    """Report the addresses of a new tunnel one after another, as the agent of the tunnel does."""
    addresses: list[str] = []
    for i in range(ADDRESSES):
        addresses.append(f"198.51.100.{i}")
        await report_connector(client, name, namespace, addresses=addresses)
        await asyncio.sleep(ADDRESS_INTERVAL)


TUNNEL_RULES = [{"backends": [{"endpoint": "http://localhost:8080", "connector": {"name": "tunnel"}}]}]


def make_proxy(name: str, namespace: str, **spec: Any) -> fl.Object:
    """Return an HTTPProxy with one plain backend. `spec` replaces fields of its spec."""
    rules = [{"backends": [{"endpoint": "https://backend.example.com"}]}]
    return HTTPProxy(name, namespace, spec={"rules": rules, **spec})


def run_legacy(
    transport: Transport, world: fl.World, namespace: str, **options: Any
) -> AbstractAsyncContextManager[Any]:
    """Run the legacy HTTPProxy operator."""
    return legacy.running(Client(transport, world, user_agent=LEGACY_USER_AGENT), world, namespace=namespace, **options)


def run_legacy_gateway_controller(
    transport: Transport, world: fl.World, namespace: str
) -> AbstractAsyncContextManager[Any]:
    """Run the gateway controller with the user agent of the legacy operator, because both ran in one process."""
    client = Client(transport, world, user_agent=LEGACY_USER_AGENT)
    return gateway_controller.running(client, world, namespace=namespace)


async def play(run: DemoRun, variant: Variant, scale: int, *, mode: gateway_controller.Mode = "update") -> None:
    """Create `scale` proxies at the same time. A proxy is done when its condition Programmed is True."""
    admin, world, namespace = run.admin, run.world, run.namespace
    await install(admin, run.labels)
    await report_connector(admin, "tunnel", namespace)
    names = [f"proxy-{i}" for i in range(scale)]
    async with AsyncExitStack() as stack:
        second_writer = gateway_controller.running(
            run.client("gateway"),
            world,
            namespace=namespace,
            mode=mode,
            on_reconcile=run.reconcile_recorder("gateway"),
        )
        await stack.enter_async_context(second_writer)
        if variant == "new":
            running = run.record_reconciles(op).running(run.transport("operator"), world, namespaces=[namespace])
        else:
            transport = run.transport("operator", watch_lags=WATCH_LAGS)
            running = run_legacy(transport, world, namespace, on_reconcile=run.reconcile_recorder())
        await stack.enter_async_context(running)
        cache = await stack.enter_async_context(Cache(admin, world))
        proxies = cache.watch(HTTPProxy, namespaces=[namespace])
        proxies.subscribe(lambda change: _mark_if_programmed(change, run))
        await proxies.wait_for_sync()
        await run.start(names)
        create = limit_concurrency(admin.create)
        creates = [create(make_proxy(name, namespace, rules=TUNNEL_RULES)) for name in names]
        await asyncio.gather(*creates, simulate_agent(admin, "tunnel", namespace))
        await run.wait_until_done()
        await run.record_idle_time()


def _mark_if_programmed(change: Change, run: DemoRun) -> None:
    if change.new is not None and change.new.object().is_true("Programmed"):
        run.mark_done(change.name)
