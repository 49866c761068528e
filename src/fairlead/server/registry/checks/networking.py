"""Services, EndpointSlices, Ingresses and NetworkPolicies."""

import ipaddress
from typing import Any, Final

from fairlead.server import causes
from fairlead.server.causes import Cause
from fairlead.server.registry.checks.vocabulary import (
    PROTOCOLS,
    Object,
    label,
    one_of,
    port,
    selector,
    subdomain,
    unchanged,
)

_FAMILIES: Final = ("IPv4", "IPv6", "FQDN")
_PATHS: Final = ("Exact", "Prefix", "ImplementationSpecific")
_RANGE: Final = ipaddress.ip_network("10.0.0.0/8")
_IP: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def service(new: Object, old: Object | None) -> list[Cause]:
    spec = new["spec"]
    found: list[Cause] = []
    kind, address = spec.get("type"), spec.get("clusterIP")
    addresses = spec.get("clusterIPs") or []
    if kind == "ExternalName":
        return found if spec.get("externalName") else [causes.required("spec.externalName")]
    if old is None and (outside := _outside(address)):
        return [causes.invalid("spec.clusterIPs", addresses, f"failed to allocate IP {address}: {outside}")]
    if address == "None" and kind != "ClusterIP":
        told = f"may not be set to 'None' for {kind} services"
        found.append(causes.invalid("spec.clusterIPs[0]", "None", told))
    if address != "None" and not spec.get("ports"):
        found.append(causes.required("spec.ports"))
    found += _ports(spec)
    if old is not None and old["spec"].get("type") != "ExternalName":
        was = old["spec"].get("clusterIPs") or []
        if addresses and address != addresses[0]:
            return [*found, causes.invalid("spec.clusterIPs", addresses, "first value must match `clusterIP`")]
        if was and addresses != was:
            return [*found, causes.invalid("spec.clusterIPs[0]", addresses, "may not change once set")]
        if spec.get("ipFamilies") != old["spec"].get("ipFamilies"):
            extra = [(i, f) for i, f in enumerate(spec.get("ipFamilies") or ()) if f != "IPv4"]
            told = "not configured on this cluster"
            found += [causes.invalid(f"spec.ipFamilies[{index}]", family, told) for index, family in extra]
    return found


def service_warnings(new: Object, old: Object | None) -> list[str]:
    spec = new["spec"]
    if spec.get("clusterIP") == "None" and spec.get("sessionAffinity") not in (None, "None"):
        return ["spec.SessionAffinity is ignored for headless services"]
    return []


def _outside(address: str | None) -> str:
    """Why an address cannot be a Service's; the range is the one that addresses are made from."""
    try:
        inside = address in (None, "None") or ipaddress.ip_address(str(address)) in _RANGE
    except ValueError:
        return ""  # told as a wrong value
    return "" if inside else "the provided network does not match the current range"


def _ports(spec: Object) -> list[Cause]:
    found: list[Cause] = []
    ports = spec.get("ports") or []
    seen: set[tuple[Any, Any]] = set()
    named: set[str] = set()
    for index, one in enumerate(ports):
        here, name = f"spec.ports[{index}]", one.get("name") or ""
        if len(ports) > 1 and not name:
            found.append(causes.required(f"{here}.name"))
        if name:
            found += label(f"{here}.name", name)
            if name in named:
                found.append(causes.duplicate(f"{here}.name", name))
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
            found.append(Cause("FieldValueDuplicate", f"spec.ports[{index}]", f"Duplicate value: {shown}"))
        seen.add(key)
    return found


def endpoint_slice(new: Object, old: Object | None) -> list[Cause]:
    if old is not None and new.get("addressType") != old.get("addressType"):
        return unchanged(new, old, "addressType")
    kind = new.get("addressType")
    found: list[Cause] = []
    if not kind:
        found.append(causes.required("addressType"))
    else:
        found += one_of("addressType", kind, _FAMILIES)
    for index, one in enumerate(new.get("ports") or ()):
        found += one_of(f"ports[{index}].protocol", one.get("protocol"), PROTOCOLS)
    for index, endpoint in enumerate(new.get("endpoints") or ()):
        here, addresses = f"endpoints[{index}].addresses", endpoint.get("addresses") or []
        if not addresses:
            found.append(causes.required(here, "must contain at least 1 address"))
        for at, address in enumerate(addresses):
            if kind == "FQDN":
                found += subdomain(f"{here}[{at}]", address)
            elif kind in ("IPv4", "IPv6"):
                found += _family(f"{here}[{at}]", address, kind)
    return found


def _family(field: str, address: str, kind: str) -> list[Cause]:
    try:
        version = ipaddress.ip_address(address).version
    except ValueError:
        return [causes.invalid(field, address, _IP)]
    return [] if kind == f"IPv{version}" else [causes.invalid(field, address, f"must be an {kind} address")]


def ingress(new: Object, old: Object | None) -> list[Cause]:
    spec = new["spec"]
    found: list[Cause] = []
    if not spec.get("rules") and not spec.get("defaultBackend"):
        found.append(causes.invalid("spec", None, "either `defaultBackend` or `rules` must be specified"))
    for index, rule in enumerate(spec.get("rules") or ()):
        here, host = f"spec.rules[{index}]", rule.get("host") or ""
        if host:
            found += subdomain(f"{here}.host", host.removeprefix("*."))
        for at, one in enumerate((rule.get("http") or {}).get("paths") or ()):
            place, kind = f"{here}.http.paths[{at}]", one.get("pathType")
            if not kind:
                found.append(causes.required(f"{place}.pathType", "pathType must be specified"))
                continue
            found += one_of(f"{place}.pathType", kind, _PATHS)
            path = one.get("path") or ""
            if kind in ("Exact", "Prefix") and not path.startswith("/"):
                found.append(causes.invalid(f"{place}.path", path, "must be an absolute path"))
    return found


def network_policy(new: Object, old: Object | None) -> list[Cause]:
    spec = new["spec"]
    found = selector("spec.podSelector", spec.get("podSelector"))
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            here = f"spec.{direction}[{index}]"
            for at, one in enumerate(rule.get("ports") or ()):
                found += one_of(f"{here}.ports[{at}].protocol", one.get("protocol"), PROTOCOLS)
                if one.get("port") is not None:
                    found += port(f"{here}.ports[{at}].port", one["port"])
            for at, peer in enumerate(rule.get(peers) or ()):
                found += _peer(peer, f"{here}.{peers}[{at}]")
    for index, kind in enumerate(spec.get("policyTypes") or ()):
        found += one_of(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress"))
    return found


def _peer(peer: Object, path: str) -> list[Cause]:
    if not peer:
        return [causes.required(path, "must specify a peer")]
    found: list[Cause] = []
    for key in ("podSelector", "namespaceSelector"):
        found += selector(f"{path}.{key}", peer.get(key))
    block = peer.get("ipBlock")
    if block is not None:
        if len(peer) > 1:
            told = "may not specify both ipBlock and another peer"
            found.append(causes.forbidden(path, told))
        try:
            if "/" not in (block.get("cidr") or ""):
                raise ValueError
            ipaddress.ip_network(block["cidr"], strict=False)
        except ValueError:
            found.append(causes.invalid(f"{path}.ipBlock.cidr", block.get("cidr") or "", _CIDR))
    return found
