"""HorizontalPodAutoscalers, which are checked in the version that keeps everything."""

from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.containers import resource_name
from fairlead.server.registry.validation.rules import (
    Rule,
    at_least,
    at_most,
    checks,
    choice,
    each,
    inside,
    needed,
    positive_quantity,
    value,
    words,
)
from fairlead.server.registry.validation.vocabulary import Object, group_version
from fairlead.server.write import names

_SOURCES: Final = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_TYPES: Final = tuple(sorted(_SOURCES))
_POSITIVE: Final = "must be greater than zero"
_LONGEST_WINDOW: Final = 3600
_LONGEST_PERIOD: Final = 1800


def _replicas(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    most, least = spec.get("maxReplicas") or 0, spec.get("minReplicas")
    found = []
    if most == 0:
        found.append(field_errors.required(f"{path}.maxReplicas", "must be set and greater than 0"))
    elif most < 0:
        found.append(field_errors.invalid(f"{path}.maxReplicas", most, "must be greater than or equal to 1"))
    if least is not None and most < least:
        told = "must be greater than or equal to `minReplicas`"
        found.append(field_errors.invalid(f"{path}.maxReplicas", most, told))
    return found


def _group(reference: Object, old: Object | None, path: str) -> list[FieldError]:
    """A core kind has no group to tell; of the others the group must be said."""
    version = reference.get("apiVersion") or ""
    if wrong := group_version(f"{path}.apiVersion", version):
        return wrong
    if "/" in version or (version == "v1" and reference.get("kind") == "ReplicationController"):
        return []
    return [field_errors.invalid(f"{path}.apiVersion", version, "apiVersion must specify API group")]


def _either(first: str, second: str, told: str, both: str = "") -> Rule:
    """At least one of two targets, and where told `both` not both."""

    def rule(target: Object, old: Object | None, path: str) -> list[FieldError]:
        given = [target.get(key) is not None for key in (first, second)]
        if not any(given):
            return [field_errors.required(f"{path}.{second}", told)]
        return [field_errors.forbidden(f"{path}.{first}", both)] if all(given) and both else []

    return rule


def _target_type(target: Object, old: Object | None, path: str) -> list[FieldError]:
    given = target.get("type") or ""
    found = [] if given else [field_errors.required(f"{path}.type", "must specify a metric target type")]
    if given not in ("Utilization", "Value", "AverageValue"):
        told = "must be either Utilization, Value, or AverageValue"
        found.append(field_errors.invalid(f"{path}.type", given, told))
    return found


_REFERENCE: Final = (
    needed("kind"),
    words("kind", names.path_segment),
    needed("name"),
    words("name", names.path_segment),
)
_TARGET: Final = (
    _target_type,
    positive_quantity("value", "must be positive"),
    positive_quantity("averageValue", "must be positive"),
    at_least(1, "averageUtilization", told="must be greater than 0"),
)
_METRIC: Final = inside(
    "metric", needed("name", told="must specify a metric name"), words("name", names.path_segment), always=True
)
_USED: Final = _either(
    "averageValue",
    "averageUtilization",
    "must set either a target raw value or a target utilization",
    "may not set both a target raw value and a target utilization",
)
_RULES: Final[dict[str, tuple[Rule, ...]]] = {
    "object": (
        inside("describedObject", *_REFERENCE, value("apiVersion", group_version), always=True),
        _METRIC,
        inside("target", *_TARGET, _either("value", "averageValue", "must set either a target value or averageValue")),
    ),
    "external": (
        _METRIC,
        inside(
            "target",
            *_TARGET,
            _either(
                "value",
                "averageValue",
                "must set either a target value for metric or a per-pod target",
                "may not set both a target value for metric and a per-pod target",
            ),
        ),
    ),
    "pods": (
        _METRIC,
        inside("target", *_TARGET, needed("averageValue", told="must specify a positive target averageValue")),
    ),
    "resource": (
        needed("name", told="must specify a resource name"),
        inside("target", *_TARGET, _USED, always=True),
    ),
    "containerResource": (
        needed("name", told="must specify a resource name"),
        value("name", lambda field, name: resource_name(field, name) if name else []),
        needed("container", told="must specify a container"),
        words("container", names.label),
        inside("target", *_TARGET, _USED, always=True),
    ),
}


def _metric(metric: Object, old: Object | None, path: str) -> list[FieldError]:
    kind = metric.get("type") or ""
    found = [] if kind else [field_errors.required(f"{path}.type", "must specify a metric source type")]
    unknown = [] if kind in _SOURCES else [field_errors.not_supported(f"{path}.type", kind, _TYPES)]
    found += unknown
    given = [source for source in _SOURCES.values() if metric.get(source) is not None]
    for source in given[:1]:
        found += inside(source, *_RULES[source])(metric, None, path)
    wanted = _SOURCES.get(kind)
    if wanted and wanted not in given:
        told = "must populate information for the given metric source"
        found.append(field_errors.required(f"{path}.{wanted}", told))
    found += unknown
    if len(given) > 1:
        told = "must populate the given metric source only"
        found += [field_errors.forbidden(f"{path}.{source}", told) for source in given if source != wanted]
    return found


def _percent(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    """The one target of the first version, told of as of the metric that it is."""
    given = spec.get("targetCPUUtilizationPercentage")
    if given is None or given > 0:
        return []
    field = f"{path}.metrics[0].resource.target.averageUtilization"
    return [field_errors.invalid(field, given, "must be greater than 0")]


def _to_zero(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    outside = any(metric.get("type") in ("Object", "External") for metric in spec.get("metrics") or ())
    if spec.get("minReplicas") != 0 or outside:
        return []
    told = "must specify at least one Object or External metric to support scaling to zero replicas"
    return [field_errors.forbidden(f"{path}.metrics", told)]


_SCALING: Final = (
    at_least(0, "stabilizationWindowSeconds", told="must be greater than or equal to zero"),
    at_most(_LONGEST_WINDOW, "stabilizationWindowSeconds"),
    choice("selectPolicy", ("Disabled", "Max", "Min")),
    needed("policies", told="must specify at least one Policy"),
    each(
        "policies",
        choice("type", ("Percent", "Pods"), always=True),
        at_least(1, "value", told=_POSITIVE),
        at_least(1, "periodSeconds", told=_POSITIVE),
        at_most(_LONGEST_PERIOD, "periodSeconds"),
    ),
)
autoscaler: Final = checks(
    inside(
        "spec",
        at_least(1, "minReplicas"),
        _replicas,
        inside("scaleTargetRef", *_REFERENCE, _group, always=True),
        _percent,
        each("metrics", _metric),
        _to_zero,
        inside("behavior.scaleUp", *_SCALING),
        inside("behavior.scaleDown", *_SCALING),
        always=True,
    ),
)
