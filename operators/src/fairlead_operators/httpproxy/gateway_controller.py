"""The gateway controller: a second writer of the Gateways, HTTPRoutes and EndpointSlices of the HTTPProxy operator.

In the mode "update", the controller writes a changed copy with PUT, as the original did. In the mode "apply", it
applies its fields under its own field manager. It also simulates the data plane and reports each Gateway as programmed.
"""

from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

import fairlead as fl
from fairlead.api.times import rfc3339
from fairlead.client.client import Client
from fairlead_operators import classic_controller
from fairlead_operators.classic_controller import ClassicContext, Key, with_finalizer, without_finalizer
from fairlead_operators.httpproxy.kinds import EndpointSlice, EnvoyPatchPolicy, Gateway, HTTPRoute
from fairlead_operators.httpproxy.status import canonical_hostname

FINALIZER = "gateway.networking.datumapis.com/gateway-controller"
CHILD_FINALIZER = "gateway.networking.datumapis.com/gateway-controller-gc"
MANAGER = "gateway-controller"
CONTROLLER = "gateway.example.net/controller"
ADDRESS = "192.0.2.10"
DEFAULTS = ("default-http", "default-https")

Mode = Literal["update", "apply"]


def running(
    client: Client,
    world: fl.World,
    *,
    namespace: str | None = None,
    mode: Mode = "update",
    verified: Iterable[str] = (),
    **options: Any,
) -> AbstractAsyncContextManager[ClassicContext]:
    """Return a context manager that runs the gateway controller.

    The controller accepts a hostname if it is in `verified` and no other Gateway uses it.
    """
    allowed = frozenset(verified)
    claims: dict[str, Key] = {}

    async def reconcile(key: Key, ctx: ClassicContext) -> None:
        gateway = ctx.get(Gateway, key)
        served_hostnames = (
            {item.get("hostname") for item in gateway.spec["listeners"]} if gateway is not None else set()
        )
        for hostname in [name for name, owner in claims.items() if owner == key and name not in served_hostnames]:
            del claims[hostname]
        if gateway is None:
            return
        write = _apply if mode == "apply" else _update
        if gateway.deleting:
            await _release(gateway, ctx)
            return
        gateway = await write(gateway, ctx)
        routes = [route for route in referring_to(gateway, HTTPRoute, _parents, ctx) if not route.deleting]
        in_use = {name for name in served_hostnames & allowed if claims.setdefault(name, key) != key}
        await _report(gateway, len(routes), ctx, allowed, in_use)
        for route in routes:
            await _adopt(route, ctx, mode)
            await _report_route(route, gateway, ctx)
            for name in _backends(route):
                endpoints = ctx.get(EndpointSlice, (route.namespace, name))
                if endpoints is not None and not endpoints.deleting:
                    await _adopt(endpoints, ctx, mode)
        for policy in referring_to(gateway, EnvoyPatchPolicy, _target, ctx):
            await _report_policy(policy, gateway, ctx)

    def gateways_of_route(route: fl.Object, ctx: ClassicContext) -> Iterable[Key]:
        return [(route.namespace, name) for name in _parents(route)]

    def gateways_of_slice(endpoints: fl.Object, ctx: ClassicContext) -> Iterable[Key]:
        for route in referring_to(endpoints, HTTPRoute, _backends, ctx):
            yield from gateways_of_route(route, ctx)

    def gateways_of_policy(policy: fl.Object, ctx: ClassicContext) -> Iterable[Key]:
        return [(policy.namespace, name) for name in _target(policy)]

    def referring_to(
        obj: fl.Object, kind: fl.Kind, names: Callable[[fl.Object], list[str]], ctx: ClassicContext
    ) -> Iterable[fl.Object]:
        """Return the objects of a kind that refer to `obj` by name, in the same namespace."""
        return [other for other in ctx.list_by_index(kind, names, obj.name) if other.namespace == obj.namespace]

    return classic_controller.running(
        client,
        world,
        reconcile,
        namespace=namespace,
        primary=Gateway,
        watches={HTTPRoute: gateways_of_route, EndpointSlice: gateways_of_slice, EnvoyPatchPolicy: gateways_of_policy},
        workers=5,
        **options,
    )


async def _update(gateway: fl.Object, ctx: ClassicContext) -> fl.Object:
    listeners = [
        {**listener, "hostname": canonical_hostname(gateway)} if listener["name"] in DEFAULTS else listener
        for listener in gateway.spec["listeners"]
    ]
    changed_object = with_finalizer(gateway, FINALIZER)
    changed_object = fl.Object({**changed_object, "spec": {**changed_object.spec, "listeners": listeners}})
    return gateway if changed_object == gateway else await ctx.replace_and_cache(changed_object)


async def _apply(gateway: fl.Object, ctx: ClassicContext) -> fl.Object:
    hostnames = {listener["name"]: listener.get("hostname") for listener in gateway.spec["listeners"]}
    hostname = canonical_hostname(gateway)
    defaults = [name for name in DEFAULTS if name in hostnames]
    if FINALIZER in gateway.finalizers and all(hostnames[name] == hostname for name in defaults):
        return gateway
    payload = Gateway(
        gateway.name, gateway.namespace, spec={"listeners": [{"name": name, "hostname": hostname} for name in defaults]}
    )
    payload["metadata"].update(finalizers=[FINALIZER], uid=gateway.uid)
    return await ctx.client.apply(payload, field_manager=MANAGER)


