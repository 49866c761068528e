"""The collector as it was first proposed: it looks up parents by name in a cache, and keeps young routes.

It makes mistakes with a parent in another namespace, a parent that is not a Gateway, a Gateway that is recreated,
labels with the older prefix, and the copies of a deleted project.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import fairlead as fl
from fairlead.api.errors import NotFound
from fairlead.api.times import parse
from fairlead.cache import Cache, Change
from fairlead.client.client import Client
from fairlead_operators import classic_controller
from fairlead_operators.classic_controller import ClassicContext, Key
from fairlead_operators.httpproxy.kinds import Gateway, HTTPRoute
from fairlead_operators.orphans.gateway_cleanup import LABELS

AGE = 300.0
"""The minimum age of a route in seconds. Younger routes are checked later."""
Identity = tuple[str, str, str]  # cluster, namespace, name


@asynccontextmanager
async def running(
    downstream_client: Client,
    upstream_client: Client,
    world: fl.World,
    cluster: str,
    *,
    age: float = AGE,
    on_reconcile: Callable[[str, bool], None] = lambda name, failed: None,
) -> AsyncIterator[ClassicContext]:
    """Run the collector on the downstream copies until the block ends.

    `upstream_client` is the client of the only upstream cluster.
    """
    async with Cache(upstream_client, world) as upstream:
        gateways, routes = upstream.watch(Gateway), upstream.watch(HTTPRoute)
        for watched in (gateways, routes):
            await watched.wait_for_sync()

        async def reconcile(key: Key, ctx: ClassicContext) -> float | None:
            copy = ctx.get(HTTPRoute, key)
            origin = upstream_of(copy) if copy else None
            if origin is None:
                return None
            if origin[0] != cluster:
                # For a deleted project this fails forever.
                raise ConnectionError(f"cluster {origin[0]} is not configured")
            for route in copies_of(origin, ctx):
                created = parse(route.metadata["creationTimestamp"])
                if (remaining := age - (world.clock.now() - created)) > 0:
                    return remaining  # the rest of the list waits, too
                if not has_parent(route, origin[1]):
                    with suppress(NotFound):
                        await downstream_client.delete(HTTPRoute, route.name, route.namespace)
            return None

        def has_parent(route: fl.Object, namespace: str) -> bool:
            """Return whether the cache has a Gateway with the name of a parentRef, in the route's own namespace."""
            for ref in route.spec.get("parentRefs") or ():
                is_gateway = (ref.get("group", Gateway.group), ref.get("kind", Gateway.kind)) == (
                    Gateway.group,
                    Gateway.kind,
                )
                if is_gateway and gateways.get(ref["name"], namespace):
                    return True
            return False

        async with classic_controller.running(
            downstream_client, world, reconcile, primary=HTTPRoute, on_reconcile=on_reconcile
        ) as ctx:

            def enqueue_copies(change: Change) -> None:
                for copy in copies_of((cluster, change.namespace or "", change.name), ctx):
                    ctx.enqueue((copy.namespace, copy.name))

            routes.subscribe(enqueue_copies)
            yield ctx


def upstream_of(copy: fl.Object) -> Identity | None:
    """Return (cluster, namespace, name) of a copy's original, or None if the copy is being deleted or has no labels."""
    values = [copy.labels.get(LABELS + key) for key in ("cluster-name", "namespace", "name")]
    if copy.deleting or not all(values):
        return None
    cluster, namespace, name = (str(value) for value in values)
    return cluster.removeprefix("cluster-").replace("_", "/").removeprefix("/"), namespace, name


def copies_of(origin: Identity, ctx: ClassicContext) -> list[fl.Object]:
    """Return the copies of an upstream object, but not those with the older prefix in their labels."""
    labels = {"cluster-name": f"cluster-{origin[0]}", "namespace": origin[1], "name": origin[2]}
    return [
        route
        for route in ctx.list(HTTPRoute)
        if not route.deleting and all(route.labels.get(LABELS + key) == value for key, value in labels.items())
    ]
