"""Validation of Ingresses and NetworkPolicies."""

import ipaddress
from collections.abc import Iterator
from typing import Final

from fairlead.server.registry.validation.formats import (
    absolute_path,
    cidr,
    dns_label,
    dns_subdomain,
    ip_address,
    path_segment,
    port,
    port_name,
    port_number,
)
from fairlead.server.registry.validation.rules import (
    Errors,
    Object,
    Rule,
    Scope,
    apply,
    build_validator,
    each,
    field,
    first_error,
    inside,
)
from fairlead.server.registry.validation.selectors import check_label_selector

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
NOT_AN_ADDRESS: Final = "must be a DNS name, not an IP address"
TYPED_REFERENCE: Final = (
    field("apiGroup").check(dns_subdomain),
    field("kind").required(path_segment),
    field("name").required(path_segment),
)


def _check_host(rule: Scope) -> Errors:
    host = rule.text("host")
    if host and not list(ip_address(host)):
        yield rule.invalid("host", NOT_AN_ADDRESS)
    elif host:
        yield from rule.check("host", dns_subdomain, host.removeprefix("*."))


def _check_tls_hosts(tls: Scope) -> Errors:
    for index, host in enumerate(tls.items("hosts")):
        yield from tls.check(f"hosts[{index}]", dns_subdomain, host.removeprefix("*."))


def _check_service_port(backend: Scope) -> Errors:
    name, number = backend.get("service.port.name"), backend.get("service.port.number")
    if name and number:
        yield backend.invalid("", "cannot set both port name & port number", "")
    elif number:
        yield from backend.check("service.port.number", port_number)
    elif name:
        yield from backend.check("service.port.name", port_name)
    else:
        yield backend.required("", "port name or number is required")


_SERVICE_NAME: Final = field("service.name").required(dns_label)


def _check_backend(backend: Scope) -> Errors:
    """Require an Ingress backend to be either a Service or another resource."""
    has_service, has_resource = (backend.get(key) is not None for key in ("service", "resource"))
    if has_service and has_resource:
        yield backend.invalid("", "cannot set both resource and service backends", "")
    elif has_resource:
        yield from apply(TYPED_REFERENCE, backend.inside("resource"))
    elif has_service:
        yield from _SERVICE_NAME(backend)
        yield from _check_service_port(backend)
    else:
        yield backend.invalid("", "resource or service backend is required", "")


def _check_normal_path(path: str) -> Iterator[str]:
    yield from absolute_path(path)
    yield from (
        f"must not contain '{sequence}'" for sequence in ("//", "/./", "/../", "%2f", "%2F") if sequence in path
    )
    yield from (f"cannot end with '{end}'" for end in ("/..", "/.") if path.endswith(end))


def _check_path(item: Scope) -> Errors:
    if item.get("pathType") in ("Exact", "Prefix"):
        yield from item.check("path", _check_normal_path, item.text("path"))
    elif item.get("pathType") == "ImplementationSpecific" and item.get("path"):
        yield from item.check("path", absolute_path)
    yield from _PATH_TYPE(item)
    yield from _check_backend(item.inside("backend"))


_PATH_TYPE: Final = field("pathType").enum("Exact", "ImplementationSpecific", "Prefix")
_HTTP_PATH: Final = first_error(
    field("pathType").required(detail="pathType must be specified", allow_empty=True), _check_path
)


def _check_backend_or_rules(spec: Scope) -> Errors:
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        yield spec.invalid("", "either `defaultBackend` or `rules` must be specified", None)


ingress: Final = build_validator(
    inside(
        "spec",
        _check_backend_or_rules,
        inside("defaultBackend", _check_backend),
        each("rules", _check_host, inside("http", field("paths").required(), each("paths", _HTTP_PATH))),
        each("tls", _check_tls_hosts, field("secretName").optional(dns_subdomain)),
        field("ingressClassName").check(dns_subdomain),
        always=True,
    )
)


def find_ingress_warnings(new: Object, old: Object | None) -> list[str]:
    key = "kubernetes.io/ingress.class"
    message = f"annotation \"{key}\" is deprecated, please use 'spec.ingressClassName' instead"
    return [message] if old is None and key in (new["metadata"].get("annotations") or {}) else []


def _check_end_port(item: Scope) -> Errors:
    first, last = item.get("port"), item.get("endPort")
    if last is None:
        return
    if first is None:
        yield item.invalid("endPort", "may not be specified when `port` is not specified")
    elif isinstance(first, str):
        yield item.invalid("endPort", "may not be specified when `port` is non-numeric")
    else:
        if last < first:
            yield item.invalid("endPort", "must be greater than or equal to `port`", first)
        yield from item.check("endPort", port_number)


def _check_ip_block(block: Scope) -> Errors:
    if len(block.parent.value) > 1:
        yield block.parent.forbidden("", "may not specify both ipBlock and another peer")
    errors = list(_CIDR(block))
    yield from errors
    if errors:
        return
    cidr_network = ipaddress.ip_network(block.text("cidr"))
    for index, except_cidr in enumerate(block.items("except")):
        errors = block.check(f"except[{index}]", cidr, except_cidr)
        yield from errors
        if not errors and not _is_strict_subset(ipaddress.ip_network(except_cidr), cidr_network):
            yield block.invalid(f"except[{index}]", "must be a strict subset of `cidr`", except_cidr)


def _is_strict_subset(inner: Network, outer: Network) -> bool:
    return inner.version == outer.version and inner.prefixlen > outer.prefixlen and inner.network_address in outer


_CIDR: Final = field("cidr").required(cidr)


def _check_policy_rules(key: str, peers: str) -> Rule:
    """Return a rule for the ingress or egress rules of a NetworkPolicy."""
    return each(
        key,
        each(
            "ports",
            field("protocol").enum("TCP", "UDP", "SCTP", always=True),
            field("port").check(port),
            _check_end_port,
        ),
        each(
            peers,
            field("").required_if(lambda peer: not peer.value, "must specify a peer"),
            check_label_selector("podSelector", "namespaceSelector"),
            inside("ipBlock", _check_ip_block),
        ),
    )


def _check_two_policy_types(spec: Scope) -> Errors:
    if len(spec.items("policyTypes")) > 2:
        yield spec.invalid("policyTypes", "may not specify more than two policyTypes")


network_policy: Final = build_validator(
    inside(
        "spec",
        check_label_selector("podSelector"),
        _check_policy_rules("ingress", "from"),
        _check_policy_rules("egress", "to"),
        first_error(_check_two_policy_types, field("policyTypes").enum_values("Ingress", "Egress")),
        always=True,
    )
)
