"""What the addresses of a Service are allocated by, in a single-stack IPv4 cluster.

It is looked at before anything else: where it is wrong, nothing else is told.
"""

import ipaddress
from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.vocabulary import Object, address, one_of

_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_BOTH: Final = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
_RELEASED: Final = "must be 'SingleStack' to release the secondary {}"


def unallocatable(spec: Object, before: Object | None) -> list[FieldError]:
    """Why a Service that has addresses of its own cannot have them; each step is told alone."""
    if before is not None and _prefers_as_before(spec, before):
        return []
    return _unrelated(spec) or _against_policy(spec, before or {}) or _not_here(spec)


def _prefers_as_before(spec: Object, before: Object) -> bool:
    keys = ("type", "ipFamilyPolicy", "clusterIPs", "ipFamilies")
    return spec.get("ipFamilyPolicy") == "PreferDualStack" and all(spec.get(key) == before.get(key) for key in keys)


def _unrelated(spec: Object) -> list[FieldError]:
    own, given = spec.get("clusterIP"), spec.get("clusterIPs") or []
    families, policy = spec.get("ipFamilies") or [], spec.get("ipFamilyPolicy")
    found: list[FieldError] = []
    if own and given and own != given[0]:
        found.append(field_errors.invalid("spec.clusterIPs", given, "first value must match `clusterIP`"))
    if not own and given:
        found.append(field_errors.invalid("spec.clusterIPs", given, "must be empty when `clusterIP` is not specified"))
    for index, family in enumerate(families):
        found += one_of(f"spec.ipFamilies[{index}]", family, ("IPv4", "IPv6"))
        if family in families[:index]:
            found.append(field_errors.duplicate(f"spec.ipFamilies[{index}]", family))
    if policy is not None:
        found += one_of("spec.ipFamilyPolicy", policy, _POLICIES)
    wrong: list[FieldError] = []
    for index, text in enumerate(given):
        if index or text != "None":
            wrong += address(f"spec.clusterIPs[{index}]", text)
        elif len(given) > 1:
            wrong.append(field_errors.invalid("spec.clusterIPs", given, "'None' must be the first and only value"))
    found += wrong
    if len(given) > 2:
        found.append(field_errors.invalid("spec.clusterIPs", given, "may only hold up to 2 values"))
    return found if wrong else found + _of_families(given, families)


def _of_families(given: list[str], families: list[str]) -> list[FieldError]:
    """What is wrong with addresses that are well-formed."""
    versions = [ipaddress.ip_address(text).version for text in given if text != "None"]
    found: list[FieldError] = []
    if len(given) > 1 and len(set(versions)) < 2:
        told = "may specify no more than one IP for each IP family"
        found.append(field_errors.invalid("spec.clusterIPs", given, told))
    for index, (version, family) in enumerate(zip(versions, families, strict=False)):
        if family in ("IPv4", "IPv6") and family != f"IPv{version}":
            told = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            found.append(field_errors.invalid(f"spec.clusterIPs[{index}]", given[index], told))
    return found


def _against_policy(spec: Object, before: Object) -> list[FieldError]:
    policy, found = spec.get("ipFamilyPolicy"), []
    for key, one, many in (
        ("clusterIPs", "cluster IP", "cluster IPs"),
        ("ipFamilies", "IP family", "IP families"),
    ):
        now, then = spec.get(key) or [], before.get(key) or []
        if policy == "SingleStack" and len(now) == 2:
            found.append(field_errors.invalid("spec.ipFamilyPolicy", policy, _BOTH.format(many)))
        elif policy != "SingleStack" and 0 < len(now) < len(then):
            found.append(field_errors.invalid("spec.ipFamilyPolicy", policy, _RELEASED.format(one)))
    return found


def _not_here(spec: Object) -> list[FieldError]:
    """What this cluster does not have; only headless Services without a selector are open to both families."""
    if spec.get("clusterIP") == "None" and not spec.get("selector"):
        return []
    found: list[FieldError] = []
    if spec.get("ipFamilyPolicy") == "RequireDualStack":
        told = "this cluster is not configured for dual-stack services"
        found.append(field_errors.invalid("spec.ipFamilyPolicy", "RequireDualStack", told))
    extra = [(index, family) for index, family in enumerate(spec.get("ipFamilies") or ()) if family == "IPv6"]
    told = "not configured on this cluster"
    return found + [field_errors.invalid(f"spec.ipFamilies[{index}]", family, told) for index, family in extra]
