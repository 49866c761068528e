"""The demo of the orphan collector: Gateways are deleted upstream, then their copies are deleted downstream."""

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
from fairlead_operators.orphans import gateway_cleanup, legacy
from fairlead_operators.orphans.controller import op

SCALE = 5
REPLACEMENT_GAP = 2.0
"""Seconds between the deletion and the recreation of a Gateway that a user replaces by force."""
DELETED, KEPT, REPLACED, FORMER, SHARED = "deleted", "kept", "replaced", "former", "shared"
SERVICE_PARENT = {"group": "", "kind": "Service", "name": "mesh"}


@dataclass(frozen=True)
class Copy:
    """A type of downstream copy, and whether such a copy is an orphan after the Gateways were deleted."""

    name: str
    parents: Sequence[str | dict[str, str]]
    status_parents: Sequence[str]
    """The parents in its status, which the data plane writes late."""
    is_orphan: bool = False
    prefix: str = "cluster-"
    in_deleted_project: bool = False
    """Whether its upstream cluster was deleted with the project."""


COPIES = (
    Copy("attached", [DELETED], [DELETED], is_orphan=True),
    Copy("stale-status", [DELETED], [DELETED, FORMER], is_orphan=True),
    Copy("no-status-yet", [KEPT], []),
    Copy("two-parents", [DELETED, KEPT], [DELETED, KEPT]),
    Copy("other-parent", [KEPT], [KEPT]),
    Copy("replaced", [REPLACED], [REPLACED]),
    Copy("service-parent", [SERVICE_PARENT], ["mesh"]),
    Copy("cross-namespace", [{"name": SHARED, "namespace": "infra"}], [SHARED]),
    Copy("old-label", [FORMER], [FORMER], is_orphan=True, prefix="cluster-_"),
    Copy("deleted-project", [KEPT], [KEPT], is_orphan=True, in_deleted_project=True),
)


@dataclass(frozen=True)
class Scenario:
    """An upstream cluster, and `scale` downstream copies of each type in COPIES.

    The names of the clusters contain the namespace, so that scenarios on the same server do not affect each other.
    """

    up: Client
    down: Client
    namespace: str
    scale: int = 1

    @property
    def cluster(self) -> str:
        return f"{self.namespace}-project"

    @property
    def deleted_cluster(self) -> str:
        return f"{self.namespace}-deleted-project"

    def names(self, *, are_orphans: bool) -> set[str]:
        """Return the names of the copies that are orphans, or of the copies that are not."""
        return {f"{copy.name}-{i}" for copy in COPIES for i in range(self.scale) if copy.is_orphan is are_orphans}

    async def create(self) -> None:
        """Create the Gateways and routes of the users upstream, and the copies of the routes downstream."""
        for client in (self.up, self.down):
            await httpproxy.install(client, {DEMO_LABEL: self.namespace})
        await self.up.create(fl.Namespace("infra"))
        await self.up.create(_gateway(SHARED, "infra"))
        for i in range(self.scale):
            for name in (DELETED, KEPT, REPLACED):
                await self.up.create(_gateway(f"{name}-{i}", "default"))
            for copy in COPIES:
                await self._create_copy(copy, i)

    async def _create_copy(self, copy: Copy, i: int) -> None:
        spec = {"parentRefs": [_reference(parent, i) for parent in copy.parents]}
        route = HTTPRoute(f"{copy.name}-{i}", "default", spec=spec)
        if not copy.in_deleted_project:
            await self.up.create(route)
        cluster = self.deleted_cluster if copy.in_deleted_project else self.cluster
        created = await self.down.create(gateway_cleanup.copy_of(route, cluster, self.namespace, copy.prefix))
        status = {"parents": [_parent_status(_reference(parent, i)["name"]) for parent in copy.status_parents]}
        if copy.status_parents:
            await self.down.replace(fl.Object({**created, "status": status}), subresource="status")

    async def delete_gateways(self, world: fl.World, detach: gateway_cleanup.Detach) -> None:
        """Delete one Gateway of each user, after `detach` has deleted the copies of its routes."""
        for i in range(self.scale):
            gateway = await self.up.get(Gateway, f"{DELETED}-{i}", "default")
            await detach(self.down, world, self.cluster, gateway)
            await self.up.delete(Gateway, gateway.name, "default", uid=gateway.uid)
        await self._update_route_status("gone", ("attached", "stale-status", "two-parents"))

    async def replace_gateways(self) -> None:
        """Delete and recreate another Gateway of each user, without the cleanup of its copies."""
        for i in range(self.scale):
            await self.up.delete(Gateway, f"{REPLACED}-{i}", "default")
        await self._update_route_status("gone", ("replaced",))
        await asyncio.sleep(REPLACEMENT_GAP)
        for i in range(self.scale):
            await self.up.create(_gateway(f"{REPLACED}-{i}", "default"))
        await self._update_route_status("back", ("replaced",))

    async def _update_route_status(self, parent: str, copies: Iterable[str]) -> None:
        """Write the status of the users' routes, as the gateway controller does when a Gateway changes."""
        for name in (f"{copy}-{i}" for copy in copies for i in range(self.scale)):
            route = await self.up.get(HTTPRoute, name, "default")
            status = {"parents": [_parent_status(parent)]}
            await self.up.replace(fl.Object({**route, "status": status}), subresource="status")


