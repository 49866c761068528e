"""The test bed: both writers on one server, and what it cost. Used by the tests and by `fairlead demo httpproxy`."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import yaml

import fairlead as fl
from fairlead.api.errors import AlreadyExists
from fairlead.cache import Cache, Change
from fairlead.client.client import Client
from fairlead.client.discovery import NotServed
from fairlead.client.transport import Transport
from fairlead.operators.httpproxy import gateway, legacy
from fairlead.operators.httpproxy.kinds import HTTPProxy
from fairlead.operators.httpproxy.operator import op
from fairlead.testing.network import CountingTransport, SlowTransport

Door = Callable[[], Transport]
Way = Callable[[Transport, fl.World, str], AbstractAsyncContextManager[Any]]

REQUEST = (0.002, 0.006)
"""Seconds a request takes: a server in the same region."""
WATCH = (0.02, 0.2)
"""Seconds until a watch event has come: a busy server's watch cache and a busy informer."""
PATIENCE = 3600.0


def definitions() -> list[dict[str, Any]]:
    """The CRDs of this system: its own, and the genuine ones of Gateway API and Envoy Gateway."""
    folder = resources.files(__package__) / "crds"
    paths = sorted((p for p in folder.iterdir() if p.name.endswith((".json", ".yaml"))), key=lambda p: p.name)
    return [yaml.safe_load(path.read_text()) for path in paths]


async def install(client: Client) -> None:
    """Install them, and wait until each kind is served."""
    for crd in definitions():
        try:
            await client.create(crd)
        except AlreadyExists:
            continue
        spec = crd["spec"]
        version = next(v["name"] for v in spec["versions"] if v["storage"])
        kind = fl.kind(f"{spec['group']}/{version}", spec["names"]["kind"], spec["names"]["plural"])
        for _ in range(200):
            try:
                await client.list(kind, limit=1)
                break
            except NotServed:
                await asyncio.sleep(0.05)


def a_proxy(name: str, namespace: str, **spec: Any) -> fl.Object:
    """A proxy with one plain backend, unless `spec` says otherwise."""
    rules = [{"backends": [{"endpoint": "https://backend.example.com"}]}]
    return HTTPProxy(name, namespace, spec={"rules": rules, **spec})


@dataclass
class Outcome:
    """What one way cost."""

    programmed: list[float] = field(default_factory=list)
    """Seconds from creation to Programmed=True, of each proxy, sorted."""
    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    """The operator's requests by method and status, from the first creation to the last Programmed."""
    idle_writes: int = 0
    """Its writes in the ten minutes after that."""

    @property
    def conflicts(self) -> int:
        return sum(count for (_, status), count in self.requests.items() if status == 409)

    @property
    def total(self) -> int:
        return sum(self.requests.values())


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


async def race(
    door: Door,
    world: fl.World,
    way: Way,
    *,
    proxies: int,
    namespace: str = "default",
    mode: gateway.Mode = "update",
    idle: float = 600.0,
) -> Outcome:
    """Create so many proxies at once beside a gateway controller, and measure until all are programmed."""
    outcome = Outcome()
    admin = Client(door(), world, user_agent="bed")
    await install(admin)
    counted = CountingTransport(door())
    async with AsyncExitStack() as stack:
        beside = Client(SlowTransport(door(), world, request=REQUEST, watch=WATCH), world, user_agent="gateway")
        await stack.enter_async_context(gateway.running(beside, world, namespace=namespace, mode=mode))
        slow = SlowTransport(counted, world, request=REQUEST, watch=WATCH)
        await stack.enter_async_context(way(slow, world, namespace))
        cache = await stack.enter_async_context(Cache(admin, world))
        waiting = _Waiting(world, {f"proxy-{i}" for i in range(proxies)})
        cache.watch(HTTPProxy, namespaces=[namespace]).subscribe(waiting.see)
        counted.counts.clear()
        born = world.clock.monotonic()
        await asyncio.gather(*(admin.create(a_proxy(f"proxy-{i}", namespace)) for i in range(proxies)))
        async with asyncio.timeout(PATIENCE):
            await waiting.over.wait()
        outcome.programmed = sorted(moment - born for moment in waiting.moments.values())
        outcome.requests = Counter(counted.counts)
        await asyncio.sleep(idle)
        after = counted.counts - outcome.requests
        outcome.idle_writes = sum(count for (method, _), count in after.items() if method != "GET")
    return outcome


class _Waiting:
    """Notes the moment at which each proxy is programmed."""

    def __init__(self, world: fl.World, names: set[str]) -> None:
        self._world = world
        self._names = names
        self.moments: dict[str, float] = {}
        self.over = asyncio.Event()

    def see(self, change: Change) -> None:
        if change.new is None or change.name not in self._names or change.name in self.moments:
            return
        if change.new.object().is_true("Programmed"):
            self.moments[change.name] = self._world.clock.monotonic()
            if len(self.moments) == len(self._names):
                self.over.set()


def summary(outcomes: Mapping[str, Outcome]) -> list[list[str]]:
    """Rows of the table, one a way."""
    rows = []
    for name, outcome in outcomes.items():
        times = outcome.programmed
        count = len(times)
        rows.append(
            [
                name,
                str(outcome.conflicts),
                f"{outcome.total / count:.1f}",
                _duration(times[count // 2]),
                _duration(times[-1]),
                str(outcome.idle_writes),
            ]
        )
    return rows


def _duration(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:.0f} min {rest:02.0f} s" if minutes else f"{rest:.2f} s"
