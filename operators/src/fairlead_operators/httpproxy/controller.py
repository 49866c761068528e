"""The HTTPProxy operator: every child by apply, nothing carried forward, nothing sent when nothing changed."""

from collections.abc import Iterable
from typing import Any

import fairlead as fl
from fairlead_operators.httpproxy import status
from fairlead_operators.httpproxy.backends import connectors_of
from fairlead_operators.httpproxy.children import (
    filters_of,
    gateway_of,
    has_tunnels,
    policies_of,
    policy_name,
    route_of,
    serves_tls,
    slices_of,
)
from fairlead_operators.httpproxy.kinds import (
    CERT_HOSTNAME,
    FINALIZER,
    Connector,
    EndpointSlice,
    EnvoyPatchPolicy,
    Gateway,
    HTTPProxy,
    HTTPRoute,
    HTTPRouteFilter,
)

op = fl.Operator("httpproxy")

PREDECESSOR = "network-services-operator"
ONCE_UPDATED = {
    Gateway: [
        "spec.gatewayClassName",
        *(f"spec.listeners[*].{name}" for name in ("name", "port", "protocol", "allowedRoutes", "tls")),
        *(f"spec.listeners[name={scheme}-hostname-{i}]" for scheme in ("http", "https") for i in range(16)),
    ],
    HTTPRoute: ["spec.parentRefs", "spec.rules"],
    EndpointSlice: ["endpoints", "ports", f"/metadata/annotations/{CERT_HOSTNAME.replace('/', '~1')}"],
}
"""What the operator before this one wrote by update. The hostnames of the default listeners are not among it: they are
the gateway controller's, which ran in the same process and under the same name, so that one entry may hold both."""


def proxies_of(connector: fl.Object, view: fl.ReadContext) -> Iterable[fl.Object]:
    """The proxies that go through this connector."""
    for proxy in view.list(HTTPProxy, connector.namespace):
        if connector.name in connectors_of(proxy):
            yield proxy


@op.reconcile(
    HTTPProxy,
    owns=[Gateway, HTTPRouteFilter, HTTPRoute, EndpointSlice, EnvoyPatchPolicy],
    watches={Connector: proxies_of},
    ready="Programmed",
)
async def httpproxy(proxy: fl.Object, ctx: fl.Context) -> None:
    """Make the children, then say what the gateway made of them."""
    connectors = [ctx.get(Connector, name) for name in connectors_of(proxy)]
    online = {c.name: c for c in connectors if c is not None and c.is_true("Ready")}
    try:
        await take_over(proxy, ctx)
        gateway = await ctx.apply(gateway_of(proxy))
        for child in [*filters_of(proxy, online), route_of(proxy, online)]:
            await ctx.apply(child)
        for endpoints in slices_of(proxy):
            await ctx.apply(endpoints, recreate=True)  # addressType cannot change
        policies = [await ctx.apply(policy) for policy in policies_of(proxy, online) if serves_tls(gateway)]
    except fl.ForeignObject as error:
        ctx.condition("Programmed", False, "Conflict", str(error))
        raise
    except fl.Terminal as error:  # an endpoint that cannot be
        ctx.condition("Accepted", False, error.reason, str(error))
        raise
    report(proxy, gateway, policies, ctx)


async def take_over(proxy: fl.Object, ctx: fl.Context) -> None:
    """Make what the predecessor wrote ours, so that leaving it out removes it."""
    names = {Gateway: [proxy.name], HTTPRoute: [proxy.name], EndpointSlice: [s.name for s in slices_of(proxy)]}
    for kind, fields in ONCE_UPDATED.items():
        for name in names[kind]:
            child = ctx.get(kind, name)
            if child is not None and is_ours(child, proxy) and not applied(child):
                await ctx.migrate(child, fields=fields, managers=[PREDECESSOR])


def applied(child: fl.Object) -> bool:
    """Whether this operator applied the child before: then there is nothing left to take over."""
    entries = child.metadata.get("managedFields") or ()
    return any((each["operation"], each["manager"].partition("/")[0]) == ("Apply", op.name) for each in entries)


def is_ours(child: fl.Object, proxy: fl.Object) -> bool:
    return any(owner["uid"] == proxy.uid for owner in child.metadata.get("ownerReferences") or ())


def report(proxy: fl.Object, gateway: fl.Object, policies: list[fl.Object], ctx: fl.Context) -> None:
    """Status, from the live Gateway and policies that the applies answered."""
    ctx.status(addresses=gateway.status.get("addresses"), canonicalHostname=status.canonical_hostname(gateway))
    current = status.seen_by_its_controller(gateway)
    for kind in ("Accepted", "Programmed"):
        said = gateway.condition(kind)
        if said and current and said["status"] != "Unknown":
            ctx.condition(kind, said["status"], said["reason"], said["message"])
        else:
            ctx.condition(kind, None if kind == "Accepted" else False, "Pending", "Waiting for the gateway")
    if current:
        ctx.status(hostnames=status.serving(proxy, gateway))
        if proxy.spec.get("hostnames"):
            _report_hostnames(status.hostname_statuses(proxy, gateway), ctx)
    if has_tunnels(proxy):
        taken = bool(policies) and all(status.policy_programmed(policy) for policy in policies)
        reason = "ConnectorMetadataApplied" if taken else "Pending"
        missing = "" if taken else _waits_for(proxy, gateway, policies, ctx)
        ctx.condition("ConnectorMetadataProgrammed", taken, reason, missing)
        if policies and not taken:
            ctx.condition("Programmed", False, "Pending", missing)


def _waits_for(proxy: fl.Object, gateway: fl.Object, policies: list[fl.Object], ctx: fl.Context) -> str:
    names = connectors_of(proxy)
    if absent := [name for name in names if ctx.get(Connector, name) is None]:
        return f"There is no Connector {', '.join(absent)}: create it, or take it out of the rule"
    if not serves_tls(gateway):
        return "Waiting for the gateway"
    if not policies:
        return f"Waiting for the agent of Connector {', '.join(names)} to come online"
    return f"Waiting for the data plane to take EnvoyPatchPolicy {policies[0].name}"


def _report_hostnames(statuses: list[dict[str, Any]], ctx: fl.Context) -> None:
    ctx.status(hostnameStatuses=statuses)
    by_reason: dict[str, list[str]] = {}
    for each in statuses:
        by_reason.setdefault(each["conditions"][0]["reason"], []).append(each["hostname"])
    unverified, taken = by_reason.get("UnverifiedHostname"), by_reason.get("HostnameInUse")
    if unverified:
        ctx.condition(
            "HostnamesVerified", False, "UnverifiedHostnamesPresent", f"not verified: {', '.join(unverified)}"
        )
    else:
        ctx.condition("HostnamesVerified", True, "HostnamesVerified", "all hostnames are verified")
    if taken:
        ctx.condition("HostnamesInUse", True, "HostnameInUse", f"in use by another gateway: {', '.join(taken)}")


@op.cleanup(HTTPProxy, finalizer=FINALIZER)
async def leave(proxy: fl.Object, ctx: fl.Context) -> None:
    """Take the tunnels out of the data plane before the proxy goes; the garbage collector does the rest."""
    policy = ctx.get(EnvoyPatchPolicy, policy_name(proxy))
    if policy is not None and is_ours(policy, proxy):
        await ctx.delete(policy)


if __name__ == "__main__":
    op.main()
