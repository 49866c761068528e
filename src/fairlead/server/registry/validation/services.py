"""Validation of Services, in a single-stack IPv4 cluster."""

import ipaddress
from collections.abc import Iterable
from typing import Final

from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.formats import (
    PROTOCOLS,
    cidr,
    dns_label,
    dns_subdomain,
    ip_address,
    port,
    qualified_name,
)
from fairlead.server.registry.validation.rules import (
    EMPTY,
    NOT_EMPTY,
    SET,
    Errors,
    Not,
    Object,
    Scope,
    apply,
    each,
    field,
    when,
)
from fairlead.server.registry.validation.selectors import check_labels
from fairlead.server.registry.validation.service_addresses import check_cluster_addresses

_RANGE: Final = ipaddress.ip_network("10.0.0.0/8")
_DAY: Final = 86400
_TIMEOUT: Final = "sessionAffinityConfig.clientIP.timeoutSeconds"
_ONLY_BALANCED: Final = "may only be used when `type` is 'LoadBalancer'"
_NOT_EXTERNAL_NAME: Final = "may not be set for ExternalName services"


def validate_service(new: Object, old: Object | None) -> list[FieldError]:
    spec = Scope(new, old).inside("spec")
    address, is_name = spec.get("clusterIP"), _is_external_name(spec)
    if not is_name and (errors := list(check_cluster_addresses(spec))):
        return errors
    if old is None and _is_out_of_range(address):
        message = f"failed to allocate IP {address}: the provided network does not match the current range"
        return [spec.invalid("clusterIPs", message, spec.get("clusterIPs") or [])]
    errors = apply(_SERVICE, spec)
    if spec.old is not None and not is_name and spec.old_value("type") != "ExternalName":
        errors += _check_immutable_load_balancer_class(spec)
        old_addresses = spec.old_value("clusterIPs")
        if old_addresses and (spec.get("clusterIPs") or []) != old_addresses:
            message = "may not change once set"
            return [*errors, spec.invalid("clusterIPs[0]", message, spec.get("clusterIPs") or [])]
    return errors or apply(_NODE_PORT_RANGE, spec)


def _is_external_name(spec: Scope) -> bool:
    return bool(spec.get("type") == "ExternalName")


def _is_load_balancer(spec: Scope) -> bool:
    return bool(spec.get("type") == "LoadBalancer")


def _is_out_of_range(address: str | None) -> bool:
    """Return whether a cluster IP is outside the service range. A malformed address counts as inside."""
    try:
        return address not in (None, "None") and ipaddress.ip_address(str(address)) not in _RANGE
    except ValueError:
        return False


def _check_immutable_load_balancer_class(spec: Scope) -> Errors:
    """Reject a change of loadBalancerClass, and check the class again, as a real server does."""
    if not _is_load_balancer(spec):
        return
    assert spec.old is not None
    if spec.old_value("type") == "LoadBalancer" and spec.get("loadBalancerClass") != spec.old_value(
        "loadBalancerClass"
    ):
        yield spec.invalid("loadBalancerClass", "may not change once set")
    yield from _LOAD_BALANCER_CLASS(spec)


def _check_external_name(spec: Scope) -> Errors:
    if spec.get("clusterIPs") or spec.get("clusterIP"):
        yield spec.forbidden("clusterIPs", _NOT_EXTERNAL_NAME)
    for key in ("ipFamilies", "ipFamilyPolicy"):
        if spec.get(key):
            yield spec.forbidden(key, _NOT_EXTERNAL_NAME)
    name = spec.text("externalName").removesuffix(".")
    yield from spec.check("externalName", dns_subdomain, name) if name else [spec.required("externalName")]


def _check_unique_protocol_and_port(item: Scope) -> Errors:
    pair, seen_pairs = (item.get("protocol"), item.get("port")), item.notes.setdefault("pairs", set())
    if pair in seen_pairs:
        port_text = (
            f'{{"Name":"","Protocol":"{pair[0]}","AppProtocol":null,"Port":{pair[1]},"TargetPort":0,"NodePort":0}}'
        )
        yield FieldError("FieldValueDuplicate", item.path(), f"Duplicate value: {port_text}")
    seen_pairs.add(pair)


