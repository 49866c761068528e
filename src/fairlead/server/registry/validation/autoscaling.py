"""Validation of HorizontalPodAutoscalers, in v2, and of the only target of v1."""

from typing import Final

from fairlead.server.registry.validation.containers import check_resource_name
from fairlead.server.registry.validation.formats import dns_label, group_version, path_segment
from fairlead.server.registry.validation.rules import (
    Errors,
    Rule,
    Scope,
    apply,
    build_validator,
    each,
    field,
    first_error,
    inside,
)

_SOURCES: Final = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_TYPES: Final = tuple(sorted(_SOURCES))
_TARGET_TYPES: Final = ("Utilization", "Value", "AverageValue")
_POSITIVE: Final = "must be greater than zero"
_MAX_WINDOW: Final = 3600
_MAX_PERIOD: Final = 1800


def _check_max_replicas(spec: Scope) -> Errors:
    highest, lowest = spec.number("maxReplicas"), spec.get("minReplicas")
    if highest == 0:
        yield spec.required("maxReplicas", "must be set and greater than 0")
    elif highest < 0:
        yield spec.invalid("maxReplicas", "must be greater than or equal to 1")
    if lowest is not None and highest < lowest:
        yield spec.invalid("maxReplicas", "must be greater than or equal to `minReplicas`", highest)


def _check_api_group(reference: Scope) -> Errors:
    """Require an API group in scaleTargetRef, except for ReplicationController, the only scalable core kind."""
    version = reference.text("apiVersion")
    if "/" not in version and not (version == "v1" and reference.get("kind") == "ReplicationController"):
        yield reference.invalid("apiVersion", "apiVersion must specify API group", version)


def _require_either(first: str, second: str, missing_error: str, both_error: str = "") -> Rule:
    """Require one of two target fields.

    `missing_error` is the error if neither is set, `both_error` the error if both are set. An empty `both_error` allows
    both.
    """

    def rule(target: Scope) -> Errors:
        is_set = [target.get(key) is not None for key in (first, second)]
        if not any(is_set):
            yield target.required(second, missing_error)
        elif all(is_set) and both_error:
            yield target.forbidden(first, both_error)

    return rule


_REFERENCE: Final = (field("kind").required(path_segment), field("name").required(path_segment))
_TARGET: Final = (
    field("type").required(detail="must specify a metric target type"),
    field("type").check(
        lambda kind: () if kind in _TARGET_TYPES else ("must be either Utilization, Value, or AverageValue",), zero=""
    ),
    field("value").positive_quantity("must be positive"),
    field("averageValue").positive_quantity("must be positive"),
    field("averageUtilization").at_least(1, message="must be greater than 0"),
)
_METRIC: Final = inside(
    "metric", field("name").required(path_segment, detail="must specify a metric name"), always=True
)
_RESOURCE_TARGET: Final = inside(
    "target",
    *_TARGET,
    _require_either(
        "averageValue",
        "averageUtilization",
        "must set either a target raw value or a target utilization",
        "may not set both a target raw value and a target utilization",
    ),
    always=True,
)
_SOURCE_RULES: Final[dict[str, tuple[Rule, ...]]] = {
    "object": (
        inside("describedObject", *_REFERENCE, field("apiVersion").check(group_version), always=True),
        _METRIC,
        inside(
            "target",
            *_TARGET,
            _require_either("value", "averageValue", "must set either a target value or averageValue"),
        ),
    ),
    "external": (
        _METRIC,
        inside(
            "target",
            *_TARGET,
            _require_either(
                "value",
                "averageValue",
                "must set either a target value for metric or a per-pod target",
                "may not set both a target value for metric and a per-pod target",
            ),
        ),
    ),
    "pods": (
        _METRIC,
        inside(
            "target", *_TARGET, field("averageValue").required(detail="must specify a positive target averageValue")
        ),
    ),
    "resource": (field("name").required(detail="must specify a resource name"), _RESOURCE_TARGET),
    "containerResource": (
        field("name").required(check_resource_name, detail="must specify a resource name"),
        field("container").required(dns_label, detail="must specify a container"),
        _RESOURCE_TARGET,
    ),
}


def _check_metric(metric: Scope) -> Errors:
    kind, source = metric.text("type"), _SOURCES.get(metric.text("type"))
    if not kind:
        yield metric.required("type", "must specify a metric source type")
    if source is None:
        yield metric.not_supported("type", _TYPES)
    sources = [key for key in _SOURCES.values() if metric.get(key) is not None]
    if sources:
        yield from apply(_SOURCE_RULES[sources[0]], metric.inside(sources[0]))
    if source is None:  # a real server reports an unknown type twice
        yield metric.not_supported("type", _TYPES)
    elif source not in sources:
        yield metric.required(source, "must populate information for the given metric source")
    if len(sources) > 1:
        for key in sources:
            if key != source:
                yield metric.forbidden(key, "must populate the given metric source only")


def _check_v1_target(spec: Scope) -> Errors:
    """Check targetCPUUtilizationPercentage of autoscaling/v1. Errors name the v2 metric for which it stands."""
    percent = spec.get("targetCPUUtilizationPercentage")
    if percent is not None and percent <= 0:
        key = "metrics[0].resource.target.averageUtilization"
        yield spec.invalid(key, "must be greater than 0", percent)


def _build_scaling_rules(key: str) -> Rule:
    return inside(
        key,
        field("stabilizationWindowSeconds").at_least(0, message="must be greater than or equal to zero"),
        field("stabilizationWindowSeconds").at_most(_MAX_WINDOW),
        field("selectPolicy").enum("Disabled", "Max", "Min"),
        field("policies").required(detail="must specify at least one Policy"),
        each(
            "policies",
            field("type").enum("Percent", "Pods", always=True),
            field("value", "periodSeconds").at_least(1, message=_POSITIVE),
            field("periodSeconds").at_most(_MAX_PERIOD),
        ),
    )


autoscaler: Final = build_validator(
    inside(
        "spec",
        field("minReplicas").at_least(1),
        _check_max_replicas,
        inside(
            "scaleTargetRef",
            *_REFERENCE,
            first_error(field("apiVersion").check(group_version), _check_api_group),
            always=True,
        ),
        _check_v1_target,
        each("metrics", _check_metric),
        field("metrics").forbidden_if(
            lambda spec: (
                spec.get("minReplicas") == 0
                and not any(metric.get("type") in ("Object", "External") for metric in spec.items("metrics"))
            ),
            "must specify at least one Object or External metric to support scaling to zero replicas",
        ),
        _build_scaling_rules("behavior.scaleUp"),
        _build_scaling_rules("behavior.scaleDown"),
        always=True,
    )
)
