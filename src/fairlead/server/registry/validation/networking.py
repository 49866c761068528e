"""EndpointSlices, Ingresses and NetworkPolicies."""

import ipaddress
from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.endpoints import reachable
from fairlead.server.registry.validation.rules import checks, choice, each, fixed, inside, needed, value, words
from fairlead.server.registry.validation.vocabulary import (
    PROTOCOLS,
    Object,
    address,
    block,
    label,
    one_of,
    port,
    port_name,
    qualified,
    selector,
    subdomain,
)
from fairlead.server.write import names

_HINTED: Final = 8
_FAMILIES: Final = ("FQDN", "IPv4", "IPv6")
_PATHS: Final = ("Exact", "ImplementationSpecific", "Prefix")


def _addresses(new: Object, old: Object | None, path: str) -> list[FieldError]:
    kind = new.get("addressType")
    found: list[FieldError] = []
    for index, endpoint in enumerate(new.get("endpoints") or ()):
        here, addresses = f"endpoints[{index}]", endpoint.get("addresses") or []
        if not addresses:
            found.append(field_errors.required(f"{here}.addresses", "must contain at least 1 address"))
        for place, given in enumerate(addresses):
            if kind == "FQDN":
                found += _domain(f"{here}.addresses[{place}]", given)
            elif kind in ("IPv4", "IPv6"):
                found += _family(f"{here}.addresses", place, given, kind)
        found += value("hostname", label)(endpoint, None, here) + value("nodeName", subdomain)(endpoint, None, here)
        found += _hints(endpoint.get("hints") or {}, f"{here}.hints")
    return found


def _hints(given: Object, path: str) -> list[FieldError]:
    """Who should use an endpoint: zones and nodes, few and each once."""
    found: list[FieldError] = []
    for key, rule in (("forZones", names.label_value), ("forNodes", names.subdomain)):
        named = [one.get("name") or "" for one in given.get(key) or ()]
        if len(named) > _HINTED:
            found.append(field_errors.too_many(f"{path}.{key}", len(named), _HINTED))
            continue
        for index, name in enumerate(named):
            field = f"{path}.{key}[{index}].name"
            found += [field_errors.invalid(field, name, told) for told in rule(name)]
            if name in named[:index]:
                found.append(field_errors.duplicate(field, name))
    return found


def _slice_ports(new: Object, old: Object | None, path: str) -> list[FieldError]:
    ports = [one.get("name") or "" for one in new.get("ports") or ()]
    found: list[FieldError] = []
    for index, name in enumerate(ports):
        wrong = label(f"ports[{index}].name", name) if name else []
        found += wrong
        if name in ports[:index] and not wrong:
            found.append(field_errors.duplicate(f"ports[{index}].name", name))
    return found


def slice_warnings(new: Object, old: Object | None) -> list[str]:
    return ["spec.addressType: FQDN endpoints are deprecated"] if new.get("addressType") == "FQDN" else []


_SLICE: Final = (
    needed("addressType"),
    value("addressType", lambda field, kind: one_of(field, kind, _FAMILIES) if kind else []),
    _slice_ports,
    each("ports", choice("protocol", PROTOCOLS, always=True), value("appProtocol", qualified)),
    _addresses,
)


def endpoint_slice(new: Object, old: Object | None) -> list[FieldError]:
    """A slice whose kind of addresses changed is told of that alone."""
    moved = fixed("addressType", empty="")(new, old, "")
    return [cause for rule in (_SLICE[:2] if moved else _SLICE) for cause in rule(new, None, "")] + moved


def _family(field: str, index: int, given: str, kind: str) -> list[FieldError]:
    here = f"{field}[{index}]"
    if wrong := address(here, given):
        return wrong
    parsed = ipaddress.ip_address(given)
    if str(parsed) != given:
        return [field_errors.invalid(here, given, f'must be in canonical form ("{parsed}")')]
    wrong = [] if kind == f"IPv{parsed.version}" else [field_errors.invalid(field, given, f"must be an {kind} address")]
    return wrong + reachable(here, given, parsed)


def _domain(field: str, given: str) -> list[FieldError]:
    if not given:
        return [field_errors.required(field)]
    name = given.removesuffix(".")
    if wrong := subdomain(field, name):
        return wrong
    parts = name.split(".")
    if len(parts) < 2:
        return [field_errors.invalid(field, name, "should be a domain with at least two segments separated by dots")]
    return next((wrong for part in parts if (wrong := label(field, part))), [])


def _host(field: str, host: str) -> list[FieldError]:
    if not host:
        return []
    if not address(field, host):
        return [field_errors.invalid(field, host, "must be a DNS name, not an IP address")]
    return subdomain(field, host.removeprefix("*."))


_OTHER: Final = (  # what is not a Service
    value("apiGroup", subdomain),
    needed("kind"),
    words("kind", names.path_segment),
    needed("name"),
    words("name", names.path_segment),
)


