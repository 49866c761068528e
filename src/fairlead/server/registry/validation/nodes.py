"""Validation of Nodes: taints, Pod CIDRs, capacity."""

import ipaddress
from typing import Final

from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.formats import NOT_NEGATIVE, cidr, label_value, qualified_name
from fairlead.server.registry.validation.rules import (
    Errors,
    Rule,
    Scope,
    build_validator,
    each,
    field,
    go_struct,
    inside,
    on_update,
)
from fairlead.server.registry.validation.scheduling import TAINT_EFFECTS
from fairlead.server.schema import quantity


def _check_taint_value(taint: Scope) -> Errors:
    if messages := list(label_value(taint.text("value"))):
        yield taint.invalid("value", ";".join(messages))


def _check_unique_taint(taint: Scope) -> Errors:
    key, value, effect = (taint.text(key_name) for key_name in ("key", "value", "effect"))
    seen_taints = taint.notes.setdefault("seen", set())
    if (key, effect) in seen_taints:
        taint_text = go_struct({"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")})
        message = f"Duplicate value: {taint_text}: taints must be unique by key and effect pair"
        yield FieldError("FieldValueDuplicate", taint.path(), message)
    seen_taints.add((key, effect))


def _check_amounts(status: Scope) -> Errors:
    for key in ("capacity", "allocatable"):
        for name, amount in status.map(key).items():
            if quantity.parse(amount)[0] < 0:
                yield status.invalid(f"{key}.{name}", NOT_NEGATIVE, amount)


def _check_pod_cidrs(spec: Scope) -> Errors:
    blocks, errors = spec.items("podCIDRs"), spec.check_values("podCIDRs", cidr)
    yield from errors
    if len(blocks) > 1 and (errors or len(blocks) > 2 or len({ipaddress.ip_network(t).version for t in blocks}) < 2):
        yield spec.invalid("podCIDRs", "may specify no more than one CIDR for each IP family")


def _set_once(key: str, name: str) -> Rule:
    return field(key).forbidden_if(
        lambda spec: spec.old_value(key) and spec.old_value(key) != spec.get(key),
        f'node updates may not change {name} except from "" to valid',
    )


_TAINTS: Final = each(
    "spec.taints",
    field("key").check(qualified_name, zero=""),
    _check_taint_value,
    field("effect").required_enum(*TAINT_EFFECTS),
    _check_unique_taint,
    name="metadata.taints",  # as a real server names them
)
node: Final = build_validator(
    _TAINTS,
    on_update(_TAINTS),  # a real server checks them twice
    inside("status", _check_amounts),
    inside(
        "spec",
        _check_pod_cidrs,
        on_update(_set_once("podCIDRs", "podCIDR"), _set_once("providerID", "providerID")),
        always=True,
    ),
)
