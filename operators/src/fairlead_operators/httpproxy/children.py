"""Build the children of an HTTPProxy. Each payload has exactly the fields that this operator owns."""

from collections.abc import Mapping
from typing import Any

import fairlead as fl
from fairlead_operators.httpproxy.backends import Backend, backends_of, filters_in
from fairlead_operators.httpproxy.kinds import (
    CERT_HOSTNAME,
    GATEWAY_CLASS,
    EndpointSlice,
    EnvoyPatchPolicy,
    Gateway,
    HTTPRoute,
    HTTPRouteFilter,
)

TLS = {"mode": "Terminate", "options": {"gateway.networking.datumapis.com/certificate-issuer": "auto"}}

OnlineConnectors = Mapping[str, fl.Object]
"""The ready Connectors by name."""


def gateway_of(proxy: fl.Object) -> fl.Object:
    """Return the Gateway of a proxy: http and https listeners for the assigned hostname and for each user hostname."""
    listeners = [_listener("default"), _listener("default", is_tls=True)]
    for i, hostname in enumerate(proxy.spec.get("hostnames") or ()):
        listeners += [_listener(None, i, hostname), _listener(None, i, hostname, is_tls=True)]
    return Gateway(proxy.name, spec={"gatewayClassName": GATEWAY_CLASS, "listeners": listeners})


def _listener(name: str | None, i: int = 0, hostname: str | None = None, *, is_tls: bool = False) -> dict[str, Any]:
    scheme = "https" if is_tls else "http"
    return {
        "name": f"{name}-{scheme}" if name else f"{scheme}-hostname-{i}",
        "protocol": scheme.upper(),
        "port": 443 if is_tls else 80,
        "allowedRoutes": {"namespaces": {"from": "Same"}},
        **({"hostname": hostname} if hostname else {}),
        **({"tls": TLS} if is_tls else {}),
    }


def route_of(proxy: fl.Object, online: OnlineConnectors) -> fl.Object:
    """Return the HTTPRoute of a proxy. Rules with an offline connector return 503, redirects have no backend."""
    backends = {backend.rule: backend for backend in backends_of(proxy)}
    rules = [_rule(proxy, rule, backends.get(i), online) for i, rule in enumerate(proxy.spec["rules"])]
    return HTTPRoute(proxy.name, spec={"parentRefs": [{"name": proxy.name}], "rules": rules})


def _rule(proxy: fl.Object, rule: dict[str, Any], backend: Backend | None, online: OnlineConnectors) -> dict[str, Any]:
    matches = {"matches": rule["matches"]} if rule.get("matches") else {}
    filters = filters_in(rule)
    if backend is None:
        return {**matches, "filters": filters}
    if _is_offline(backend, online):
        reference = {"group": HTTPRouteFilter.group, "kind": HTTPRouteFilter.kind, "name": _offline_name(proxy)}
        return {**matches, "filters": [{"type": "ExtensionRef", "extensionRef": reference}]}
    if backend.rewritten_host and not any(_sets_host(f) for f in filters):
        filters = _add_host_rewrite(filters, backend.rewritten_host)
    backend_ref = {
        "group": EndpointSlice.group,
        "kind": EndpointSlice.kind,
        "name": _slice_name(proxy, backend),
        "port": backend.port,
    }
    return {**matches, **({"filters": filters} if filters else {}), "backendRefs": [backend_ref]}


def _add_host_rewrite(filters: list[dict[str, Any]], host: str) -> list[dict[str, Any]]:
    """Return the filters with the hostname in their URLRewrite filter, which is added if it is missing."""
    if not any(f["type"] == "URLRewrite" for f in filters):
        filters = [*filters, {"type": "URLRewrite"}]
    return [
        {**f, "urlRewrite": {**(f.get("urlRewrite") or {}), "hostname": host}} if f["type"] == "URLRewrite" else f
        for f in filters
    ]


