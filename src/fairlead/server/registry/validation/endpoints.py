"""Endpoints: the older list of a Service's addresses."""

import ipaddress
import re
from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.rules import words
from fairlead.server.registry.validation.vocabulary import PROTOCOLS, Object, address, label, port, qualified
from fairlead.server.write import names

DEPRECATED: Final = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
_BEYOND: Final = (  # what no address of an endpoint may be
    ("is_loopback", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
    ("is_link_local", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
)
_LINK_LOCAL: Final = (ipaddress.ip_network("224.0.0.0/24"), ipaddress.ip_network("ff02::/16"))
_ADDRESS: Final = (words("hostname", names.label), words("nodeName", names.subdomain))


def endpoints(new: Object, old: Object | None) -> list[FieldError]:
    if old is not None and new.get("subsets") == old.get("subsets"):
        return []
    found: list[FieldError] = []
    for index, subset in enumerate(new.get("subsets") or ()):
        here = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            found.append(field_errors.required(here, "must specify `addresses` or `notReadyAddresses`"))
        for key in ("addresses", "notReadyAddresses"):
            for place, given in enumerate(subset.get(key) or ()):
                found += _address(f"{here}.{key}[{place}]", given)
        ports = subset.get("ports") or []
        for place, given in enumerate(ports):
            found += _port(f"{here}.ports[{place}]", given, named=len(ports) > 1)
    return found


def _address(path: str, given: Object) -> list[FieldError]:
    text = given.get("ip") or ""
    found = address(f"{path}.ip", text)
    for rule in _ADDRESS:
        found += rule(given, None, path)
    plain = re.sub(r"(?<!\d)0+(?=\d)", "", text) if "." in text else text
    try:
        parsed = ipaddress.ip_address(plain.replace("%", " "))
    except ValueError:
        return [*found, field_errors.invalid(f"{path}.ip", text, "must be a valid IP address")]
    return found + reachable(f"{path}.ip", text, parsed)


def reachable(field: str, text: str, parsed: ipaddress.IPv4Address | ipaddress.IPv6Address) -> list[FieldError]:
    """An address that means the same to everybody: none of the host's or the link's own."""
    found: list[FieldError] = []
    if parsed.is_unspecified:
        found.append(field_errors.invalid(field, text, f"may not be unspecified ({text})"))
    found += [field_errors.invalid(field, text, told) for beyond, told in _BEYOND if getattr(parsed, beyond)]
    if any(parsed in multicast for multicast in _LINK_LOCAL if multicast.version == parsed.version):
        told = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        found.append(field_errors.invalid(field, text, told))
    return found


def _port(path: str, given: Object, *, named: bool) -> list[FieldError]:
    name, protocol = given.get("name") or "", given.get("protocol") or ""
    found = (
        [field_errors.required(f"{path}.name")] if named and not name else label(f"{path}.name", name) if name else []
    )
    found += port(f"{path}.port", given.get("port"))
    if protocol not in PROTOCOLS:
        wrong = field_errors.not_supported(f"{path}.protocol", protocol, PROTOCOLS)
        found.append(wrong if protocol else field_errors.required(f"{path}.protocol"))
    return found + (qualified(f"{path}.appProtocol", given["appProtocol"]) if "appProtocol" in given else [])
