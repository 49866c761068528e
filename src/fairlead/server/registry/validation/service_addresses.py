"""Validation of the cluster IPs and IP families of a Service, in a single-stack IPv4 cluster.

A real server validates these fields first: if they are wrong, it reports nothing else.
"""

import ipaddress
from typing import Final

from fairlead.server.registry.validation.formats import ip_address
from fairlead.server.registry.validation.rules import Errors, Rule, Scope, field, first_error

_FAMILIES: Final = ("IPv4", "IPv6")
_POLICY: Final = field("ipFamilyPolicy").enum("PreferDualStack", "RequireDualStack", "SingleStack")
_TWO: Final = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
_RELEASED: Final = "must be 'SingleStack' to release the secondary {}"


def check_cluster_addresses(spec: Scope) -> Errors:
    """Check clusterIPs and ipFamilies of a Service that is not of type ExternalName."""
    keys = ("type", "ipFamilyPolicy", "clusterIPs", "ipFamilies")
    is_unchanged = spec.old is not None and all(spec.get(key) == spec.old_value(key) for key in keys)
    return () if is_unchanged and spec.get("ipFamilyPolicy") == "PreferDualStack" else _STEPS(spec)


def _check_well_formed(spec: Scope) -> Errors:
    address, addresses, families = spec.get("clusterIP"), spec.items("clusterIPs"), spec.items("ipFamilies")
    if address and addresses and address != addresses[0]:
        yield spec.invalid("clusterIPs", "first value must match `clusterIP`")
    if not address and addresses:
        yield spec.invalid("clusterIPs", "must be empty when `clusterIP` is not specified")
    for index, family in enumerate(families):
        if family not in _FAMILIES:
            yield spec.not_supported(f"ipFamilies[{index}]", _FAMILIES, family)
        if family in families[:index]:
            yield spec.duplicate(f"ipFamilies[{index}]", family)
    yield from _POLICY(spec)
    is_valid = True
    for index, address_text in enumerate(addresses):
        if index or address_text != "None":
            errors = spec.check(f"clusterIPs[{index}]", ip_address, address_text)
            yield from errors
            is_valid = is_valid and not errors
        elif len(addresses) > 1:
            yield spec.invalid("clusterIPs", "'None' must be the first and only value")
            is_valid = False
    if len(addresses) > 2:
        yield spec.invalid("clusterIPs", "may only hold up to 2 values")
    if is_valid:
        yield from _check_one_address_per_family(spec)


def _check_one_address_per_family(spec: Scope) -> Errors:
    addresses = spec.items("clusterIPs")
    versions = [ipaddress.ip_address(address).version for address in addresses if address != "None"]
    if len(addresses) > 1 and len(set(versions)) < 2:
        yield spec.invalid("clusterIPs", "may specify no more than one IP for each IP family")
    for index, (version, family) in enumerate(zip(versions, spec.items("ipFamilies"), strict=False)):
        if family in _FAMILIES and family != f"IPv{version}":
            message = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield spec.invalid(f"clusterIPs[{index}]", message, addresses[index])


def _check_fits_policy(spec: Scope) -> Errors:
    policy, old = spec.get("ipFamilyPolicy"), spec.old or {}
    for key, singular, plural in (
        ("clusterIPs", "cluster IP", "cluster IPs"),
        ("ipFamilies", "IP family", "IP families"),
    ):
        count, old_count = len(spec.items(key)), len(old.get(key) or ())
        if policy == "SingleStack" and count == 2:
            yield spec.invalid("ipFamilyPolicy", _TWO.format(plural))
        elif policy != "SingleStack" and 0 < count < old_count:
            yield spec.invalid("ipFamilyPolicy", _RELEASED.format(singular))


def _check_fits_cluster(spec: Scope) -> Errors:
    """Reject IP families that the cluster lacks, except for headless Services without a selector."""
    if spec.get("clusterIP") == "None" and not spec.get("selector"):
        return
    if spec.get("ipFamilyPolicy") == "RequireDualStack":
        yield spec.invalid("ipFamilyPolicy", "this cluster is not configured for dual-stack services")
    for index, family in enumerate(spec.items("ipFamilies")):
        if family == "IPv6":
            yield spec.invalid(f"ipFamilies[{index}]", "not configured on this cluster", family)


_STEPS: Final[Rule] = first_error(_check_well_formed, _check_fits_policy, _check_fits_cluster)