def _sets_host(rule_filter: dict[str, Any]) -> bool:
    """Return whether a user's filter sets the Host header. The operator then adds no host rewrite."""
    if rule_filter["type"] == "URLRewrite":
        return "hostname" in (rule_filter.get("urlRewrite") or {})
    headers = (rule_filter.get("requestHeaderModifier") or {}).get("set") or ()
    return any(header["name"].lower() == "host" for header in headers)


def slices_of(proxy: fl.Object) -> list[fl.Object]:
    """Return an EndpointSlice for each backend of a proxy."""
    return [_slice(proxy, backend) for backend in backends_of(proxy)]


def _slice(proxy: fl.Object, backend: Backend) -> fl.Object:
    port_name = f"httpproxy-{backend.rule}-{backend.index}"
    return EndpointSlice(
        _slice_name(proxy, backend),
        annotations={CERT_HOSTNAME: backend.cert_hostname} if backend.cert_hostname else None,
        addressType=backend.address_type,
        endpoints=[{"addresses": [backend.address]}],
        ports=[{"name": port_name, "port": backend.port, "protocol": "TCP", "appProtocol": backend.scheme}],
    )


def filters_of(proxy: fl.Object, online: OnlineConnectors) -> list[fl.Object]:
    """Return a list with the HTTPRouteFilter that answers 503 for offline tunnels, or an empty list."""
    if not any(_is_offline(backend, online) for backend in backends_of(proxy)):
        return []
    response = {
        "statusCode": 503,
        "contentType": "text/plain",
        "body": {"type": "Inline", "inline": "Tunnel not online"},
    }
    return [HTTPRouteFilter(_offline_name(proxy), spec={"directResponse": response})]


def policies_of(proxy: fl.Object, online: OnlineConnectors) -> list[fl.Object]:
    """Return a list with the EnvoyPatchPolicy that configures all online tunnels, or an empty list."""
    patches = []
    for backend in backends_of(proxy):
        if backend.connector and backend.connector in online:
            details = online[backend.connector].status.get("connectionDetails") or {}
            tunnel = {
                "address": f"{backend.host}:{backend.port}",
                "endpoint_id": (details.get("publicKey") or {}).get("id", ""),
            }
            path = "/load_assignment/endpoints/0/lb_endpoints/0/metadata"
            operation = {"op": "add", "path": path, "value": {"filter_metadata": {"tunnel": tunnel}}}
            cluster = f"httproute/{proxy.namespace}/{proxy.name}/rule/{backend.rule}"
            kind = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
            patches.append({"type": kind, "name": cluster, "operation": operation})
    if not patches:
        return []
    target = {"group": Gateway.group, "kind": Gateway.kind, "name": proxy.name}
    return [
        EnvoyPatchPolicy(policy_name(proxy), spec={"type": "JSONPatch", "targetRef": target, "jsonPatches": patches})
    ]


def has_tunnels(proxy: fl.Object) -> bool:
    """Return whether a backend of the proxy uses a Connector."""
    return any(backend.connector for backend in backends_of(proxy))


def is_https_listener_ready(gateway: fl.Object) -> bool:
    """Return whether the HTTPS listener is programmed. Before that, the data plane rejects policies for it."""
    listeners = {listener["name"]: listener for listener in gateway.status.get("listeners") or ()}
    conditions = (listeners.get("default-https") or {}).get("conditions") or ()
    return gateway.is_true("Programmed") and any(
        c["type"] == "Programmed" and c["status"] == "True" for c in conditions
    )


def policy_name(proxy: fl.Object) -> str:
    return f"connector-{proxy.name}"


def _is_offline(backend: Backend, online: OnlineConnectors) -> bool:
    return backend.connector is not None and backend.connector not in online


def _offline_name(proxy: fl.Object) -> str:
    return f"connector-offline-{proxy.name}"


def _slice_name(proxy: fl.Object, backend: Backend) -> str:
    return f"{proxy.name}-{backend.rule}-{backend.index}"
