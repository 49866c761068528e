"""Services of a single-stack IPv4 cluster."""

import ipaddress
from typing import Any, Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.addresses import unallocatable
from fairlead.server.registry.validation.rules import checks, choice, each, inside, value
from fairlead.server.registry.validation.vocabulary import (
    PROTOCOLS,
    Object,
    address,
    at,
    block,
    label,
    labels,
    one_of,
    port,
    qualified,
    subdomain,
)

_RANGE: Final = ipaddress.ip_network("10.0.0.0/8")


def service(new: Object, old: Object | None) -> list[FieldError]:
    spec = new["spec"]
    found: list[FieldError] = []
    kind, own = spec.get("type"), spec.get("clusterIP")
    addresses = spec.get("clusterIPs") or []
    if kind != "ExternalName" and (found := unallocatable(spec, old["spec"] if old else None)):
        return found
    if old is None and (outside := _outside(own)):
        return [field_errors.invalid("spec.clusterIPs", addresses, f"failed to allocate IP {own}: {outside}")]
    if own != "None" and kind != "ExternalName" and not spec.get("ports"):
        found.append(field_errors.required("spec.ports"))
    if own == "None" and kind in ("LoadBalancer", "NodePort"):
        told = f"may not be set to 'None' for {kind} services"
        found.append(field_errors.invalid("spec.clusterIPs[0]", "None", told))
    if kind == "ExternalName":
        found += _external_name(spec)
    found += _ports(spec) + _SERVICE(new, old)
    if old is not None and "ExternalName" not in (kind, old["spec"].get("type")):
        found += _class_kept(spec, old["spec"])
        was = old["spec"].get("clusterIPs") or []
        if was and addresses != was:
            return [*found, field_errors.invalid("spec.clusterIPs[0]", addresses, "may not change once set")]
    return found or _out_of_range(spec)


def _class_kept(spec: Object, old: Object) -> list[FieldError]:
    """A load balancer stays with its class, which is looked at again."""
    given, field = spec.get("loadBalancerClass"), "spec.loadBalancerClass"
    if spec.get("type") != "LoadBalancer":
        return []
    moved = old.get("type") == "LoadBalancer" and given != old.get("loadBalancerClass")
    found = [field_errors.invalid(field, given, "may not change once set")] if moved else []
    return found + (qualified(field, given) if given is not None else [])


def _out_of_range(spec: Object) -> list[FieldError]:
    """What cannot be allocated, which is found only where nothing else is wrong."""
    given = [(index, one["nodePort"]) for index, one in enumerate(spec.get("ports") or ()) if one.get("nodePort")]
    told = "provided port is not in the valid range. The range of valid ports is 30000-32767"
    return [
        field_errors.invalid(f"spec.ports[{i}].nodePort", port, told) for i, port in given if not 30000 <= port <= 32767
    ]


