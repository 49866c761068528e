"""The cause of the orphans: the downstream cleanup of the gateway controller when an upstream Gateway is deleted.

The controller copies HTTPRoutes to the downstream cluster. Labels name the original. The finalizer of a Gateway deletes
the copies that have no other parent. `by_status` decides that as the original did, `by_spec` is the correct way.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import fairlead as fl
from fairlead.api.errors import NotFound
from fairlead.client.client import Client
from fairlead.writes import Writer, delete
from fairlead_operators.httpproxy.kinds import Gateway, HTTPRoute

LABELS = "meta.datumapis.com/upstream-"

Detach = Callable[[Client, fl.World, str, fl.Object], Awaitable[None]]
"""Takes the downstream client, the world, the name of the upstream cluster and the deleted Gateway."""


def copy_of(route: fl.Object, cluster: str, namespace: str, prefix: str = "cluster-") -> fl.Object:
    """Return the downstream copy of an upstream route. Older versions wrote the label with the prefix `cluster-_`."""
    origin = {"cluster-name": f"{prefix}{cluster}", "group": HTTPRoute.group, "kind": HTTPRoute.kind}
    origin |= {"namespace": route.namespace or "", "name": route.name}
    labels = {LABELS + key: value for key, value in origin.items()}
    return HTTPRoute(route.name, namespace, labels=labels, spec=route.spec)


async def by_status(down: Client, world: fl.World, cluster: str, gateway: fl.Object) -> None:
    """Detach as the original did, by status.parents. The data plane writes it late and never removes old entries.

    A new route without status seems to have no parent: it is deleted although another Gateway is its parent. A route
    with an outdated parent in its status seems to have that parent: it is never deleted.
    """
    for route in await _copies(down, cluster, gateway):
        parents = route.status.get("parents") or ()
        if all(parent["parentRef"]["name"] == gateway.name for parent in parents):
            with suppress(NotFound):
                await down.delete(HTTPRoute, route.name, route.namespace)


async def by_spec(down: Client, world: fl.World, cluster: str, gateway: fl.Object) -> None:
    """Detach by spec.parentRefs, which the user wrote. Deletes only the copy that was read, if it is unchanged."""
    writer = Writer(down, world, "gateway-controller")
    for route in await _copies(down, cluster, gateway):
        references = route.spec.get("parentRefs") or []
        others = [reference for reference in references if not _is_reference_to(reference, route, gateway)]
        if len(others) == len(references):
            continue
        if others:
            await down.replace(fl.Object({**route, "spec": {**route.spec, "parentRefs": others}}))
        else:
            await delete(writer, HTTPRoute, route, unchanged=True)


async def _copies(down: Client, cluster: str, gateway: fl.Object) -> list[fl.Object]:
    selector = f"{LABELS}cluster-name=cluster-{cluster}"
    routes = (await down.list(HTTPRoute, labels=selector)).items
    return [route for route in routes if route.labels.get(f"{LABELS}namespace") == gateway.namespace]


def _is_reference_to(reference: dict[str, str], route: fl.Object, gateway: fl.Object) -> bool:
    group, kind = reference.get("group", Gateway.group), reference.get("kind", Gateway.kind)
    namespace = reference.get("namespace") or route.labels.get(f"{LABELS}namespace")
    return (group, kind, namespace, reference["name"]) == (
        Gateway.group,
        Gateway.kind,
        gateway.namespace,
        gateway.name,
    )
