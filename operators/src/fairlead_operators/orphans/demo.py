"""The test bed: copies downstream, Gateways that go away upstream, a clean-up and a collector, old way or new."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import fairlead as fl
from fairlead.cache import Cache, Change
from fairlead.client.client import Client
from fairlead.server.app import Server
from fairlead.testing.demo.demo_run import DEMO_LABEL, DemoRun, Variant
from fairlead.tools.orphans.caps import Cap
from fairlead_operators.httpproxy import demo as httpproxy
from fairlead_operators.httpproxy.kinds import Gateway, HTTPRoute
from fairlead_operators.orphans import gateway, legacy
from fairlead_operators.orphans.controller import op

SCALE = 5
AWAY = 2.0
"""Seconds that a Gateway is away which is replaced by force."""
GOING, STAYING, REPLACED, LONG_AGO, SHARED = "going", "staying", "replaced", "long-ago", "shared"
MESH = {"group": "", "kind": "Service", "name": "mesh"}


@dataclass(frozen=True)
class Copy:
    """A sort of copy that stands downstream, and whether it should go when the Gateways have gone."""

    name: str
    parents: Sequence[str | dict[str, str]]
    told: Sequence[str]
    """The parents that its status tells of: what the data plane wrote, when it came to it."""
    goes: bool = False
    encoding: str = "cluster-"
    retired: bool = False
    """Its upstream cluster was deleted with the project."""


COPIES = (
    Copy("attached", [GOING], [GOING], goes=True),
    Copy("stale-status", [GOING], [GOING, LONG_AGO], goes=True),
    Copy("no-status-yet", [STAYING], []),
    Copy("on-both", [GOING, STAYING], [GOING, STAYING]),
    Copy("elsewhere", [STAYING], [STAYING]),
    Copy("replaced", [REPLACED], [REPLACED]),
    Copy("in-the-mesh", [MESH], ["mesh"]),
    Copy("across-namespaces", [{"name": SHARED, "namespace": "infra"}], [SHARED]),
    Copy("old-label", [LONG_AGO], [LONG_AGO], goes=True, encoding="cluster-_"),
    Copy("of-a-deleted-project", [STAYING], [STAYING], goes=True, retired=True),
)


@dataclass(frozen=True)
class Scene:
    """An upstream cluster and its copies downstream, `scale` of each sort. The names are of this scene alone, so that
    copies which others keep on the same server are nobody's business here.
    """

    up: Client
    down: Client
    namespace: str
    scale: int = 1

    @property
    def cluster(self) -> str:
        return f"{self.namespace}-project"

    @property
    def retired(self) -> str:
        return f"{self.namespace}-deleted-project"

    def names(self, *, go: bool) -> set[str]:
        """The copies that should go, or those that should stay."""
        return {f"{copy.name}-{i}" for copy in COPIES for i in range(self.scale) if copy.goes is go}

    async def set(self) -> None:
        """The Gateways, the users' routes and their copies."""
        for client in (self.up, self.down):
            await httpproxy.install(client, {DEMO_LABEL: self.namespace})
        await self.up.create(fl.Namespace("infra"))
        await self.up.create(_gateway(SHARED, "infra"))
        for i in range(self.scale):
            for name in (GOING, STAYING, REPLACED):
                await self.up.create(_gateway(f"{name}-{i}", "default"))
            for copy in COPIES:
                await self._copy(copy, i)

    async def _copy(self, copy: Copy, i: int) -> None:
        spec = {"parentRefs": [_reference(parent, i) for parent in copy.parents]}
        route = HTTPRoute(f"{copy.name}-{i}", "default", spec=spec)
        if not copy.retired:
            await self.up.create(route)
        cluster = self.retired if copy.retired else self.cluster
        made = await self.down.create(gateway.copy_of(route, cluster, self.namespace, copy.encoding))
        status = {"parents": [_parent(_reference(parent, i)["name"]) for parent in copy.told]}
        if copy.told:
            await self.down.replace(fl.Object({**made, "status": status}), subresource="status")

    async def delete_gateways(self, world: fl.World, detach: gateway.Detach) -> None:
        """Each user deletes a Gateway, and the gateway controller detaches its routes."""
        for i in range(self.scale):
            going = await self.up.get(Gateway, f"{GOING}-{i}", "default")
            await detach(self.down, world, self.cluster, going)
            await self.up.delete(Gateway, going.name, "default", uid=going.uid)
        await self._report("gone", ("attached", "stale-status", "on-both"))

    async def replace_gateways(self) -> None:
        """Each user replaces another by force: it is away for a moment, and its finalizer never ran."""
        for i in range(self.scale):
            await self.up.delete(Gateway, f"{REPLACED}-{i}", "default")
        await self._report("gone", ("replaced",))
        await asyncio.sleep(AWAY)
        for i in range(self.scale):
            await self.up.create(_gateway(f"{REPLACED}-{i}", "default"))
        await self._report("back", ("replaced",))

    async def _report(self, what: str, sorts: Iterable[str]) -> None:
        """The gateway controller tells the users' routes what became of their Gateway."""
        for name in (f"{sort}-{i}" for sort in sorts for i in range(self.scale)):
            route = await self.up.get(HTTPRoute, name, "default")
            await self.up.replace(fl.Object({**route, "status": {"parents": [_parent(what)]}}), subresource="status")


