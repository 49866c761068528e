"""A fleet of clusters for tests: a downstream server, upstream servers, transports with faults, and a manual clock."""

import asyncio
import contextlib
import json
from types import SimpleNamespace

import fairlead as fl
from fairlead.api.errors import NotFound
from fairlead.api.world import World
from fairlead.client.client import Client, PatchType
from fairlead.client.transport import NotSent
from fairlead.server.app import Server
from fairlead.tools.orphans.clusters import Cluster, Fleet
from fairlead.tools.orphans.deletion import OrphanDeleter, find_exceeded_caps
from fairlead.tools.orphans.evidence import Evidence
from fairlead.tools.orphans.plan import scan
from fairlead.tools.orphans.rule_files import shipped_rules
from fairlead.tools.orphans.verdicts import State
from fairlead_operators import crds

Gateway = fl.kind("gateway.networking.k8s.io/v1", "Gateway")
HTTPRoute = fl.kind("gateway.networking.k8s.io/v1", "HTTPRoute")
PREFIX = "meta.datumapis.com/upstream-"
GATEWAY_API = [
    crd
    for crd in crds.definitions("fairlead_operators.httpproxy")
    if crd["spec"]["group"] == "gateway.networking.k8s.io"
]


class HandClock:
    """A clock that the test advances."""

    def __init__(self, start=1_767_225_600.0):
        self.wall, self.count = start, 0.0

    def now(self):
        return self.wall

    def monotonic(self):
        return self.count

    def forward(self, seconds):
        self.wall += seconds
        self.count += seconds


class Door:
    """A transport to a server. `fault(method, path, query)` may return an exception or an error status.

    What it raises by itself is the test's own failure, which a client would take for a lost answer: it is kept, and
    raised again at the end by `Bed.clean`.
    """

    def __init__(self, inner):
        self.inner = inner
        self.fault = lambda method, path, query: None
        self.requests = []
        self.failures = []

    async def request(self, request):
        self.requests.append((request.method, request.path, dict(request.query or {})))
        try:
            trouble = self.fault(request.method, request.path, dict(request.query or {}))
            if asyncio.iscoroutine(trouble):
                trouble = await trouble
        except Exception as error:
            self.failures.append(error)
            raise
        if isinstance(trouble, BaseException):
            raise trouble
        if trouble is not None:
            reason = {403: "Forbidden", 404: "NotFound", 410: "Expired", 503: "ServiceUnavailable"}.get(trouble, "")
            status = {"kind": "Status", "apiVersion": "v1", "code": trouble, "reason": reason, "message": "no"}
            return SimpleNamespace(status=trouble, headers={}, body=json.dumps(status).encode(), warnings=[])
        return await self.inner.request(request)

    async def stream(self, request):
        trouble = self.fault("GET", request.path, {})
        if trouble is not None:
            raise ConnectionResetError("shut")
        return await self.inner.stream(request)

    async def close(self):
        await self.inner.close()

    def shut(self):
        self.fault = lambda *_: NotSent("connection refused")

    def open(self):
        self.fault = lambda *_: None


class Lines(list):
    """A journal in memory."""

    def write(self, entry):
        self.append(json.loads(json.dumps(entry)))


async def install(client):
    """Return the CRDs of Gateway API."""
    for crd in GATEWAY_API:
        with contextlib.suppress(fl.ApiError):
            await client.create(crd)
    while True:
        try:
            await client.list(HTTPRoute, limit=1)
            await client.list(Gateway, limit=1)
            return
        except fl.ApiError:
            await asyncio.sleep(0.05)