async def _adopt(child: fl.Object, ctx: ClassicContext, mode: Mode) -> None:
    changed_object = with_finalizer(child, CHILD_FINALIZER)
    if changed_object == child:
        return
    if mode == "update":
        await ctx.replace_and_cache(changed_object)
        return
    payload = fl.Object({"apiVersion": child.api_version, "kind": child.kind})
    payload["metadata"] = {
        "name": child.name,
        "namespace": child.namespace,
        "uid": child.uid,
        "finalizers": [CHILD_FINALIZER],
    }
    if child.kind == "EndpointSlice":  # the API requires these fields in every payload
        payload.update(addressType=child["addressType"], endpoints=child["endpoints"])
    await ctx.client.apply(payload, field_manager=MANAGER)


async def _release(gateway: fl.Object, ctx: ClassicContext) -> None:
    """Remove our finalizers from a deleted Gateway and from its deleted children."""
    for kind in (HTTPRoute, EndpointSlice):
        for child in ctx.list(kind, gateway.namespace):
            if child.deleting and CHILD_FINALIZER in child.finalizers:
                await _remove_finalizer(child, CHILD_FINALIZER, ctx)
    if FINALIZER in gateway.finalizers:
        await _remove_finalizer(gateway, FINALIZER, ctx)


async def _remove_finalizer(obj: fl.Object, finalizer: str, ctx: ClassicContext) -> None:
    await ctx.replace_and_cache(without_finalizer(obj, finalizer))


async def _report(
    gateway: fl.Object, routes: int, ctx: ClassicContext, verified: frozenset[str], in_use: Collection[str]
) -> None:
    now = rfc3339(ctx.world.clock.now())
    listeners = []
    for listener in gateway.spec["listeners"]:
        hostname = listener.get("hostname")
        status, reason, message = "True", "Accepted", ""
        if listener["name"] not in DEFAULTS and hostname not in verified:
            status, reason, message = "False", "UnverifiedHostname", f"{hostname} is not verified"
        elif listener["name"] not in DEFAULTS and hostname in in_use:
            status, reason, message = "False", "HostnameInUse", f"{hostname} is in use by another gateway"
        conditions = [
            _condition("Accepted", status, reason, message, gateway, now),
            _condition("Programmed", status, "Programmed" if status == "True" else "Invalid", "", gateway, now),
        ]
        kinds = [{"group": HTTPRoute.group, "kind": HTTPRoute.kind}]
        listeners.append(
            {"name": listener["name"], "attachedRoutes": routes, "supportedKinds": kinds, "conditions": conditions}
        )
    conditions = [_condition(name, "True", name, "", gateway, now) for name in ("Accepted", "Programmed")]
    addresses = [{"type": "IPAddress", "value": ADDRESS}]
    report = {"addresses": addresses, "conditions": conditions, "listeners": listeners}
    if _without_times(report) != _without_times(gateway.status):
        await ctx.replace_and_cache(fl.Object({**gateway, "status": report}), subresource="status")


async def _report_route(route: fl.Object, gateway: fl.Object, ctx: ClassicContext) -> None:
    """Replace the status of a route in every reconcile, as the original did. An identical PUT changes nothing."""
    newest = await ctx.client.get(HTTPRoute, route.name, route.namespace)
    parents = newest.status.get("parents") or [{}]
    current_conditions = parents[0].get("conditions") or ()
    times = {condition["type"]: condition["lastTransitionTime"] for condition in current_conditions}
    now = rfc3339(ctx.world.clock.now())
    conditions = [
        _condition(name, "True", name, "", newest, times.get(name, now)) for name in ("Accepted", "ResolvedRefs")
    ]
    parent = {"group": Gateway.group, "kind": Gateway.kind, "name": gateway.name}
    parents = [{"parentRef": parent, "controllerName": CONTROLLER, "conditions": conditions}]
    await ctx.replace_and_cache(fl.Object({**newest, "status": {"parents": parents}}), subresource="status")


async def _report_policy(policy: fl.Object, gateway: fl.Object, ctx: ClassicContext) -> None:
    """Write the status of a policy, as the data plane does."""
    now = rfc3339(ctx.world.clock.now())
    conditions = [_condition(name, "True", name, "", policy, now) for name in ("Accepted", "Programmed")]
    reference = {"group": Gateway.group, "kind": Gateway.kind, "name": gateway.name}
    ancestors = [{"ancestorRef": reference, "controllerName": CONTROLLER, "conditions": conditions}]
    if _without_times(policy.status.get("ancestors")) != _without_times(ancestors):
        await ctx.replace_and_cache(fl.Object({**policy, "status": {"ancestors": ancestors}}), subresource="status")


def _condition(kind: str, status: str, reason: str, message: str, obj: fl.Object, since: str) -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": obj.generation,
        "lastTransitionTime": since,
    }


def _without_times(value: Any) -> Any:
    """Return the value without any lastTransitionTime, for comparisons."""
    if isinstance(value, dict):
        return {k: _without_times(v) for k, v in value.items() if k != "lastTransitionTime"}
    return [_without_times(v) for v in value] if isinstance(value, list) else value


def _parents(route: fl.Object) -> list[str]:
    return [ref["name"] for ref in route.spec.get("parentRefs") or ()]


def _target(policy: fl.Object) -> list[str]:
    return [policy.spec["targetRef"]["name"]]


def _backends(route: fl.Object) -> list[str]:
    return [ref["name"] for rule in route.spec.get("rules") or () for ref in rule.get("backendRefs") or ()]