def _external_name(spec: Object) -> list[FieldError]:
    own = {**spec, "clusterIPs": spec.get("clusterIPs") or spec.get("clusterIP")}
    given = [key for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy") if own.get(key)]
    found = [field_errors.forbidden(f"spec.{key}", "may not be set for ExternalName services") for key in given]
    name = (spec.get("externalName") or "").removesuffix(".")
    return found + (subdomain("spec.externalName", name) if name else [field_errors.required("spec.externalName")])


def _affinity_time(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    seconds = at(spec, "sessionAffinityConfig.clientIP.timeoutSeconds")
    if spec.get("sessionAffinity") != "ClientIP" or seconds is None or 0 < seconds <= _DAY:
        return []
    told = f"must be greater than 0 and less than {_DAY}"
    return [field_errors.invalid(f"{path}.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, told)]


def _node_ports(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    if spec.get("type") != "ClusterIP":
        return []
    given = [index for index, one in enumerate(spec.get("ports") or ()) if one.get("nodePort")]
    told = "may not be used when `type` is 'ClusterIP'"
    return [field_errors.forbidden(f"{path}.ports[{index}].nodePort", told) for index in given]


def _balanced(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    """What only Services that are reached from outside may say."""
    found: list[FieldError] = []
    balanced, only = spec.get("type") == "LoadBalancer", "may only be used when `type` is 'LoadBalancer'"
    if spec.get("loadBalancerSourceRanges") and not balanced:
        found.append(field_errors.forbidden(f"{path}.LoadBalancerSourceRanges", only))
    for index, text in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        found += block(f"{path}.LoadBalancerSourceRanges[{index}]", text)
    for key in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
        if spec.get(key) is not None and not balanced:
            found.append(field_errors.forbidden(f"{path}.{key}", only))
    policy, outside = spec.get("externalTrafficPolicy"), spec.get("type") in ("NodePort", "LoadBalancer")
    if policy is not None and not outside and not spec.get("externalIPs"):
        told = "may only be set for externally-accessible services"
        found.append(field_errors.invalid(f"{path}.externalTrafficPolicy", policy, told))
    check = spec.get("healthCheckNodePort")
    if check and not (balanced and policy == "Local"):
        told = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        found.append(field_errors.invalid(f"{path}.healthCheckNodePort", check, told))
    return found


def _outer_addresses(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    given = enumerate(spec.get("externalIPs") or ())
    return [cause for i, text in given for cause in address(f"{path}.externalIPs[{i}]", text)]


_DAY: Final = 86400
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_SERVICE: Final = checks(
    inside(
        "spec",
        value("selector", labels),
        choice("sessionAffinity", ("ClientIP", "None")),
        choice("type", _TYPES),
        _affinity_time,
        _outer_addresses,
        _node_ports,
        each("ports", value("appProtocol", qualified)),
        _balanced,
        value("loadBalancerClass", qualified),
        choice("externalTrafficPolicy", ("Cluster", "Local")),
        choice("internalTrafficPolicy", ("Cluster", "Local")),
        choice("trafficDistribution", _DISTRIBUTIONS),
    ),
)


def service_warnings(new: Object, old: Object | None) -> list[str]:
    spec, found = new["spec"], []
    headless = "is ignored for headless services"
    if spec.get("clusterIP") == "None":
        found += [f"spec.{key} {headless}" for key in ("loadBalancerIP", "externalIPs") if spec.get(key)]
        found += [f"spec.SessionAffinity {headless}"] if spec.get("sessionAffinity") not in (None, "None") else []
    elif spec.get("externalIPs") and spec.get("type") != "ExternalName":
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("externalIPs") and spec.get("type") == "ExternalName":
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if spec.get("type") != "ExternalName" and spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found


def _outside(own: str | None) -> str:
    """Why an address cannot be a Service's; the range is the one that addresses are made from."""
    try:
        inside = own in (None, "None") or ipaddress.ip_address(str(own)) in _RANGE
    except ValueError:
        return ""  # told as a wrong value
    return "" if inside else "the provided network does not match the current range"


def _ports(spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    ports = spec.get("ports") or []
    seen: set[tuple[Any, Any]] = set()
    named: set[str] = set()
    for index, one in enumerate(ports):
        here, name = f"spec.ports[{index}]", one.get("name") or ""
        if len(ports) > 1 and not name:
            found.append(field_errors.required(f"{here}.name"))
        if name:
            found += label(f"{here}.name", name)
            if name in named:
                found.append(field_errors.duplicate(f"{here}.name", name))
            named.add(name)
        found += port(f"{here}.port", one.get("port"))
        found += one_of(f"{here}.protocol", one.get("protocol"), PROTOCOLS)
        found += port(f"{here}.targetPort", one.get("targetPort"))
    for index, one in enumerate(ports):
        key = one.get("protocol"), one.get("port")
        if key in seen:
            shown = (
                f'{{"Name":"","Protocol":"{key[0]}","AppProtocol":null,"Port":{key[1]},"TargetPort":0,"NodePort":0}}'
            )
            found.append(FieldError("FieldValueDuplicate", f"spec.ports[{index}]", f"Duplicate value: {shown}"))
        seen.add(key)
    return found
