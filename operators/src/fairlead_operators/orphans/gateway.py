"""The cause: what the gateway controller does downstream when a Gateway upstream goes away.

It keeps copies of HTTPRoutes downstream, labelled with whose they are. A Gateway's finalizer detaches its routes: those
that hang on nothing else are deleted. How it tells is the whole difference, and is here twice.
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
"""(downstream, world, the upstream cluster's name, the Gateway that goes)"""


def copy_of(route: fl.Object, cluster: str, namespace: str, encoding: str = "cluster-") -> fl.Object:
    """The downstream copy of an upstream route, as the controller writes it; once its encoding was `cluster-_`."""
    said = {"cluster-name": f"{encoding}{cluster}", "group": HTTPRoute.group, "kind": HTTPRoute.kind}
    said |= {"namespace": route.namespace or "", "name": route.name}
    labels = {LABELS + key: value for key, value in said.items()}
    return HTTPRoute(route.name, namespace, labels=labels, spec=route.spec)


async def by_status(down: Client, world: fl.World, cluster: str, gateway: fl.Object) -> None:
    """As it was: judged by status.parents, which the data plane writes when it comes to it, and never takes back.

    A route without a status yet hangs on nothing, whoever's it is, and is deleted. One whose status still tells of a
    parent of long ago hangs on that, and stays for ever.
    """
    for route in await _copies(down, cluster, gateway):
        parents = route.status.get("parents") or ()
        if all(parent["parentRef"]["name"] == gateway.name for parent in parents):
            with suppress(NotFound):
                await down.delete(HTTPRoute, route.name, route.namespace)


async def by_spec(down: Client, world: fl.World, cluster: str, gateway: fl.Object) -> None:
    """Ours: judged by spec.parentRefs, what the user wrote. Deletes just the copy that was read, as it was read."""
    writer = Writer(down, world, "gateway-controller")
    for route in await _copies(down, cluster, gateway):
        references = route.spec.get("parentRefs") or []
        others = [reference for reference in references if not _means(reference, route, gateway)]
        if len(others) == len(references):
            continue
        if others:
            await down.replace(fl.Object({**route, "spec": {**route.spec, "parentRefs": others}}))
        else:
            await delete(writer, HTTPRoute, route, unchanged=True)


async def _copies(down: Client, cluster: str, gateway: fl.Object) -> list[fl.Object]:
    selector = f"{LABELS}cluster-name=cluster-{cluster}"
    found = (await down.list(HTTPRoute, labels=selector)).items
    return [route for route in found if route.labels.get(f"{LABELS}namespace") == gateway.namespace]


def _means(reference: dict[str, str], route: fl.Object, gateway: fl.Object) -> bool:
    group, kind = reference.get("group", Gateway.group), reference.get("kind", Gateway.kind)
    namespace = reference.get("namespace") or route.labels.get(f"{LABELS}namespace")
    return (group, kind, namespace, reference["name"]) == (
        Gateway.group,
        Gateway.kind,
        gateway.namespace,
        gateway.name,
    )
