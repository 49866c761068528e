"""The second writer: the gateway controller, which writes into the same Gateways, HTTPRoutes and EndpointSlices.

In two modes: "update", by PUT of what it read, as it was; "apply", under a field manager of its own. It stands for
the data plane, too: a Gateway that it has seen is programmed at once.
"""

from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

import fairlead as fl
from fairlead.api.times import rfc3339
from fairlead.client.client import Client
from fairlead_operators import old_way
from fairlead_operators.httpproxy.kinds import EndpointSlice, EnvoyPatchPolicy, Gateway, HTTPRoute
from fairlead_operators.httpproxy.status import canonical_hostname
from fairlead_operators.old_way import Key, View, with_finalizer

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
) -> AbstractAsyncContextManager[View]:
    """The controller at work. It takes only hostnames that are `verified` and that no other Gateway claimed first."""
    allowed = frozenset(verified)
    claims: dict[str, Key] = {}

    async def reconcile(key: Key, view: View) -> None:
        gateway = view.get(Gateway, key)
        served = {item.get("hostname") for item in gateway.spec["listeners"]} if gateway is not None else set()
        for hostname in [name for name, owner in claims.items() if owner == key and name not in served]:
            del claims[hostname]
        if gateway is None:
            return
        write = _apply if mode == "apply" else _update
        if gateway.deleting:
            await _release(gateway, view)
            return
        gateway = await write(gateway, view)
        routes = [route for route in beside(gateway, HTTPRoute, _parents, view) if not route.deleting]
        taken = {name for name in served & allowed if claims.setdefault(name, key) != key}
        await _report(gateway, len(routes), view, allowed, taken)
        for route in routes:
            await _adopt(route, view, mode)
            await _report_route(route, gateway, view)
            for name in _backends(route):
                endpoints = view.get(EndpointSlice, (route.namespace, name))
                if endpoints is not None and not endpoints.deleting:
                    await _adopt(endpoints, view, mode)
        for policy in beside(gateway, EnvoyPatchPolicy, _target, view):
            await _report_policy(policy, gateway, view)

    def gateways_of(route: fl.Object, view: View) -> Iterable[Key]:
        return [(route.namespace, name) for name in _parents(route)]

    def gateways_behind(endpoints: fl.Object, view: View) -> Iterable[Key]:
        for route in beside(endpoints, HTTPRoute, _backends, view):
            yield from gateways_of(route, view)

    def gateways_patched(policy: fl.Object, view: View) -> Iterable[Key]:
        return [(policy.namespace, name) for name in _target(policy)]

    def beside(
        obj: fl.Object, kind: fl.Kind, names: Callable[[fl.Object], list[str]], view: View
    ) -> Iterable[fl.Object]:
        """Those in the object's namespace that name it."""
        return [other for other in view.indexed(kind, names, obj.name) if other.namespace == obj.namespace]

    return old_way.running(
        client,
        world,
        reconcile,
        namespace=namespace,
        primary=Gateway,
        watches={HTTPRoute: gateways_of, EndpointSlice: gateways_behind, EnvoyPatchPolicy: gateways_patched},
        workers=5,
        **options,
    )


async def _update(gateway: fl.Object, view: View) -> fl.Object:
    listeners = [
        {**listener, "hostname": canonical_hostname(gateway)} if listener["name"] in DEFAULTS else listener
        for listener in gateway.spec["listeners"]
    ]
    changed = with_finalizer(gateway, FINALIZER)
    changed = fl.Object({**changed, "spec": {**changed.spec, "listeners": listeners}})
    return gateway if changed == gateway else await view.put(changed)


async def _apply(gateway: fl.Object, view: View) -> fl.Object:
    named = {listener["name"]: listener.get("hostname") for listener in gateway.spec["listeners"]}
    hostname = canonical_hostname(gateway)
    mine = [name for name in DEFAULTS if name in named]
    if FINALIZER in gateway.finalizers and all(named[name] == hostname for name in mine):
        return gateway
    payload = Gateway(
        gateway.name, gateway.namespace, spec={"listeners": [{"name": name, "hostname": hostname} for name in mine]}
    )
    payload["metadata"].update(finalizers=[FINALIZER], uid=gateway.uid)
    return await view.client.apply(payload, field_manager=MANAGER)


