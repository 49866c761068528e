"""The write path of the incident: CreateOrUpdate of each child from a cached copy, and every conflict an error.

Kept as it was, in the order in which it was, mistakes included; README.md tells what came of it.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import fairlead as fl
from fairlead.api.errors import AlreadyExists, ApiError, NotFound
from fairlead.api.times import rfc3339
from fairlead.client.client import Client
from fairlead_operators import old_way
from fairlead_operators.httpproxy import status
from fairlead_operators.httpproxy.backends import backends_of
from fairlead_operators.httpproxy.children import (
    Online,
    filters_of,
    gateway_of,
    has_tunnels,
    policies_of,
    route_of,
    serves_tls,
    slices_of,
)
from fairlead_operators.httpproxy.kinds import (
    FINALIZER,
    Connector,
    EndpointSlice,
    EnvoyPatchPolicy,
    Gateway,
    HTTPProxy,
    HTTPRoute,
    HTTPRouteFilter,
)
from fairlead_operators.old_way import Key, View, controller_of, owned_by, with_finalizer, with_metadata

UPSTREAM_NAME = "meta.datumapis.com/upstream-name"
"""On a policy, whom its events wake."""

Mutate = Callable[[fl.Object], fl.Object]


def running(client: Client, world: fl.World, **options: Any) -> AbstractAsyncContextManager[View]:
    """The controller at work: one worker, as it was."""
    return old_way.running(
        client,
        world,
        reconcile,
        primary=HTTPProxy,
        owns=[Gateway, HTTPRoute, EndpointSlice],
        watches={
            Connector: _proxies_of,
            EnvoyPatchPolicy: lambda obj, view: [(obj.namespace, obj.labels[UPSTREAM_NAME])],
            # Read from the cache as the others, but their events wake nobody.
            HTTPRouteFilter: lambda obj, view: (),
            fl.ConfigMap: lambda obj, view: (),
        },
        **options,
    )


async def reconcile(key: Key, view: View) -> None:
    proxy = view.get(HTTPProxy, key)
    if proxy is None:
        return
    if proxy.deleting:
        if FINALIZER in proxy.finalizers:
            left = [name for name in proxy.finalizers if name != FINALIZER]
            await view.client.replace(with_metadata(proxy, finalizers=left))
        return
    if FINALIZER not in proxy.finalizers:
        await view.client.replace(with_finalizer(proxy, FINALIZER))
        return
    conditions = {
        "Accepted": ("False", "Pending", "The HTTPProxy has not been scheduled"),
        "Programmed": ("False", "Pending", "The HTTPProxy has not been programmed"),
    }
    fields: dict[str, object] = {}
    try:
        await _children(proxy, view, conditions, fields)
    finally:
        await _flush(proxy, view, conditions, fields)


async def _children(
    proxy: fl.Object, view: View, conditions: dict[str, tuple[str, str, str]], fields: dict[str, object]
) -> None:
    connectors = [view.get(Connector, (proxy.namespace, b.connector)) for b in backends_of(proxy) if b.connector]
    online = {c.name: c for c in connectors if c is not None and c.is_true("Ready")}
    gateway = None
    wanted = filters_of(proxy, online)
    for kind, child in [
        (Gateway, gateway_of(proxy)),
        *((HTTPRouteFilter, f) for f in wanted),
        (HTTPRoute, route_of(proxy, online)),
        *((EndpointSlice, s) for s in slices_of(proxy)),
    ]:
        desired = with_metadata(child, namespace=proxy.namespace)
        try:
            live = await view.create_or_update(desired, _mutation(kind, desired, proxy), kind)
        except AlreadyExists:
            message = f"{kind.kind} {child.name!r} already exists and is owned by a different resource."
            conditions["Programmed"] = ("False", "Conflict", message)
            return
        gateway = live if kind is Gateway else gateway
    if not wanted and view.get(HTTPRouteFilter, (proxy.namespace, f"connector-offline-{proxy.name}")):
        with suppress(NotFound):
            await view.client.delete(HTTPRouteFilter, f"connector-offline-{proxy.name}", proxy.namespace)
    assert gateway is not None
    try:
        policy = await _policy(proxy, gateway, online, view)
    except ApiError as error:
        conditions["Programmed"] = ("False", "Pending", str(error))
        raise
    fields["addresses"] = gateway.status.get("addresses") or []
    fields["canonicalHostname"] = status.canonical_hostname(gateway)
    for name in ("Accepted", "Programmed"):
        said = gateway.condition(name)
        if said:
            conditions[name] = (said["status"], said["reason"], said["message"])
    if has_tunnels(proxy):
        taken = policy is not None and status.policy_programmed(policy)
        conditions["ConnectorMetadataProgrammed"] = (
            ("True", "ConnectorMetadataApplied", "") if taken else ("False", "Pending", "Waiting for the data plane")
        )
        if not taken:
            conditions["Programmed"] = conditions["ConnectorMetadataProgrammed"]
    if status.seen_by_its_controller(gateway):
        fields["hostnames"] = status.serving(proxy, gateway)


async def _policy(proxy: fl.Object, gateway: fl.Object, online: Online, view: View) -> fl.Object | None:
    """What carries the tunnels, and the anchor that owns it: a ConfigMap that stands for the proxy in its cluster.

    The anchor is looked up in the cache and made where it is missing there, and that it exists already is an error.
    """
    policies = policies_of(proxy, online) if serves_tls(gateway) else []
    for desired in policies:
        anchor_name = f"anchor-{proxy.uid}"
        anchor = view.get(fl.ConfigMap, (proxy.namespace, anchor_name))
        if anchor is None:
            anchor = await view.client.create(fl.ConfigMap(anchor_name, proxy.namespace))
        placed = with_metadata(desired, namespace=proxy.namespace, labels={UPSTREAM_NAME: proxy.name})
        return await view.create_or_update(placed, _mutation(EnvoyPatchPolicy, placed, anchor), EnvoyPatchPolicy)
    return None


def _mutation(kind: fl.Kind, desired: fl.Object, owner: fl.Object) -> Mutate:
    """What CreateOrUpdate does to the cached copy: the desired spec over it, and the owner reference."""

    def mutate(live: fl.Object) -> fl.Object:
        controller = controller_of(live)
        if controller and controller["uid"] != owner.uid and kind is not HTTPRouteFilter:
            raise AlreadyExists({"reason": "AlreadyExists", "message": "controlled by another", "code": 409})
        changed = owned_by(live, owner)
        for part in ("spec", "addressType", "endpoints", "ports"):
            if part in desired:
                changed = fl.Object({**changed, part: desired[part]})
        if desired.annotations:
            changed = with_metadata(changed, annotations={**live.annotations, **desired.annotations})
        if kind is Gateway and live is not desired:
            # The two default listeners are taken from the cached copy, so that the assigned hostname survives.
            default = {item["name"]: item for item in live.spec["listeners"] if item["name"].startswith("default-")}
            listeners = [default.get(item["name"], item) for item in desired.spec["listeners"]]
            changed = fl.Object({**changed, "spec": {**desired.spec, "listeners": listeners}})
        return changed

    return mutate


async def _flush(
    proxy: fl.Object, view: View, conditions: dict[str, tuple[str, str, str]], fields: dict[str, object]
) -> None:
    """Status().Update of the copy that the pass began with, if something in it changed."""
    now = rfc3339(view.world.clock.now())
    known = {c["type"]: c for c in proxy.status.get("conditions") or ()}
    for name, (value, reason, message) in conditions.items():
        old = known.get(name) or {}
        since = old["lastTransitionTime"] if old.get("status") == value else now
        known[name] = {
            "type": name,
            "status": value,
            "reason": reason,
            "message": message,
            "observedGeneration": proxy.generation,
            "lastTransitionTime": since,
        }
    changed = {**proxy.status, **fields, "conditions": list(known.values())}
    if changed != proxy.status:
        await view.client.replace(fl.Object({**proxy, "status": changed}), subresource="status")


def _proxies_of(connector: fl.Object, view: View) -> Iterable[Key]:
    for proxy in view.list(HTTPProxy, connector.namespace):
        if any(backend.connector == connector.name for backend in backends_of(proxy)):
            yield proxy.namespace, proxy.name
