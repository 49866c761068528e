"""Validation of ServiceCIDRs and IPAddresses."""

import ipaddress
from typing import Final

from fairlead.server.errors.field_errors import FieldError
from fairlead.server.golang.encoding import encode
from fairlead.server.registry.validation.formats import cidr
from fairlead.server.registry.validation.rules import IMMUTABLE, Errors, Scope, build_validator, inside

_ONE_PER_FAMILY: Final = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
_PARENT_FIELDS: Final = ("group", "resource", "namespace", "name")


def _check_parent(spec: Scope) -> Errors:
    parent = spec.get("parentRef")
    if parent is None:
        yield spec.required("parentRef")
        return
    for key in ("resource", "name"):
        if not parent.get(key):
            yield spec.required(f"parentRef.{key}")
    if spec.old is not None and parent != spec.old.get("parentRef"):
        shown = encode({key.capitalize(): parent.get(key) or "" for key in _PARENT_FIELDS}).decode()
        # The fields keep the order of the Go type.
        yield FieldError("FieldValueInvalid", spec.path("parentRef"), f"Invalid value: {shown}: {IMMUTABLE}")


def _check_ranges(spec: Scope) -> Errors:
    ranges = spec.items("cidrs")
    if spec.old is not None:
        for index, (text, before) in enumerate(zip(ranges, spec.old.get("cidrs") or (), strict=False)):
            if text != before:
                yield spec.invalid(f"cidrs[{index}]", IMMUTABLE, text)
        return
    if not ranges:
        yield spec.required("cidrs", "at least one CIDR required")
    if len(ranges) > 2:
        yield spec.invalid("cidrs", "may only hold up to 2 values", {"CIDRs": list(ranges)})
        return
    errors = [error for index, text in enumerate(ranges) for error in spec.check(f"cidrs[{index}]", cidr, text)]
    yield from errors
    if not errors and len({ipaddress.ip_network(text).version for text in ranges}) < len(ranges):
        yield spec.invalid("cidrs", _ONE_PER_FAMILY)


address: Final = build_validator(inside("spec", _check_parent, always=True))
service_range: Final = build_validator(inside("spec", _check_ranges, always=True))