async def _adopt(child: fl.Object, view: View, mode: Mode) -> None:
    changed = with_finalizer(child, CHILD_FINALIZER)
    if changed == child:
        return
    if mode == "update":
        await view.put(changed)
        return
    payload = fl.Object({"apiVersion": child.api_version, "kind": child.kind})
    payload["metadata"] = {
        "name": child.name,
        "namespace": child.namespace,
        "uid": child.uid,
        "finalizers": [CHILD_FINALIZER],
    }
    if child.kind == "EndpointSlice":  # fields that the API wants in every payload
        payload.update(addressType=child["addressType"], endpoints=child["endpoints"])
    await view.client.apply(payload, field_manager=MANAGER)


async def _release(gateway: fl.Object, view: View) -> None:
    """Let go of the Gateway and of what hangs on it."""
    for kind in (HTTPRoute, EndpointSlice):
        for child in view.list(kind, gateway.namespace):
            if child.deleting and CHILD_FINALIZER in child.finalizers:
                await _drop(child, CHILD_FINALIZER, view)
    if FINALIZER in gateway.finalizers:
        await _drop(gateway, FINALIZER, view)


async def _drop(obj: fl.Object, finalizer: str, view: View) -> None:
    left = [name for name in obj.finalizers if name != finalizer]
    await view.put(old_way.with_metadata(obj, finalizers=left))


async def _report(
    gateway: fl.Object, routes: int, view: View, verified: frozenset[str], taken: Collection[str]
) -> None:
    now = rfc3339(view.world.clock.now())
    listeners = []
    for listener in gateway.spec["listeners"]:
        hostname = listener.get("hostname")
        status, reason, message = "True", "Accepted", ""
        if listener["name"] not in DEFAULTS and hostname not in verified:
            status, reason, message = "False", "UnverifiedHostname", f"{hostname} is not verified"
        elif listener["name"] not in DEFAULTS and hostname in taken:
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
    if _untimed(report) != _untimed(gateway.status):
        await view.put(fl.Object({**gateway, "status": report}), subresource="status")


async def _report_route(route: fl.Object, gateway: fl.Object, view: View) -> None:
    """A status PUT every pass, as it was; with the same content it changes nothing on the server."""
    newest = await view.client.get(HTTPRoute, route.name, route.namespace)
    parents = newest.status.get("parents") or [{}]
    known = parents[0].get("conditions") or ()
    times = {condition["type"]: condition["lastTransitionTime"] for condition in known}
    now = rfc3339(view.world.clock.now())
    conditions = [
        _condition(name, "True", name, "", newest, times.get(name, now)) for name in ("Accepted", "ResolvedRefs")
    ]
    parent = {"group": Gateway.group, "kind": Gateway.kind, "name": gateway.name}
    parents = [{"parentRef": parent, "controllerName": CONTROLLER, "conditions": conditions}]
    await view.put(fl.Object({**newest, "status": {"parents": parents}}), subresource="status")


async def _report_policy(policy: fl.Object, gateway: fl.Object, view: View) -> None:
    """What the data plane says of a policy."""
    now = rfc3339(view.world.clock.now())
    conditions = [_condition(name, "True", name, "", policy, now) for name in ("Accepted", "Programmed")]
    reference = {"group": Gateway.group, "kind": Gateway.kind, "name": gateway.name}
    ancestors = [{"ancestorRef": reference, "controllerName": CONTROLLER, "conditions": conditions}]
    if _untimed(policy.status.get("ancestors")) != _untimed(ancestors):
        await view.put(fl.Object({**policy, "status": {"ancestors": ancestors}}), subresource="status")


def _condition(kind: str, status: str, reason: str, message: str, about: fl.Object, since: str) -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": about.generation,
        "lastTransitionTime": since,
    }


def _untimed(value: Any) -> Any:
    """The value without its times, for a comparison that does not depend on when it was made."""
    if isinstance(value, dict):
        return {k: _untimed(v) for k, v in value.items() if k != "lastTransitionTime"}
    return [_untimed(v) for v in value] if isinstance(value, list) else value


def _parents(route: fl.Object) -> list[str]:
    return [ref["name"] for ref in route.spec.get("parentRefs") or ()]


def _target(policy: fl.Object) -> list[str]:
    return [policy.spec["targetRef"]["name"]]


def _backends(route: fl.Object) -> list[str]:
    return [ref["name"] for rule in route.spec.get("rules") or () for ref in rule.get("backendRefs") or ()]