def _backend(backend: Object, old: Object | None, path: str) -> list[FieldError]:
    service, other = backend.get("service"), backend.get("resource")
    if service is not None and other is not None:
        return [field_errors.invalid(path, "", "cannot set both resource and service backends")]
    if other is not None:
        return [cause for rule in _OTHER for cause in rule(other, None, f"{path}.resource")]
    if service is None:
        return [field_errors.invalid(path, "", "resource or service backend is required")]
    name, given = service.get("name") or "", service.get("port") or {}
    found = label(f"{path}.service.name", name) if name else [field_errors.required(f"{path}.service.name")]
    if given.get("name") and given.get("number"):
        found.append(field_errors.invalid(path, "", "cannot set both port name & port number"))
    elif given.get("number"):
        found += port(f"{path}.service.port.number", given["number"])
    elif given.get("name"):
        found += [
            field_errors.invalid(f"{path}.service.port.name", given["name"], told) for told in port_name(given["name"])
        ]
    else:
        found.append(field_errors.required(path, "port name or number is required"))
    return found


def _path(one: Object, old: Object | None, path: str) -> list[FieldError]:
    kind, text = one.get("pathType"), one.get("path") or ""
    if kind is None:
        return [field_errors.required(f"{path}.pathType", "pathType must be specified")]
    found: list[FieldError] = []
    if kind in ("Exact", "Prefix"):
        if not text.startswith("/"):
            found.append(field_errors.invalid(f"{path}.path", text, "must be an absolute path"))
        odd = [part for part in ("//", "/./", "/../", "%2f", "%2F") if part in text]
        found += [field_errors.invalid(f"{path}.path", text, f"must not contain '{part}'") for part in odd]
        ends = [end for end in ("/..", "/.") if text.endswith(end)]
        found += [field_errors.invalid(f"{path}.path", text, f"cannot end with '{end}'") for end in ends]
    elif kind == "ImplementationSpecific" and text and not text.startswith("/"):
        found.append(field_errors.invalid(f"{path}.path", text, "must be an absolute path"))
    found += one_of(f"{path}.pathType", kind, _PATHS)
    return found + inside("backend", _backend, always=True)(one, None, path)


def _somewhere(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    if spec.get("rules") or spec.get("defaultBackend") is not None:
        return []
    return [field_errors.invalid(path, None, "either `defaultBackend` or `rules` must be specified")]


def _hosts(field: str, hosts: list[str]) -> list[FieldError]:
    return [cause for at, host in enumerate(hosts) for cause in subdomain(f"{field}[{at}]", host.removeprefix("*."))]


ingress: Final = checks(
    inside(
        "spec",
        _somewhere,
        inside("defaultBackend", _backend),
        each("rules", value("host", _host), inside("http", needed("paths"), each("paths", _path))),
        each("tls", value("hosts", _hosts), words("secretName", names.subdomain)),
        value("ingressClassName", subdomain),
        always=True,
    ),
)


def ingress_warnings(new: Object, old: Object | None) -> list[str]:
    key = "kubernetes.io/ingress.class"
    told = f"annotation \"{key}\" is deprecated, please use 'spec.ingressClassName' instead"
    return [told] if old is None and key in (new["metadata"].get("annotations") or {}) else []


def network_policy(new: Object, old: Object | None) -> list[FieldError]:
    spec = new["spec"]
    found = selector("spec.podSelector", spec.get("podSelector"))
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            here = f"spec.{direction}[{index}]"
            for place, one in enumerate(rule.get("ports") or ()):
                found += one_of(f"{here}.ports[{place}].protocol", one.get("protocol"), ("TCP", "UDP", "SCTP"))
                if one.get("port") is not None:
                    found += port(f"{here}.ports[{place}].port", one["port"])
                found += _end_port(one, f"{here}.ports[{place}].endPort")
            for place, peer in enumerate(rule.get(peers) or ()):
                found += _peer(peer, f"{here}.{peers}[{place}]")
    if len(spec.get("policyTypes") or ()) > 2:
        told = "may not specify more than two policyTypes"
        return [*found, field_errors.invalid("spec.policyTypes", spec["policyTypes"], told)]
    for index, kind in enumerate(spec.get("policyTypes") or ()):
        found += one_of(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress"))
    return found


def _end_port(one: Object, field: str) -> list[FieldError]:
    last, first = one.get("endPort"), one.get("port")
    if last is None:
        return []
    if first is None:
        return [field_errors.invalid(field, last, "may not be specified when `port` is not specified")]
    if isinstance(first, str):
        return [field_errors.invalid(field, last, "may not be specified when `port` is non-numeric")]
    found = [field_errors.invalid(field, first, "must be greater than or equal to `port`")] if last < first else []
    return found + port(field, last)


def _peer(peer: Object, path: str) -> list[FieldError]:
    if not peer:
        return [field_errors.required(path, "must specify a peer")]
    found: list[FieldError] = []
    for key in ("podSelector", "namespaceSelector"):
        found += selector(f"{path}.{key}", peer.get(key))
    given = peer.get("ipBlock")
    if given is None:
        return found
    if len(peer) > 1:
        found.append(field_errors.forbidden(path, "may not specify both ipBlock and another peer"))
    if not given.get("cidr"):
        return [*found, field_errors.required(f"{path}.ipBlock.cidr")]
    if wrong := block(f"{path}.ipBlock.cidr", given["cidr"]):
        return found + wrong
    whole = ipaddress.ip_network(given["cidr"])
    for index, text in enumerate(given.get("except") or ()):
        here = f"{path}.ipBlock.except[{index}]"
        if wrong := block(here, text):
            found += wrong
        elif not _within(text, whole):
            found.append(field_errors.invalid(here, text, "must be a strict subset of `cidr`"))
    return found


def _within(text: str, whole: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    part = ipaddress.ip_network(text)
    return part.version == whole.version and part.prefixlen > whole.prefixlen and part.network_address in whole
