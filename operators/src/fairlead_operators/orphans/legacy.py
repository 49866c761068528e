"""The collector that was proposed, as it was: age for absence, a cache for a look, a name for an object.

What it does not see: a parent in another namespace, a route that has no Gateway for a parent at all, a Gateway that is
away for a moment, labels in the older encoding, and the copies of a project that was deleted.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import fairlead as fl
from fairlead.api.errors import NotFound
from fairlead.api.times import parse
from fairlead.cache import Cache, Change
from fairlead.client.client import Client
from fairlead_operators import old_way
from fairlead_operators.httpproxy.kinds import Gateway, HTTPRoute
from fairlead_operators.old_way import Key, View
from fairlead_operators.orphans.gateway import LABELS

AGE = 300.0
"""A route younger than this is looked at later."""
Identity = tuple[str, str, str]  # cluster, namespace, name


@asynccontextmanager
async def running(
    down: Client,
    up: Client,
    world: fl.World,
    cluster: str,
    *,
    age: float = AGE,
    seen: Callable[[str, bool], None] = lambda name, failed: None,
) -> AsyncIterator[View]:
    """At work on the copies downstream, for as long as the block lasts. `up` is the one cluster that it knows."""
    async with Cache(up, world) as upstream:
        gateways, routes = upstream.watch(Gateway), upstream.watch(HTTPRoute)
        for each in (gateways, routes):
            await each.synced()

        async def reconcile(key: Key, view: View) -> float | None:
            copy = view.get(HTTPRoute, key)
            of = upstream_of(copy) if copy else None
            if of is None:
                return None
            if of[0] != cluster:
                raise ConnectionError(f"no cluster {of[0]} is known")  # nor ever will be, once it is deleted
            for route in copies_of(of, view):
                born = parse(route.metadata["creationTimestamp"])
                if (left := age - (world.clock.now() - born)) > 0:
                    return left  # and whatever stands behind it in the list waits too
                if not alive(route, of[1]):
                    with suppress(NotFound):
                        await down.delete(HTTPRoute, route.name, route.namespace)
            return None

        def alive(route: fl.Object, namespace: str) -> bool:
            """Whether a Gateway of that name is in the upstream route's own namespace, as far as the cache knows."""
            for ref in route.spec.get("parentRefs") or ():
                judged = (ref.get("group", Gateway.group), ref.get("kind", Gateway.kind)) == (
                    Gateway.group,
                    Gateway.kind,
                )
                if judged and gateways.get(ref["name"], namespace):
                    return True
            return False

        async with old_way.running(down, world, reconcile, primary=HTTPRoute, seen=seen) as view:

            def wake(change: Change) -> None:
                for copy in copies_of((cluster, change.namespace or "", change.name), view):
                    view.wake((copy.namespace, copy.name))

            routes.subscribe(wake)
            yield view


def upstream_of(copy: fl.Object) -> Identity | None:
    """Whose copy it is, in either encoding; None for one that is going, or does not say."""
    said = [copy.labels.get(LABELS + word) for word in ("cluster-name", "namespace", "name")]
    if copy.deleting or not all(said):
        return None
    cluster, namespace, name = (str(word) for word in said)
    return cluster.removeprefix("cluster-").replace("_", "/").removeprefix("/"), namespace, name


def copies_of(of: Identity, view: View) -> list[fl.Object]:
    """Those whose labels name it in the newer encoding only."""
    wanted = {"cluster-name": f"cluster-{of[0]}", "namespace": of[1], "name": of[2]}
    return [
        route
        for route in view.list(HTTPRoute)
        if not route.deleting and all(route.labels.get(LABELS + word) == value for word, value in wanted.items())
    ]