class Bed:
    """A fleet with its evidence, and clients to change each of its clusters."""

    def __init__(self, downstream, namespace, world):
        self.namespace, self.world, self.clock = namespace, world, world.clock
        self.door = Door(downstream)
        self.down = Client(self.door, world, user_agent="test")
        self.doors, self.up = {}, {}
        self.retired = frozenset()
        self.rules = shipped_rules()
        self.journal = Lines()
        self.evidence = None

    async def start(self, *upstreams):
        await install(self.down)
        for name in upstreams:
            await self.upstream(name)
        self.evidence = Evidence(self.world, await self.fleet.downstream.uid())
        return self

    async def upstream(self, name, transport=None):
        """Add or replace the cluster of that name. It is embedded unless a transport is given."""
        inner = transport or Server(self.world).transport()
        await install(Client(inner, self.world))
        if name in self.doors:
            self.doors[name].inner = inner
        else:
            self.doors[name] = Door(inner)
        self.up[name] = Client(inner, self.world)

    @property
    def fleet(self):
        clients = {name: Client(door, self.world, user_agent="orphans") for name, door in self.doors.items()}
        upstreams = {name: Cluster(name, client) for name, client in clients.items()}
        return Fleet(Cluster("downstream", Client(self.door, self.world)), upstreams, self.retired)

    def restart(self):
        """Restart: only the recorded evidence is kept."""
        recorded = json.loads(json.dumps(self.evidence.to_json()))
        self.evidence = Evidence(self.world, self.evidence.downstream)
        self.evidence.read(recorded)

    async def gateway(self, name="gw", cluster="project-a", namespace="default"):
        listeners = [{"name": "http", "port": 80, "protocol": "HTTP"}]
        spec = {"gatewayClassName": "external", "listeners": listeners}
        with contextlib.suppress(fl.ApiError):
            await self.up[cluster].create(fl.Namespace(namespace))
        return await self.up[cluster].create(Gateway(name, namespace, spec=spec))

    async def no_gateway(self, name="gw", cluster="project-a", namespace="default"):
        await self.up[cluster].delete(Gateway, name, namespace)

    async def route(self, name="web", parents=("gw",), cluster="cluster-project-a", namespace="default", **labels):
        """Create a downstream route as the original controller does. Parents are names or parentRefs."""
        refs = [{"name": parent} if isinstance(parent, str) else parent for parent in parents]
        labels_by_key = {"cluster-name": cluster, "group": HTTPRoute.group, "kind": "HTTPRoute", "name": name}
        labels_by_key |= {"namespace": namespace, **labels}
        spec = {"parentRefs": refs} if refs else {}
        given = {PREFIX + key: value for key, value in labels_by_key.items() if value is not None}
        return await self.down.create(HTTPRoute(name, self.namespace, labels=given, spec=spec))

    async def there(self, name="web", kind=HTTPRoute):
        try:
            return await self.down.get(kind, name, self.namespace)
        except NotFound:
            return None

    async def relabel(self, route, **labels):
        patch = {"metadata": {"labels": {PREFIX + key: value for key, value in labels.items()}}}
        await self.down.patch(HTTPRoute, route, self.namespace, patch, type=PatchType.MERGE)

    async def plan(self, grace=None):
        return await scan(self.fleet, self.rules, self.evidence, grace=grace)

    async def verdict(self, name="web", grace=None):
        """Return state and reason of one route; KEPT if it is only counted."""
        plan = await self.plan(grace)
        found = [item.verdict for item in plan.items if item.candidate.name == name]
        return (found[0].state, found[0].why) if found else (State.KEPT, "")

    async def collect(self, grace=None, cap=None):
        """Run one pass like the controller, and return the outcome of each orphan."""
        plan = await self.plan(grace)
        orphans = plan.of(State.ORPHAN)
        if find_exceeded_caps(plan, orphans, cap):
            return []
        actor = OrphanDeleter(self.fleet, self.evidence, self.world, self.journal, grace=grace)
        return await actor.delete(orphans, plan.ambiguous)

    async def clean(self):
        """Remove everything from servers that outlive the test, and raise errors that occurred inside a transport."""
        for door in (self.door, *self.doors.values()):
            for failure in door.failures:
                raise failure
        self.door.open()
        for kind in (HTTPRoute, fl.ConfigMap):
            for obj in (await self.down.list(kind, labels=f"{PREFIX}cluster-name")).items:
                await self.down.delete(kind, obj.name, obj.namespace)


def hand_world(seed=1):
    return World.seeded(HandClock(), seed)
