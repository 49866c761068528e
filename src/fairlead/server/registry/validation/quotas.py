"""Validation of ResourceQuotas and LimitRanges."""

from decimal import Decimal
from typing import Final

from fairlead.server.registry.validation.formats import NOT_NEGATIVE, qualified_name
from fairlead.server.registry.validation.rules import (
    NOT_EMPTY,
    UNSET,
    Errors,
    Scope,
    build_validator,
    each,
    field,
    inside,
)
from fairlead.server.registry.validation.selectors import INVALID_OPERATOR, WITH_VALUES, WITHOUT_VALUES
from fairlead.server.schema import quantity

_OBJECT_COUNTS: Final = frozenset(
    {
        "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    }
)  # fmt: skip
_COMPUTE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD: Final = _OBJECT_COUNTS | _COMPUTE | {"storage", "requests.storage"} | {
    f"{part}.{name}" for part in ("requests", "limits") for name in _COMPUTE
}  # fmt: skip
_HUGE_PAGES: Final = ("hugepages-", "requests.hugepages-", "limits.hugepages-")
_SCOPES: Final = (
    "Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
)  # fmt: skip
_OPPOSITE_SCOPES: Final = ({"Terminating", "NotTerminating"}, {"BestEffort", "NotBestEffort"})
_LIMIT_TYPES: Final = ("Container", "Pod", "PersistentVolumeClaim")
_NOT_FOR_PODS: Final = "may not be specified when `type` is 'Pod'"
_STORAGE_LIMIT: Final = "either minimum or maximum storage value is required, but neither was provided"


def _check_hard_limits(spec: Scope) -> Errors:
    for name, amount in spec.map("hard").items():
        key, number = f"hard[{name}]", quantity.parse(amount)[0]
        yield from spec.check(key, qualified_name, name)
        if "/" not in name and name not in _STANDARD and not name.startswith(_HUGE_PAGES):
            yield spec.invalid(key, "must be a standard resource type or fully qualified", name)
            yield spec.invalid(key, "must be a standard resource for quota", name)
        if number < 0:
            yield spec.invalid(key, NOT_NEGATIVE, amount)
        is_extended = "/" in name and "kubernetes.io/" not in name
        is_count = name in _OBJECT_COUNTS or name.startswith("count/") or is_extended
        if is_count and number != number.to_integral_value():
            yield spec.invalid(key, "must be an integer", amount)


def _check_scopes(spec: Scope) -> Errors:
    scopes = spec.items("scopes")
    for scope in scopes:
        if scope not in _SCOPES:
            yield spec.invalid("scopes", "unsupported scope")
        elif scope == "BestEffort" and any(name != "pods" for name in spec.map("hard")):
            yield spec.invalid("scopes", "unsupported scope applied to resource")
    for pair in _OPPOSITE_SCOPES:
        if pair <= set(scopes):
            yield spec.invalid("scopes", "conflicting scopes")


def _check_scope_selector(spec: Scope) -> Errors:
    """Check the requirements of a scope selector. As on a real server, errors have no item index."""
    for item in spec.items("scopeSelector.matchExpressions"):
        requirement = Scope(item, None, spec, "scopeSelector.matchExpressions")
        operator, values = requirement.text("operator"), requirement.get("values")
        if requirement.get("scopeName") not in _SCOPES:
            yield requirement.invalid("scopeName", "unsupported scope", requirement.text("scopeName"))
        if operator in WITH_VALUES and not values:
            message = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            yield requirement.required("values", message)
        elif operator in WITHOUT_VALUES and values:
            message = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            yield requirement.invalid("values", message)
        elif operator not in (*WITH_VALUES, *WITHOUT_VALUES):
            yield requirement.invalid("operator", INVALID_OPERATOR, operator)


resource_quota: Final = build_validator(
    inside("spec", _check_hard_limits, _check_scopes, _check_scope_selector), field("spec.scopes").immutable()
)


def _check_limit_type(kind: str) -> list[str]:
    messages = list(qualified_name(kind))
    if not messages and "/" not in kind and kind not in _LIMIT_TYPES:
        return ["must be a standard limit type or fully qualified"]
    return messages


def _check_limits(item: Scope) -> Errors:
    """Check that min, defaultRequest, default and max of each resource are in ascending order."""
    keys = ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
    for name in sorted({name for key in keys for name in item.map(key)}):
        amounts = {key: quantity.parse(item.map(key)[name])[0] for key in keys[:4] if name in item.map(key)}
        for lower_key, higher_key, key, error_field, message in _ORDER:
            if lower_key in amounts and higher_key in amounts and amounts[lower_key] > amounts[higher_key]:
                error_message = message.format(low=item.map(lower_key)[name], high=item.map(higher_key)[name])
                yield item.invalid(f"{key}[{name}]", error_message, item.map(error_field)[name])
        yield from _check_ratio(item, name, amounts)


_ORDER: Final = (  # low, high, the field that errors name, the field that they show, and the message
    ("min", "max", "min", "min", "min value {low} is greater than max value {high}"),
    (
        "min", "defaultRequest", "defaultRequest", "defaultRequest",
        "min value {low} is greater than default request value {high}",
    ),
    (
        "defaultRequest", "max", "defaultRequest", "defaultRequest",
        "default request value {low} is greater than max value {high}",
    ),
    (
        "defaultRequest", "default", "defaultRequest", "defaultRequest",
        "default request value {low} is greater than default limit value {high}",
    ),
    ("min", "default", "default", "min", "min value {low} is greater than default value {high}"),
    ("default", "max", "default", "max", "default value {low} is greater than max value {high}"),
)  # fmt: skip


def _check_ratio(item: Scope, name: str, amounts: dict[str, Decimal]) -> Errors:
    ratio_text = item.map("maxLimitRequestRatio").get(name)
    if ratio_text is None:
        return
    key, ratio = f"maxLimitRequestRatio[{name}]", quantity.parse(ratio_text)[0]
    if ratio < 1:
        yield item.invalid(key, f"ratio {ratio_text} is less than 1", ratio_text)
    if amounts.get("min") and "max" in amounts and ratio > (highest := amounts["max"] / amounts["min"]):
        yield item.invalid(key, f"ratio {ratio_text} is greater than max/min = {highest:.6f}", ratio_text)


limit_range: Final = build_validator(
    inside(
        "spec",
        each("limits", field("type").unique()),
        each(
            "limits",
            field("type").check(_check_limit_type, zero=""),
            field("default").forbidden_if({"type": "Pod", "default": NOT_EMPTY}, _NOT_FOR_PODS),
            field("defaultRequest").forbidden_if({"type": "Pod", "defaultRequest": NOT_EMPTY}, _NOT_FOR_PODS),
            field("limits").required_if(
                {"type": "PersistentVolumeClaim", "min.storage": UNSET, "max.storage": UNSET}, _STORAGE_LIMIT
            ),
            _check_limits,
        ),
    )
)
