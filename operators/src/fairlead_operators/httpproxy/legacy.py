"""The legacy HTTPProxy operator: CreateOrUpdate of each child from a cached copy. Every conflict is an error.

The order of the writes and the mistakes are those of the original. README.md describes the consequences.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import fairlead as fl
from fairlead.api.errors import AlreadyExists, ApiError, NotFound
from fairlead.api.times import rfc3339
from fairlead.client.client import Client
from fairlead_operators import classic_controller
from fairlead_operators.classic_controller import (
    ClassicContext,
    Key,
    controller_of,
    owned_by,
    with_finalizer,
    with_metadata,
    without_finalizer,
)
from fairlead_operators.httpproxy import status
from fairlead_operators.httpproxy.backends import backends_of
from fairlead_operators.httpproxy.children import (
    OnlineConnectors,
    filters_of,
    gateway_of,
    has_tunnels,
    is_https_listener_ready,
    policies_of,
    route_of,
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

UPSTREAM_NAME = "meta.datumapis.com/upstream-name"
"""The label of a policy with the name of its HTTPProxy."""

Mutate = Callable[[fl.Object], fl.Object]


def running(client: Client, world: fl.World, **options: Any) -> AbstractAsyncContextManager[ClassicContext]:
    """Return a context manager that runs the legacy controller with one worker, like the original."""
    return classic_controller.running(
        client,
        world,
        reconcile,
        primary=HTTPProxy,
        owns=[Gateway, HTTPRoute, EndpointSlice],
        watches={
            Connector: _proxies_of,
            EnvoyPatchPolicy: lambda obj, ctx: [(obj.namespace, obj.labels[UPSTREAM_NAME])],
            # The operator reads these kinds from the cache, but their events do not enqueue a proxy.
            HTTPRouteFilter: lambda obj, ctx: (),
            fl.ConfigMap: lambda obj, ctx: (),
        },
        **options,
    )


async def reconcile(key: Key, ctx: ClassicContext) -> None:
    proxy = ctx.get(HTTPProxy, key)
    if proxy is None:
        return
    if proxy.deleting:
        if FINALIZER in proxy.finalizers:
            await ctx.client.replace(without_finalizer(proxy, FINALIZER))
        return
    if FINALIZER not in proxy.finalizers:
        await ctx.client.replace(with_finalizer(proxy, FINALIZER))
        return
    conditions = {
        "Accepted": ("False", "Pending", "The HTTPProxy has not been scheduled"),
        "Programmed": ("False", "Pending", "The HTTPProxy has not been programmed"),
    }
    fields: dict[str, object] = {}
    try:
        await _write_children(proxy, ctx, conditions, fields)
    finally:
        await _write_status(proxy, ctx, conditions, fields)


async def _write_children(
    proxy: fl.Object, ctx: ClassicContext, conditions: dict[str, tuple[str, str, str]], fields: dict[str, object]
) -> None:
    connectors = [ctx.get(Connector, (proxy.namespace, b.connector)) for b in backends_of(proxy) if b.connector]
    online = {c.name: c for c in connectors if c is not None and c.is_true("Ready")}
    gateway = None
    filters = filters_of(proxy, online)
    for kind, child in [
        (Gateway, gateway_of(proxy)),
        *((HTTPRouteFilter, f) for f in filters),
        (HTTPRoute, route_of(proxy, online)),
        *((EndpointSlice, s) for s in slices_of(proxy)),
    ]:
        desired = with_metadata(child, namespace=proxy.namespace)
        try:
            live = await ctx.create_or_update(desired, _mutation(kind, desired, proxy), kind)
        except AlreadyExists:
            message = f"{kind.kind} {child.name!r} already exists and is owned by a different resource."
            conditions["Programmed"] = ("False", "Conflict", message)
            return
        gateway = live if kind is Gateway else gateway
    if not filters and ctx.get(HTTPRouteFilter, (proxy.namespace, f"connector-offline-{proxy.name}")):
        with suppress(NotFound):
            await ctx.client.delete(HTTPRouteFilter, f"connector-offline-{proxy.name}", proxy.namespace)
    assert gateway is not None
    try:
        policy = await _write_policy(proxy, gateway, online, ctx)
    except ApiError as error:
        conditions["Programmed"] = ("False", "Pending", str(error))
        raise
    fields["addresses"] = gateway.status.get("addresses") or []
    fields["canonicalHostname"] = status.canonical_hostname(gateway)
    for name in ("Accepted", "Programmed"):
        condition = gateway.condition(name)
        if condition:
            conditions[name] = (condition["status"], condition["reason"], condition["message"])
    if has_tunnels(proxy):
        programmed = policy is not None and status.is_policy_programmed(policy)
        conditions["ConnectorMetadataProgrammed"] = (
            ("True", "ConnectorMetadataApplied", "")
            if programmed
            else ("False", "Pending", "Waiting for the data plane")
        )
        if not programmed:
            conditions["Programmed"] = conditions["ConnectorMetadataProgrammed"]
    if status.is_status_current(gateway):
        fields["hostnames"] = status.served_hostnames(proxy, gateway)


async def _write_policy(
    proxy: fl.Object, gateway: fl.Object, online: OnlineConnectors, ctx: ClassicContext
) -> fl.Object | None:
    """Write the policy with the tunnels, and the ConfigMap that owns the policy (the anchor).

    The anchor is read from the cache. If the cache does not have it yet, the create fails with AlreadyExists.
    """
    policies = policies_of(proxy, online) if is_https_listener_ready(gateway) else []
    for desired in policies:
        anchor_name = f"anchor-{proxy.uid}"
        anchor = ctx.get(fl.ConfigMap, (proxy.namespace, anchor_name))
        if anchor is None:
            anchor = await ctx.client.create(fl.ConfigMap(anchor_name, proxy.namespace))
        labelled = with_metadata(desired, namespace=proxy.namespace, labels={UPSTREAM_NAME: proxy.name})
        return await ctx.create_or_update(labelled, _mutation(EnvoyPatchPolicy, labelled, anchor), EnvoyPatchPolicy)
    return None


def _mutation(kind: fl.Kind, desired: fl.Object, owner: fl.Object) -> Mutate:
    """Return a function that copies the desired spec and the owner reference into a cached copy."""

    def mutate(live: fl.Object) -> fl.Object:
        controller = controller_of(live)
        if controller and controller["uid"] != owner.uid and kind is not HTTPRouteFilter:
            raise AlreadyExists({"reason": "AlreadyExists", "message": "controlled by another", "code": 409})
        changed_object = owned_by(live, owner)
        for field_name in ("spec", "addressType", "endpoints", "ports"):
            if field_name in desired:
                changed_object = fl.Object({**changed_object, field_name: desired[field_name]})
        if desired.annotations:
            changed_object = with_metadata(changed_object, annotations={**live.annotations, **desired.annotations})
        if kind is Gateway and live is not desired:
            # Copy the two default listeners from the cache, so that the assigned hostname survives.
            default = {item["name"]: item for item in live.spec["listeners"] if item["name"].startswith("default-")}
            listeners = [default.get(item["name"], item) for item in desired.spec["listeners"]]
            changed_object = fl.Object({**changed_object, "spec": {**desired.spec, "listeners": listeners}})
        return changed_object

    return mutate


async def _write_status(
    proxy: fl.Object, ctx: ClassicContext, conditions: dict[str, tuple[str, str, str]], fields: dict[str, object]
) -> None:
    """PUT the status into the copy that the reconcile started with (Status().Update), if the status changed."""
    now = rfc3339(ctx.world.clock.now())
    old_conditions = {c["type"]: c for c in proxy.status.get("conditions") or ()}
    for name, (value, reason, message) in conditions.items():
        old = old_conditions.get(name) or {}
        since = old["lastTransitionTime"] if old.get("status") == value else now
        old_conditions[name] = {
            "type": name,
            "status": value,
            "reason": reason,
            "message": message,
            "observedGeneration": proxy.generation,
            "lastTransitionTime": since,
        }
    changed_status = {**proxy.status, **fields, "conditions": list(old_conditions.values())}
    if changed_status != proxy.status:
        await ctx.client.replace(fl.Object({**proxy, "status": changed_status}), subresource="status")


def _proxies_of(connector: fl.Object, ctx: ClassicContext) -> Iterable[Key]:
    for proxy in ctx.list(HTTPProxy, connector.namespace):
        if any(backend.connector == connector.name for backend in backends_of(proxy)):
            yield proxy.namespace, proxy.name