async def play(run: DemoRun, variant: Variant, scale: int) -> None:
    """Delete and recreate Gateways. An orphan is done when it is deleted. Any other copy that is deleted is a loss.

    The upstream cluster is always an embedded server.
    """
    world, upstream = run.world, Server(run.world).transport
    run.other_servers.append(upstream)
    scenario = Scenario(run.client("gateway", upstream), run.client("gateway"), run.namespace, scale)
    await scenario.create()
    orphans, live_copies = scenario.names(are_orphans=True), scenario.names(are_orphans=False)
    await asyncio.sleep(2 * run.grace_period)  # so that all copies are older than the grace period

    def on_change(change: Change) -> None:
        if change.new is None and change.name in orphans:
            run.mark_done(change.name)
        elif change.new is None and change.name in live_copies:
            run.record_loss(f"HTTPRoute {change.name}, which still has a parent")

    async with AsyncExitStack() as stack:
        cache = await stack.enter_async_context(Cache(run.admin, world))
        routes = cache.watch(HTTPRoute, namespaces=[run.namespace])
        routes.subscribe(on_change)
        await routes.wait_for_sync()
        await run.start(orphans)
        if variant == "new":
            settings = {
                "namespace": run.namespace,
                "retired": [scenario.deleted_cluster],
                "grace": run.grace_period,
                "cap": Cap.parse("50%"),  # the default cap is lower than the orphans of a whole project
                "journal": MemoryJournal(),
            }
            clusters = {scenario.cluster: run.transport("operator", upstream)}
            new = op.running(run.transport("operator"), world, clusters=clusters, resources=settings)
            await stack.enter_async_context(new)
        else:
            downstream_client, upstream_client, recorder = (
                run.client("operator"),
                run.client("operator", upstream),
                run.reconcile_recorder(),
            )
            old = legacy.running(
                downstream_client, upstream_client, world, scenario.cluster, age=run.grace_period, on_reconcile=recorder
            )
            await stack.enter_async_context(old)
        detach = gateway_cleanup.clean_up_by_spec if variant == "new" else gateway_cleanup.clean_up_by_status
        await scenario.delete_gateways(world, detach)
        await scenario.replace_gateways()
        await run.wait_until_done(4 * run.grace_period)
        await run.record_idle_time()


class MemoryJournal(list[dict[str, Any]]):
    """A deletion journal in memory."""

    write = list.append


def _gateway(name: str, namespace: str) -> fl.Object:
    listeners = [{"name": "http", "port": 80, "protocol": "HTTP"}]
    return Gateway(name, namespace, spec={"gatewayClassName": "external", "listeners": listeners})


def _reference(parent: str | dict[str, str], i: int) -> dict[str, str]:
    return {"name": f"{parent}-{i}"} if isinstance(parent, str) else parent


def _parent_status(name: str) -> dict[str, Any]:
    condition = {"type": "Accepted", "status": "True", "reason": "Accepted", "message": ""}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    reference = {"group": Gateway.group, "kind": Gateway.kind, "name": name}
    return {"parentRef": reference, "controllerName": "gateway.example.net/controller", "conditions": [condition]}
