"""Validation of Endpoints and EndpointSlices."""

import ipaddress
from collections.abc import Iterable
from typing import Final

from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.formats import (
    PROTOCOLS,
    dns_label,
    dns_subdomain,
    endpoint_address,
    ip_address,
    label_value,
    parse_address,
    port,
    qualified_name,
    strip_leading_zeros,
)
from fairlead.server.registry.validation.rules import (
    EMPTY,
    Check,
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
    when,
)

DEPRECATED: Final = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
_MAX_HINTS: Final = 8


def _check_address(address: Scope) -> Errors:
    address_text = address.text("ip")
    yield from address.check("ip", ip_address, address_text)
    yield from apply(_HOST, address)
    parsed = parse_address(strip_leading_zeros(address_text))
    if parsed is None:
        yield address.invalid("ip", "must be a valid IP address", address_text)
    else:
        yield from address.check("ip", lambda address_text: endpoint_address(address_text, parsed), address_text)


_HOST: Final = (field("hostname").optional(dns_label), field("nodeName").optional(dns_subdomain))
endpoints: Final = build_validator(
    when(
        lambda endpoints: endpoints.old is None or endpoints.get("subsets") != endpoints.old_value("subsets"),
        each(
            "subsets",
            field("").required_if(
                {"addresses": EMPTY, "notReadyAddresses": EMPTY}, "must specify `addresses` or `notReadyAddresses`"
            ),
            each("addresses", _check_address),
            each("notReadyAddresses", _check_address),
            each(
                "ports",
                field("name").required_if(lambda item: not item.get("name") and len(item.parent.items("ports")) > 1),
                field("name").optional(dns_label),
                field("port").check(port, zero=0),
                field("protocol").required_enum(*PROTOCOLS),
                field("appProtocol").check(qualified_name),
            ),
        ),
    )
)


def _check_domain_name(name: str) -> Iterable[str]:
    if messages := list(dns_subdomain(name)):
        return messages
    if "." not in name:
        return ("should be a domain with at least two segments separated by dots",)
    return ()


def _check_slice_address(endpoint: Scope, index: int, address: str, kind: str) -> Errors:
    key = f"addresses[{index}]"
    if kind == "FQDN":
        name = address.removesuffix(".")
        if not address:
            yield endpoint.required(key)
        elif errors := endpoint.check(key, _check_domain_name, name):
            yield from errors
        else:  # a real server shows the first wrong label alone
            parts = (endpoint.check(key, dns_label, part) for part in name.split("."))
            yield from next(filter(None, parts), [])
    elif kind in ("IPv4", "IPv6"):
        errors = endpoint.check(key, ip_address, address)
        yield from errors
        if errors:
            return
        parsed = ipaddress.ip_address(address)
        if str(parsed) != address:
            yield endpoint.invalid(key, f'must be in canonical form ("{parsed}")', address)
            return
        if kind != f"IPv{parsed.version}":
            yield endpoint.invalid("addresses", f"must be an {kind} address", address)
        yield from endpoint.check(key, lambda address: endpoint_address(address, parsed), address)


def _check_slice_addresses(endpoint: Scope) -> Errors:
    addresses, kind = endpoint.items("addresses"), endpoint.parent.get("addressType")
    if not addresses:
        yield endpoint.required("addresses", "must contain at least 1 address")
    for index, address in enumerate(addresses):
        yield from _check_slice_address(endpoint, index, address, kind)


def _check_hints(key: str, check: Check) -> Rule:
    """Return a rule for the zone or node hints of an endpoint."""
    items = each(key, field("name").check(check, zero=""), field("name").unique())

    def rule(hints: Scope) -> Errors:
        count = len(hints.items(key))
        return [hints.too_many(key, count, _MAX_HINTS)] if count > _MAX_HINTS else items(hints)

    return rule


_ADDRESS_TYPE: Final = field("addressType").required_enum("FQDN", "IPv4", "IPv6")
_SLICE: Final = (
    _ADDRESS_TYPE,
    each("ports", first_error(field("name").optional(dns_label), field("name").unique())),
    each("ports", field("protocol").enum(*PROTOCOLS, always=True), field("appProtocol").check(qualified_name)),
    each(
        "endpoints",
        _check_slice_addresses,
        field("hostname").check(dns_label),
        field("nodeName").check(dns_subdomain),
        inside("hints", _check_hints("forZones", label_value), _check_hints("forNodes", dns_subdomain)),
    ),
)
_IMMUTABLE: Final = field("addressType").immutable(zero="")


def validate_endpoint_slice(new: Object, old: Object | None) -> list[FieldError]:
    """Return the errors of an EndpointSlice. If its addressType changed, a real server reports only that."""
    scope = Scope(new, old)
    change = list(_IMMUTABLE(scope))
    return apply([_ADDRESS_TYPE] if change else _SLICE, scope) + change


def find_slice_warnings(new: Object, old: Object | None) -> list[str]:
    return ["spec.addressType: FQDN endpoints are deprecated"] if new.get("addressType") == "FQDN" else []