async def play(run: DemoRun, variant: Variant, scale: int) -> None:
    """Gateways go, a clean-up and a collector follow; done is an orphan that went, lost is a copy that should be there.

    The upstream cluster is an embedded server, wherever the downstream one is.
    """
    world, upstream = run.world, Server(run.world).transport
    run.other_servers.append(upstream)
    scene = Scene(run.client("gateway", upstream), run.client("gateway"), run.namespace, scale)
    await scene.set()
    going, staying = scene.names(go=True), scene.names(go=False)
    await asyncio.sleep(2 * run.grace_period)  # none of them is young

    def see(change: Change) -> None:
        if change.new is None and change.name in going:
            run.mark_done(change.name)
        elif change.new is None and change.name in staying:
            run.record_loss(f"HTTPRoute {change.name}, whose parent lives")

    async with AsyncExitStack() as stack:
        cache = await stack.enter_async_context(Cache(run.admin, world))
        view = cache.watch(HTTPRoute, namespaces=[run.namespace])
        view.subscribe(see)
        await view.synced()
        await run.start(going)
        if variant == "new":
            told = {"namespace": run.namespace, "retired": [scene.retired], "grace": run.grace_period}
            # a whole project is more than the default allows; someone read the plan
            told |= {"cap": Cap.parse("50%"), "journal": Lines()}
            clusters = {scene.cluster: run.transport("operator", upstream)}
            ours = op.running(run.transport("operator"), world, clusters=clusters, resources=told)
            await stack.enter_async_context(ours)
        else:
            down, up = run.client("operator"), run.client("operator", upstream)
            theirs = legacy.running(down, up, world, scene.cluster, age=run.grace_period, seen=run.reconcile_recorder())
            await stack.enter_async_context(theirs)
        await scene.delete_gateways(world, gateway.by_spec if variant == "new" else gateway.by_status)
        await scene.replace_gateways()
        await run.wait_until_done(4 * run.grace_period)
        await run.record_idle_time()


class Lines(list[dict[str, Any]]):
    """A journal in memory."""

    write = list.append


def _gateway(name: str, namespace: str) -> fl.Object:
    listeners = [{"name": "http", "port": 80, "protocol": "HTTP"}]
    return Gateway(name, namespace, spec={"gatewayClassName": "external", "listeners": listeners})


def _reference(parent: str | dict[str, str], i: int) -> dict[str, str]:
    return {"name": f"{parent}-{i}"} if isinstance(parent, str) else parent


def _parent(name: str) -> dict[str, Any]:
    condition = {"type": "Accepted", "status": "True", "reason": "Accepted", "message": ""}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    reference = {"group": Gateway.group, "kind": Gateway.kind, "name": name}
    return {"parentRef": reference, "controllerName": "gateway.example.net/controller", "conditions": [condition]}
