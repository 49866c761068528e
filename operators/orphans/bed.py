"""The test bed: routes downstream, a Gateway that goes away upstream, and what each clean-up leaves."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import fairlead as fl
from fairlead.api.errors import NotFound
from fairlead.client.client import Client
from fairlead.client.transport import Transport
from fairlead.operators.httpproxy import bed as httpproxy
from fairlead.operators.httpproxy.kinds import Gateway, HTTPRoute
from fairlead.operators.orphans import gateway
from fairlead.orphans.clusters import Cluster, Fleet
from fairlead.orphans.journal import Journal
from fairlead.orphans.loading import shipped
from fairlead.orphans.stores import InConfigMap
from fairlead.orphans.watch import Collector

CLUSTER = "project-a"
GOING, STAYING, LONG_AGO = "going", "staying", "long-ago"
# name -> (spec.parentRefs, status.parents)
ROUTES: Mapping[str, tuple[list[str], list[str]]] = {
    "attached": ([GOING], [GOING]),
    "stale-status": ([GOING], [GOING, LONG_AGO]),
    "no-status-yet": ([STAYING], []),
    "on-both": ([GOING, STAYING], [GOING, STAYING]),
    "elsewhere": ([STAYING], [STAYING]),
}


@dataclass
class Outcome:
    """What a clean-up left that should be gone, and deleted that should be there; then what the collector left."""

    orphans: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    collected_after: float | None = None
    """Seconds from the deletion of the Gateway until no orphan was left; None if that was never so."""
    orphans_in_the_end: list[str] = field(default_factory=list)


async def prepare(up: Client, down: Client, namespace: str) -> None:
    """Two Gateways upstream and the copies of five routes downstream."""
    for client in (up, down):
        await httpproxy.install(client)
    listeners = [{"name": "http", "port": 80, "protocol": "HTTP"}]
    for name in (GOING, STAYING):
        spec = {"gatewayClassName": "external", "listeners": listeners}
        await up.create(Gateway(name, "default", spec=spec))
    for name, (parents, told) in ROUTES.items():
        route = HTTPRoute(name, "default", spec={"parentRefs": [{"name": parent} for parent in parents]})
        made = await down.create(gateway.copy_of(route, CLUSTER, namespace))
        status = {"parents": [_parent(parent) for parent in told]}
        if told:
            await down.replace(fl.Object({**made, "status": status}), subresource="status")


async def run(
    upstream: Transport,
    downstream: Transport,
    world: fl.World,
    journal: Journal,
    detach: gateway.Detach,
    *,
    namespace: str = "default",
    patience: float = 600.0,
) -> Outcome:
    """Delete a Gateway with that clean-up, then let the collector look for as long as `patience`."""
    up, down = Client(upstream, world), Client(downstream, world)
    await prepare(up, down, namespace)
    outcome = Outcome()
    going = await up.get(Gateway, GOING, "default")
    await detach(down, world, CLUSTER, going)
    await up.delete(Gateway, GOING, "default", uid=going.uid)
    gone = world.clock.monotonic()
    left = await _left(down, namespace)
    wanted = {name for name, (parents, _) in ROUTES.items() if STAYING in parents}
    outcome.orphans, outcome.lost = sorted(left - wanted), sorted(wanted - left)
    fleet = Fleet(Cluster("downstream", down), {CLUSTER: Cluster(CLUSTER, up)})
    collector = Collector(fleet, shipped(), world, InConfigMap(down, namespace), journal)
    while (since := world.clock.monotonic() - gone) <= patience:
        after = await collector.look()
        if not await _left(down, namespace) - wanted and outcome.collected_after is None:
            outcome.collected_after = since
        await asyncio.sleep(after)
    outcome.orphans_in_the_end = sorted(await _left(down, namespace) - wanted)
    return outcome


async def _left(down: Client, namespace: str) -> set[str]:
    found = set()
    for name in ROUTES:
        try:
            await down.get(HTTPRoute, name, namespace)
            found.add(name)
        except NotFound:
            continue
    return found


def _parent(name: str) -> dict[str, Any]:
    condition = {"type": "Accepted", "status": "True", "reason": "Accepted", "message": ""}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    reference = {"group": Gateway.group, "kind": Gateway.kind, "name": name}
    return {"parentRef": reference, "controllerName": "gateway.example.net/controller", "conditions": [condition]}
