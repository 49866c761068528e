"""The HTTPProxy operator. It applies only its own fields of each child, and sends nothing if nothing changed."""

from collections.abc import Iterable
from typing import Any

import fairlead as fl
from fairlead_operators.httpproxy import status
from fairlead_operators.httpproxy.backends import connectors_of
from fairlead_operators.httpproxy.children import (
    filters_of,
    gateway_of,
    has_tunnels,
    is_https_listener_ready,
    policies_of,
    policy_name,
    route_of,
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

LEGACY_MANAGER = "network-services-operator"
LEGACY_FIELDS = {
    Gateway: [
        "spec.gatewayClassName",
        *(f"spec.listeners[*].{name}" for name in ("name", "port", "protocol", "allowedRoutes", "tls")),
        *(f"spec.listeners[name={scheme}-hostname-{i}]" for scheme in ("http", "https") for i in range(16)),
    ],
    HTTPRoute: ["spec.parentRefs", "spec.rules"],
    EndpointSlice: ["endpoints", "ports", f"/metadata/annotations/{CERT_HOSTNAME.replace('/', '~1')}"],
}
"""The fields that the legacy operator wrote with PUT, by kind. The hostnames of the default listeners belong to the
gateway controller. It ran in the same process with the same user agent, so one managedFields entry may have both."""


def proxies_of(connector: fl.Object, ctx: fl.ReadContext) -> Iterable[fl.Object]:
    """Yield the proxies that use a Connector."""
    for proxy in ctx.list(HTTPProxy, connector.namespace):
        if connector.name in connectors_of(proxy):
            yield proxy


@op.reconcile(
    HTTPProxy,
    owns=[Gateway, HTTPRouteFilter, HTTPRoute, EndpointSlice, EnvoyPatchPolicy],
    watches={Connector: proxies_of},
    ready="Programmed",
)
async def httpproxy(proxy: fl.Object, ctx: fl.Context) -> None:
    """Apply the children of a proxy, then copy the state of the Gateway into the status of the proxy."""
    connectors = [ctx.get(Connector, name) for name in connectors_of(proxy)]
    online = {c.name: c for c in connectors if c is not None and c.is_true("Ready")}
    try:
        await migrate_legacy_fields(proxy, ctx)
        gateway = await ctx.apply(gateway_of(proxy))
        for child in [*filters_of(proxy, online), route_of(proxy, online)]:
            await ctx.apply(child)
        for endpoints in slices_of(proxy):
            await ctx.apply(endpoints, recreate=True)  # addressType cannot change
        policies = [
            await ctx.apply(policy) for policy in policies_of(proxy, online) if is_https_listener_ready(gateway)
        ]
        await ctx.prune()
    except fl.ForeignObject as error:
        ctx.condition("Programmed", False, "Conflict", str(error))
        raise
    except fl.Terminal as error:  # an invalid endpoint
        ctx.condition("Accepted", False, error.reason, str(error))
        raise
    report(proxy, gateway, policies, ctx)


async def migrate_legacy_fields(proxy: fl.Object, ctx: fl.Context) -> None:
    """Move the legacy operator's fields of the children to our field manager, so that applies can remove them."""
    names = {Gateway: [proxy.name], HTTPRoute: [proxy.name], EndpointSlice: [s.name for s in slices_of(proxy)]}
    for kind, fields in LEGACY_FIELDS.items():
        for name in names[kind]:
            child = ctx.get(kind, name)
            if child is not None and is_owned_by(child, proxy) and not was_applied(child):
                await ctx.migrate(child, fields=fields, managers=[LEGACY_MANAGER])


def was_applied(child: fl.Object) -> bool:
    """Return whether this operator has applied the child before, so that no migration is needed."""
    entries = child.metadata.get("managedFields") or ()
    return any((e["operation"], e["manager"].partition("/")[0]) == ("Apply", op.name) for e in entries)


def is_owned_by(child: fl.Object, proxy: fl.Object) -> bool:
    return any(owner["uid"] == proxy.uid for owner in child.metadata.get("ownerReferences") or ())


def report(proxy: fl.Object, gateway: fl.Object, policies: list[fl.Object], ctx: fl.Context) -> None:
    """Set the status and conditions of the proxy from its Gateway and policies."""
    ctx.status(addresses=gateway.status.get("addresses"), canonicalHostname=status.canonical_hostname(gateway))
    current = status.is_status_current(gateway)
    for kind in ("Accepted", "Programmed"):
        condition = gateway.condition(kind)
        if condition and current and condition["status"] != "Unknown":
            ctx.condition(kind, condition["status"], condition["reason"], condition["message"])
        else:
            ctx.condition(kind, None if kind == "Accepted" else False, "Pending", "Waiting for the gateway controller")
    if current:
        ctx.status(hostnames=status.served_hostnames(proxy, gateway))
        if proxy.spec.get("hostnames"):
            _report_hostnames(status.hostname_statuses(proxy, gateway), ctx)
    if has_tunnels(proxy):
        is_programmed = bool(policies) and all(status.is_policy_programmed(policy) for policy in policies)
        reason = "ConnectorMetadataApplied" if is_programmed else "Pending"
        message = "" if is_programmed else _describe_wait(proxy, gateway, policies, ctx)
        ctx.condition("ConnectorMetadataProgrammed", is_programmed, reason, message)
        if policies and not is_programmed:
            ctx.condition("Programmed", False, "Pending", message)


def _describe_wait(proxy: fl.Object, gateway: fl.Object, policies: list[fl.Object], ctx: fl.Context) -> str:
    names = connectors_of(proxy)
    if missing_names := [name for name in names if ctx.get(Connector, name) is None]:
        return f"Connector {', '.join(missing_names)} does not exist: create it, or remove it from the rule"
    if not is_https_listener_ready(gateway):
        return "Waiting for the gateway controller"
    if not policies:
        return f"Waiting for the agent of Connector {', '.join(names)} to come online"
    return f"Waiting for the data plane to program EnvoyPatchPolicy {policies[0].name}"


def _report_hostnames(statuses: list[dict[str, Any]], ctx: fl.Context) -> None:
    ctx.status(hostnameStatuses=statuses)
    by_reason: dict[str, list[str]] = {}
    for item in statuses:
        by_reason.setdefault(item["conditions"][0]["reason"], []).append(item["hostname"])
    unverified, in_use = by_reason.get("UnverifiedHostname"), by_reason.get("HostnameInUse")
    if unverified:
        ctx.condition(
            "HostnamesVerified", False, "UnverifiedHostnamesPresent", f"verify the ownership of {', '.join(unverified)}"
        )
    else:
        ctx.condition("HostnamesVerified", True, "HostnamesVerified", "All hostnames are verified")
    if in_use:
        message = f"Another Gateway uses {', '.join(in_use)}: remove it from one of the two"
        ctx.condition("HostnamesInUse", True, "HostnameInUse", message)


@op.cleanup(HTTPProxy, finalizer=FINALIZER)
async def clean_up(proxy: fl.Object, ctx: fl.Context) -> None:
    """Delete the policy with the tunnels of a deleted proxy. The garbage collector deletes the other children."""
    policy = ctx.get(EnvoyPatchPolicy, policy_name(proxy))
    if policy is not None and is_owned_by(policy, proxy):
        await ctx.delete(policy)


if __name__ == "__main__":
    op.main()
