"""The cause of the orphans: how the gateway controller deletes copies when an upstream Gateway is deleted.

The controller copies HTTPRoutes to the downstream cluster, with labels that name the original. When a Gateway is
deleted, the controller deletes the copies that have no other parent. `clean_up_by_status` does that as the original
did, `clean_up_by_spec` does it correctly.
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
    """Return the downstream copy of an upstream route. Older versions used the cluster name prefix `cluster-_`."""
    origin = {"cluster-name": f"{prefix}{cluster}", "group": HTTPRoute.group, "kind": HTTPRoute.kind}
    origin |= {"namespace": route.namespace or "", "name": route.name}
    labels = {LABELS + key: value for key, value in origin.items()}
    return HTTPRoute(route.name, namespace, labels=labels, spec=route.spec)


async def clean_up_by_status(downstream_client: Client, world: fl.World, cluster: str, gateway: fl.Object) -> None:
    """Delete the copies whose status.parents names no other Gateway, as the original did.

    The data plane writes status.parents late and never removes old entries. So a new route without status is deleted
    although it has another parent, and a route with an outdated entry is never deleted.
    """
    for route in await _copies(downstream_client, cluster, gateway):
        parents = route.status.get("parents") or ()
        if all(parent["parentRef"]["name"] == gateway.name for parent in parents):
            with suppress(NotFound):
                await downstream_client.delete(HTTPRoute, route.name, route.namespace)


async def clean_up_by_spec(downstream_client: Client, world: fl.World, cluster: str, gateway: fl.Object) -> None:
    """Delete the copies whose spec.parentRefs, which the user wrote, name no other Gateway. Skip changed copies."""
    writer = Writer(downstream_client, world, "gateway-controller")
    for route in await _copies(downstream_client, cluster, gateway):
        references = route.spec.get("parentRefs") or []
        other_references = [reference for reference in references if not _is_reference_to(reference, route, gateway)]
        if len(other_references) == len(references):
            continue
        if other_references:
            await downstream_client.replace(
                fl.Object({**route, "spec": {**route.spec, "parentRefs": other_references}})
            )
        else:
            await delete(writer, HTTPRoute, route, unchanged=True)


async def _copies(downstream_client: Client, cluster: str, gateway: fl.Object) -> list[fl.Object]:
    selector = f"{LABELS}cluster-name=cluster-{cluster}"
    routes = (await downstream_client.list(HTTPRoute, labels=selector)).items
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
