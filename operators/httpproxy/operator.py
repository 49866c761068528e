"""The HTTPProxy operator: every child by apply, nothing carried forward, nothing sent when nothing changed."""

from collections.abc import Iterable

import fairlead as fl
from fairlead.operators.httpproxy import status
from fairlead.operators.httpproxy.backends import backends_of
from fairlead.operators.httpproxy.children import (
    Online,
    filters_of,
    gateway_of,
    policies_of,
    policy_name,
    route_of,
    slices_of,
)
from fairlead.operators.httpproxy.kinds import (
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
    Gateway: ["spec.gatewayClassName"],
    HTTPRoute: ["spec.parentRefs", "spec.rules"],
    EndpointSlice: ["endpoints", "ports", f"/metadata/annotations/{CERT_HOSTNAME.replace('/', '~1')}"],
}
"""What the operator before this one wrote by update. The listeners are not among it: its entry may hold the gateway
controller's hostnames too, which ran in the same process and under the same name."""


def proxies_of(connector: fl.Object, view: fl.View) -> Iterable[fl.Object]:
    """The proxies that go through this connector."""
    for proxy in view.list(HTTPProxy, connector.namespace):
        if any(backend.connector == connector.name for backend in backends_of(proxy)):
            yield proxy


@op.reconcile(
    HTTPProxy,
    owns=[Gateway, HTTPRouteFilter, HTTPRoute, EndpointSlice, EnvoyPatchPolicy],
    watches={Connector: proxies_of},
    ready="Programmed",
)
async def httpproxy(proxy: fl.Object, ctx: fl.Context) -> None:
    """Make the children, then say what the gateway made of them."""
    connectors = [ctx.get(Connector, b.connector) for b in backends_of(proxy) if b.connector]
    online = {c.name: c for c in connectors if c is not None and c.is_true("Ready")}
    try:
        await take_over(proxy, ctx)
        gateway = await ctx.apply(gateway_of(proxy))
        for child in [*filters_of(proxy, online), route_of(proxy, online)]:
            await ctx.apply(child)
        for endpoints in slices_of(proxy):
            await ctx.apply(endpoints, recreate=True)  # addressType cannot change
        # A patch of a listener that is not there yet would be refused by the data plane.
        policies = policies_of(proxy, online) if _serves_tls(gateway) else []
        for policy in policies:
            await ctx.apply(policy)
    except fl.Foreign as error:
        ctx.condition("Programmed", False, "Conflict", str(error))
        raise
    report(proxy, gateway, online, bool(policies), ctx)


async def take_over(proxy: fl.Object, ctx: fl.Context) -> None:
    """Make what the predecessor wrote ours, so that leaving it out removes it."""
    names = {Gateway: [proxy.name], HTTPRoute: [proxy.name], EndpointSlice: [s.name for s in slices_of(proxy)]}
    for kind, fields in ONCE_UPDATED.items():
        for name in names[kind]:
            child = ctx.get(kind, name)
            # The local view keeps our own Apply entry alone: without one, we have not written this child yet.
            if child is not None and is_ours(child, proxy) and not child.metadata.get("managedFields"):
                await ctx.migrate(child, fields=fields, managers=[PREDECESSOR])


def is_ours(child: fl.Object, proxy: fl.Object) -> bool:
    return any(owner["uid"] == proxy.uid for owner in child.metadata.get("ownerReferences") or ())


def report(proxy: fl.Object, gateway: fl.Object, online: Online, patched: bool, ctx: fl.Context) -> None:
    """Status, from the live Gateway that the apply answered."""
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
    if any(backend.connector for backend in backends_of(proxy)):
        reason = "ConnectorMetadataApplied" if patched else "Pending"
        ctx.condition("ConnectorMetadataProgrammed", patched, reason, "" if patched else "Waiting for the connector")


def _report_hostnames(statuses: list[dict], ctx: fl.Context) -> None:  # type: ignore[type-arg]
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


def _serves_tls(gateway: fl.Object) -> bool:
    listeners = {listener["name"]: listener for listener in gateway.status.get("listeners") or ()}
    conditions = (listeners.get("default-https") or {}).get("conditions") or ()
    return gateway.is_true("Programmed") and any(
        c["type"] == "Programmed" and c["status"] == "True" for c in conditions
    )


@op.cleanup(HTTPProxy, finalizer=FINALIZER)
async def leave(proxy: fl.Object, ctx: fl.Context) -> None:
    """Take the tunnels out of the data plane before the proxy goes; the garbage collector does the rest."""
    policy = ctx.get(EnvoyPatchPolicy, policy_name(proxy))
    if policy is not None and is_ours(policy, proxy):
        await ctx.delete(policy)


if __name__ == "__main__":
    op.main()