def _check_source_ranges(spec: Scope) -> Errors:
    ranges = spec.items("loadBalancerSourceRanges")
    if ranges and not _is_load_balancer(spec):
        yield spec.forbidden("LoadBalancerSourceRanges", _ONLY_BALANCED)
    for index, source_range in enumerate(ranges):
        yield from spec.check(f"LoadBalancerSourceRanges[{index}]", cidr, source_range)


def _check_headless(spec: Scope) -> Errors:
    if spec.get("clusterIP") == "None" and spec.get("type") in ("LoadBalancer", "NodePort"):
        yield spec.invalid("clusterIPs[0]", f"may not be set to 'None' for {spec.get('type')} services", "None")


def _check_node_port(number: int) -> Iterable[str]:
    message = "provided port is not in the valid range. The range of valid ports is 30000-32767"
    return () if 30000 <= number <= 32767 else (message,)


_LOAD_BALANCER_CLASS: Final = field("loadBalancerClass").check(qualified_name)
_SERVICE: Final = (
    field("ports").required_if({"clusterIP": Not(["None"]), "type": Not(["ExternalName"]), "ports": EMPTY}),
    _check_headless,
    when({"type": "ExternalName"}, _check_external_name),
    each(
        "ports",
        field("name").required_if(lambda item: not item.get("name") and len(item.parent.items("ports")) > 1),
        field("name").optional(dns_label).unique(skip_empty=True),
        field("port").check(port, zero=0),
        field("protocol").enum(*PROTOCOLS, always=True),
        field("targetPort").check(port, zero=0),
    ),
    each("ports", _check_unique_protocol_and_port),
    check_labels("selector"),
    field("sessionAffinity").enum("ClientIP", "None"),
    field("type").enum("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"),
    when(
        {"sessionAffinity": "ClientIP"},
        field(_TIMEOUT).between(1, _DAY, f"must be greater than 0 and less than {_DAY}"),
    ),
    field("externalIPs").values(ip_address),
    when(
        {"type": "ClusterIP"},
        each(
            "ports",
            field("nodePort").forbidden_if({"nodePort": NOT_EMPTY}, "may not be used when `type` is 'ClusterIP'"),
        ),
    ),
    each("ports", field("appProtocol").check(qualified_name)),
    _check_source_ranges,
    when(
        {"type": Not(["LoadBalancer"])},
        field("allocateLoadBalancerNodePorts").forbidden_if({"allocateLoadBalancerNodePorts": SET}, _ONLY_BALANCED),
        field("loadBalancerClass").forbidden_if({"loadBalancerClass": SET}, _ONLY_BALANCED),
    ),
    field("externalTrafficPolicy").invalid_if(
        {"externalTrafficPolicy": SET, "type": Not(["NodePort", "LoadBalancer"]), "externalIPs": EMPTY},
        "may only be set for externally-accessible services",
    ),
    field("healthCheckNodePort").invalid_if(
        lambda spec: (
            spec.get("healthCheckNodePort")
            and (spec.get("type"), spec.get("externalTrafficPolicy")) != ("LoadBalancer", "Local")
        ),
        "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
    ),
    _LOAD_BALANCER_CLASS,
    field("externalTrafficPolicy", "internalTrafficPolicy").enum("Cluster", "Local"),
    field("trafficDistribution").enum("PreferClose", "PreferSameZone", "PreferSameNode"),
)
_NODE_PORT_RANGE: Final = (  # a real server allocates ports only if nothing else is wrong
    each("ports", field("nodePort").optional(_check_node_port)),
)


def find_service_warnings(new: Object, old: Object | None) -> list[str]:
    spec = new["spec"]
    is_name, has_external_ips = spec.get("type") == "ExternalName", bool(spec.get("externalIPs"))
    is_headless = spec.get("clusterIP") == "None"
    has_affinity = spec.get("sessionAffinity") not in (None, "None")
    warnings = {
        "spec.loadBalancerIP is ignored for headless services": is_headless and spec.get("loadBalancerIP"),
        "spec.externalIPs is ignored for headless services": is_headless and has_external_ips,
        "spec.SessionAffinity is ignored for headless services": is_headless and has_affinity,
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters": has_external_ips
        and not is_headless
        and not is_name,
        'spec.externalIPs is ignored when spec.type is "ExternalName"': has_external_ips and is_name,
        'spec.externalName is ignored when spec.type is not "ExternalName"': spec.get("externalName") and not is_name,
        'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"': spec.get("trafficDistribution")
        == "PreferClose",
    }
    return [warning for warning, is_applicable in warnings.items() if is_applicable]
