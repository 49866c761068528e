"""A test harness for orphans: a downstream server, named upstream servers, injected faults and a manual clock."""

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


class ManualClock:
    """A clock that moves only when a test calls `advance`."""

    def __init__(self, start=1_767_225_600.0):
        self.wall_time, self.monotonic_time = start, 0.0

    def now(self):
        return self.wall_time

    def monotonic(self):
        return self.monotonic_time

    def advance(self, seconds):
        self.wall_time += seconds
        self.monotonic_time += seconds


class FaultyTransport:
    """A transport with faults: `fault(method, path, query)` may return an exception or the status code of an error.

    A client would treat an exception raised inside `fault` as a lost response. The transport records such an exception,
    which is a failure of the test itself, and `FleetHarness.clean` raises it at the end.
    """

    def __init__(self, inner):
        self.inner = inner
        self.fault = lambda method, path, query: None
        self.requests = []
        self.failures = []

    async def request(self, request):
        self.requests.append((request.method, request.path, dict(request.query or {})))
        try:
            result = self.fault(request.method, request.path, dict(request.query or {}))
            if asyncio.iscoroutine(result):
                result = await result
        except Exception as error:
            self.failures.append(error)
            raise
        if isinstance(result, BaseException):
            raise result
        if result is not None:
            reason = {403: "Forbidden", 404: "NotFound", 410: "Expired", 503: "ServiceUnavailable"}.get(result, "")
            status = {"kind": "Status", "apiVersion": "v1", "code": result, "reason": reason, "message": "no"}
            return SimpleNamespace(status=result, headers={}, body=json.dumps(status).encode(), warnings=[])
        return await self.inner.request(request)

    async def stream(self, request):
        result = self.fault("GET", request.path, {})
        if result is not None:
            raise ConnectionResetError("disconnected")
        return await self.inner.stream(request)

    async def close(self):
        await self.inner.close()

    def disconnect(self):
        self.fault = lambda *_: NotSent("connection refused")

    def clear_fault(self):
        self.fault = lambda *_: None


class MemoryJournal(list):
    """A deletion journal in memory."""

    def write(self, entry):
        self.append(json.loads(json.dumps(entry)))


async def install(client):
    """Install the CRDs of the Gateway API."""
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


class FleetHarness:
    """A fleet with its evidence, and clients that change objects in every cluster."""

    def __init__(self, downstream, namespace, world):
        self.namespace, self.world, self.clock = namespace, world, world.clock
        self.downstream_transport = FaultyTransport(downstream)
        self.downstream_client = Client(self.downstream_transport, world, user_agent="test")
        self.upstream_transports, self.upstream_clients = {}, {}
        self.retired = frozenset()
        self.rules = shipped_rules()
        self.journal = MemoryJournal()
        self.evidence = None

    async def start(self, *upstreams):
        await install(self.downstream_client)
        for name in upstreams:
            await self.set_upstream(name)
        self.evidence = Evidence(self.world, await self.fleet.downstream.uid())
        return self

    async def set_upstream(self, name, transport=None):
        """Add or replace the upstream cluster `name`. It is an embedded server unless `transport` is set."""
        inner = transport or Server(self.world).transport()
        await install(Client(inner, self.world))
        if name in self.upstream_transports:
            self.upstream_transports[name].inner = inner
        else:
            self.upstream_transports[name] = FaultyTransport(inner)
        self.upstream_clients[name] = Client(inner, self.world)

    @property
    def fleet(self):
        clients = {
            name: Client(transport, self.world, user_agent="orphans")
            for name, transport in self.upstream_transports.items()
        }
        upstreams = {name: Cluster(name, client) for name, client in clients.items()}
        return Fleet(Cluster("downstream", Client(self.downstream_transport, self.world)), upstreams, self.retired)

    def restart(self):
        """Simulate a new process that knows only the recorded evidence."""
        recorded_evidence = json.loads(json.dumps(self.evidence.to_json()))
        self.evidence = Evidence(self.world, self.evidence.downstream)
        self.evidence.read(recorded_evidence)

    async def create_gateway(self, name="gw", cluster="project-a", namespace="default"):
        listeners = [{"name": "http", "port": 80, "protocol": "HTTP"}]
        spec = {"gatewayClassName": "external", "listeners": listeners}
        with contextlib.suppress(fl.ApiError):
            await self.upstream_clients[cluster].create(fl.Namespace(namespace))
        return await self.upstream_clients[cluster].create(Gateway(name, namespace, spec=spec))

    async def delete_gateway(self, name="gw", cluster="project-a", namespace="default"):
        await self.upstream_clients[cluster].delete(Gateway, name, namespace)

    async def create_route(
        self, name="web", parents=("gw",), cluster="cluster-project-a", namespace="default", **labels
    ):
        """Create a downstream route with the labels of the original operator. Parents are names or parentRefs."""
        parent_refs = [{"name": parent} if isinstance(parent, str) else parent for parent in parents]
        identity = {"cluster-name": cluster, "group": HTTPRoute.group, "kind": "HTTPRoute", "name": name}
        identity |= {"namespace": namespace, **labels}
        spec = {"parentRefs": parent_refs} if parent_refs else {}
        route_labels = {PREFIX + key: value for key, value in identity.items() if value is not None}
        return await self.downstream_client.create(HTTPRoute(name, self.namespace, labels=route_labels, spec=spec))

    async def find(self, name="web", kind=HTTPRoute):
        """Return a downstream object, or None if it does not exist."""
        try:
            return await self.downstream_client.get(kind, name, self.namespace)
        except NotFound:
            return None

    async def relabel(self, route, **labels):
        patch = {"metadata": {"labels": {PREFIX + key: value for key, value in labels.items()}}}
        await self.downstream_client.patch(HTTPRoute, route, self.namespace, patch, type=PatchType.MERGE)

    async def plan(self, grace=None):
        return await scan(self.fleet, self.rules, self.evidence, grace=grace)

    async def verdict(self, name="web", grace=None):
        """Return the state and the reason of one route. Return KEPT if the plan does not list it."""
        plan = await self.plan(grace)
        verdicts = [item.verdict for item in plan.items if item.candidate.name == name]
        return (verdicts[0].state, verdicts[0].why) if verdicts else (State.KEPT, "")

    async def collect(self, grace=None, cap=None):
        """Run one pass like the controller. Return the result for every orphan."""
        plan = await self.plan(grace)
        orphans = plan.of(State.ORPHAN)
        if find_exceeded_caps(plan, orphans, cap):
            return []
        deleter = OrphanDeleter(self.fleet, self.evidence, self.world, self.journal, grace=grace)
        return await deleter.delete(orphans, plan.ambiguous)

    async def clean(self):
        """Delete the objects of the test. Raise the exceptions that were raised inside faults."""
        for transport in (self.downstream_transport, *self.upstream_transports.values()):
            for failure in transport.failures:
                raise failure
        self.downstream_transport.clear_fault()
        for kind in (HTTPRoute, fl.ConfigMap):
            for obj in (await self.downstream_client.list(kind, labels=f"{PREFIX}cluster-name")).items:
                await self.downstream_client.delete(kind, obj.name, obj.namespace)


def manual_world(seed=1):
    return World.seeded(ManualClock(), seed)
