"""Validation of statuses: counts are not negative, and no part of the replicas exceeds the whole."""

import re
from collections.abc import Iterable
from typing import Final

from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.formats import (
    dns_subdomain,
    ip_address,
    parse_address,
    qualified_name,
    strip_leading_zeros,
)
from fairlead.server.registry.validation.networking import NOT_AN_ADDRESS
from fairlead.server.registry.validation.rules import (
    IMMUTABLE,
    Errors,
    Rule,
    Scope,
    Validator,
    build_validator,
    each,
    field,
    first_error,
    inside,
)

_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_MESSAGE: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    "'MyName',  or "
    "'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
)


def _check_condition_reason(reason: str) -> Iterable[str]:
    return () if _REASON.fullmatch(reason) else (_REASON_MESSAGE,)


def _check_parts_of_replicas(*fields: str, ready_field: str = "readyReplicas") -> Rule:
    """Return a rule that rejects `fields` greater than `replicas`, and availableReplicas greater than readyReplicas.

    Messages name the ready replicas `ready_field`.
    """

    def rule(status: Scope) -> Errors:
        for key in fields:
            if status.number(key) > status.number("replicas"):
                yield status.invalid(key, "cannot be greater than status.replicas", status.number(key))
        available = status.number("availableReplicas")
        if available > status.number("readyReplicas"):
            yield status.invalid("availableReplicas", f"cannot be greater than {ready_field}", available)

    return rule


def _check_collisions(status: Scope) -> Errors:
    old, count = status.old_value("collisionCount"), status.get("collisionCount")
    if old is not None and (count is None or count < old):
        yield status.invalid("collisionCount", "cannot be decremented", count or 0)


def _check_no_address(ingress: Scope) -> Errors:
    if ingress.get("hostname") and not list(ip_address(ingress.text("hostname"))):
        yield ingress.invalid("hostname", NOT_AN_ADDRESS)


_CONDITIONS: Final = each(
    "conditions",
    field("type").unique(),
    field("type").check(qualified_name, zero=""),
    field("status").enum("False", "True", "Unknown", always=True),
    field("observedGeneration").at_least(0, message="must be greater than or equal to zero"),
    field("lastTransitionTime").required(allow_empty=True),
    field("reason").required(_check_condition_reason),
    field("reason").max_length(1024),
    field("message").max_length(32 * 1024),
)
_LOAD_BALANCER: Final = inside(
    "status.loadBalancer",
    each("ingress", field("ip").optional(ip_address), field("hostname").optional(dns_subdomain), _check_no_address),
)


def _check_one_address_per_family(key: str) -> Rule:
    """Return a rule for the IPs of a Pod or its host: at most one changed address of each IP family."""

    def rule(status: Scope) -> Errors:
        addresses = [item.get("ip") or "" for item in status.items(key)]
        old_addresses = {item.get("ip") or "" for item in status.old_value(key) or ()}
        for index, address in enumerate(addresses):
            if address not in old_addresses:
                yield from status.check(f"{key}[{index}]", ip_address, address)
        if len(addresses) < 2:
            return
        unreadable = [i for i, address in enumerate(addresses) if parse_address(strip_leading_zeros(address)) is None]
        if unreadable:
            problem = f"invalid IP[{unreadable[0]}]: {addresses[unreadable[0]]}"
            message = f"Internal error: failed to check for dual stack with error:{problem}"
            yield FieldError("InternalError", status.path(key), message)
        if unreadable or len(addresses) > 2 or len({":" in address for address in addresses}) < 2:
            address_values = [{"IP": address} for address in addresses]
            yield status.invalid(key, "may specify no more than one IP for each IP family", address_values)

    return rule


def _check_immutable_qos_class(status: Scope) -> Errors:
    old = status.old_value("qosClass")
    if old and old != status.get("qosClass"):
        yield status.invalid("qosClass", IMMUTABLE, status.text("qosClass"))


def _check_first_host_address(status: Scope) -> Errors:
    addresses = status.items("hostIPs")
    if addresses and addresses[0].get("ip") != status.get("hostIP"):
        yield status.invalid("hostIPs[0].ip", "must be equal to `hostIP`", addresses[0].get("ip") or "")


def _check_ip_mode(ingress: Scope) -> Errors:
    mode, has_address = ingress.get("ipMode"), bool(ingress.get("ip"))
    if mode is None and has_address:
        yield ingress.required("ipMode", "must be specified when `ip` is set")
    elif mode is not None and not has_address:
        yield ingress.forbidden("ipMode", "may not be specified when `ip` is not set")
    elif mode not in (None, "Proxy", "VIP"):
        yield ingress.not_supported("ipMode", ("Proxy", "VIP"))


def _is_load_balancer(service: Scope) -> Errors:
    if service.get("spec.type") != "LoadBalancer" and service.get("status.loadBalancer.ingress"):
        message = "may only be used when `spec.type` is 'LoadBalancer'"
        yield service.forbidden("status.loadBalancer.ingress", message)


def _check_modes_and_addresses(service: Scope) -> Errors:
    yield from _IP_MODES(service)
    yield from _LOAD_BALANCER(service)


_IP_MODES: Final = inside("status.loadBalancer", each("ingress", _check_ip_mode))


def _build_status_validator(counts: Iterable[str], *rules: Rule) -> Validator:
    return build_validator(inside("status", field(*counts).at_least(0), *rules, always=True))


_LABELED: Final = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_UPDATED: Final = ("updatedReplicas", "readyReplicas", "availableReplicas")

pod: Final = _build_status_validator(
    (),
    _check_immutable_qos_class,
    _check_one_address_per_family("podIPs"),
    _check_first_host_address,
    _check_one_address_per_family("hostIPs"),
)
service: Final = build_validator(first_error(_is_load_balancer, _check_modes_and_addresses))
ingress: Final = build_validator(_LOAD_BALANCER)
deployment: Final = _build_status_validator(
    (
        "observedGeneration", "replicas", *_UPDATED, "unavailableReplicas", "terminatingReplicas", "collisionCount",
    ),
    _check_parts_of_replicas(*_UPDATED),
    _check_collisions,
)  # fmt: skip
replica_set: Final = _build_status_validator(
    ("replicas", *_LABELED, "observedGeneration", "terminatingReplicas"), _check_parts_of_replicas(*_LABELED)
)
replication_controller: Final = _build_status_validator(
    ("replicas", *_LABELED, "observedGeneration"), _check_parts_of_replicas(*_LABELED)
)
stateful_set: Final = _build_status_validator(
    ("replicas", *_UPDATED, "currentReplicas", "observedGeneration", "collisionCount"),
    _check_parts_of_replicas("currentReplicas", *_UPDATED, ready_field="status.readyReplicas"),
    _check_collisions,
)
daemon_set: Final = _build_status_validator(
    (
        "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
        "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
    ),
    _check_collisions,
)  # fmt: skip
autoscaler: Final = _build_status_validator(("currentReplicas", "desiredReplicas"))
disruption_budget: Final = _build_status_validator(
    ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), _CONDITIONS
)
