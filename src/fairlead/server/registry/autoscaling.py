"""Conversion of HorizontalPodAutoscalers between v1 and v2. v1 keeps the fields that it lacks in annotations."""

import json
from collections.abc import Callable
from typing import Any, Final

from fairlead.server.registry.validation.rules import lookup

Object = dict[str, Any]

_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOR = (
    _PREFIX + name for name in ("metrics", "current-metrics", "conditions", "behavior")
)
_DEFAULT_UTILIZATION: Final = 80

# The source of a metric by its field: (name in v1, path in v2), in the order in which Go writes them.
_TARGETS: Final = {
    "object": (
        ("target", "describedObject"),
        ("metricName", "metric.name"),
        ("targetValue", "target.value"),
        ("selector", "metric.selector"),
        ("averageValue", "target.averageValue"),
    ),
    "pods": (
        ("metricName", "metric.name"),
        ("targetAverageValue", "target.averageValue"),
        ("selector", "metric.selector"),
    ),
    "resource": (
        ("name", "name"),
        ("targetAverageUtilization", "target.averageUtilization"),
        ("targetAverageValue", "target.averageValue"),
    ),
    "containerResource": (
        ("name", "name"),
        ("targetAverageUtilization", "target.averageUtilization"),
        ("targetAverageValue", "target.averageValue"),
        ("container", "container"),
    ),
    "external": (
        ("metricName", "metric.name"),
        ("metricSelector", "metric.selector"),
        ("targetValue", "target.value"),
        ("targetAverageValue", "target.averageValue"),
    ),
}
_CURRENTS: Final = {
    kind: tuple(
        (old.replace("targetA", "currentA").replace("targetV", "currentV"), new.replace("target.", "current."))
        for old, new in pairs
    )
    for kind, pairs in _TARGETS.items()
}
_REFERENCE: Final = ("kind", "name", "apiVersion")
_CONDITION: Final = ("type", "status", "lastTransitionTime", "reason", "message")
_WRITTEN_WHEN_EMPTY: Final = (  # the fields that v1 writes even if they are not set
    "object.targetValue",
    "object.currentValue",
    "external.currentValue",
    "resource.currentAverageValue",
    "containerResource.currentAverageValue",
    "pods.currentAverageValue",
    "pods.targetAverageValue",
)


def to_v1(obj: Object) -> Object:
    """Return an autoscaling/v2 HorizontalPodAutoscaler converted to v1."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    metrics, behavior = spec.pop("metrics", None) or [], spec.pop("behavior", None)
    current, conditions = status.pop("currentMetrics", None) or [], status.pop("conditions", None)
    other_metrics = []
    for metric in metrics:
        utilization = _find_cpu_utilization(metric, "target")
        if utilization is None:
            other_metrics.append(_convert_metric_to_v1(metric, _TARGETS))
        else:
            spec.setdefault("targetCPUUtilizationPercentage", utilization)
    for metric in current:
        utilization = _find_cpu_utilization(metric, "current")
        if utilization is not None:
            status.setdefault("currentCPUUtilizationPercentage", utilization)
    annotations = {
        _METRICS: other_metrics,
        _CURRENT: [_convert_metric_to_v1(metric, _CURRENTS) for metric in current],
        _BEHAVIOR: _capitalize_behavior(behavior) if behavior else None,
        _CONDITIONS: conditions and [_pick_fields(condition, _CONDITION) for condition in conditions],
    }
    texts = {
        name: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        for name, value in annotations.items()
        if value
    }
    return _build_object(obj, "autoscaling/v1", spec, status, texts)


def to_v2(obj: Object) -> Object:
    """Return an autoscaling/v1 HorizontalPodAutoscaler converted to v2.

    Without metrics, it gets the CPU metric of v1.
    """
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    utilization, current = (
        spec.pop("targetCPUUtilizationPercentage", None),
        status.pop("currentCPUUtilizationPercentage", None),
    )
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    metrics = (
        _read_annotation(
            annotations, _METRICS, lambda metrics: [_convert_metric_to_v2(metric, _TARGETS) for metric in metrics]
        )
        or []
    )
    if utilization is not None or not metrics:
        percent = _DEFAULT_UTILIZATION if utilization is None else utilization
        metrics.append(_build_cpu_metric("target", {"type": "Utilization", "averageUtilization": percent}))
    spec["metrics"] = metrics
    if behavior := _read_annotation(annotations, _BEHAVIOR, _uncapitalize):
        spec["behavior"] = behavior
    measured = _read_annotation(
        annotations, _CURRENT, lambda metrics: [_convert_metric_to_v2(metric, _CURRENTS) for metric in metrics]
    )
    if measured is None and current is not None:
        measured = [_build_cpu_metric("current", {"averageUtilization": current})]
    if measured is not None:
        status["currentMetrics"] = measured
    if conditions := _read_annotation(annotations, _CONDITIONS, list):
        status["conditions"] = conditions
    return _build_object(obj, "autoscaling/v2", spec, status, {})


def _build_object(obj: Object, api_version: str, spec: Object, status: Object, texts: dict[str, str]) -> Object:
    metadata = dict(obj.get("metadata") or {})
    reserved = (_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOR)
    annotations = {
        name: value for name, value in (metadata.pop("annotations", None) or {}).items() if name not in reserved
    }
    if annotations or texts:
        metadata["annotations"] = {**annotations, **texts}
    return {**obj, "apiVersion": api_version, "metadata": metadata, "spec": spec, "status": status}


def _read_annotation(annotations: dict[str, str], name: str, convert: Callable[[Any], Any]) -> Any:
    """Return the JSON value of an annotation after `convert`, or None if it is absent or cannot be parsed."""
    try:
        return convert(json.loads(annotations[name])) if name in annotations else None
    except (ValueError, TypeError, AttributeError):
        return None


def _pick_fields(value: Object, keys: tuple[str, ...]) -> Object:
    """Return the fields `keys` of a value in the order in which Go writes them."""
    return {key: value[key] for key in keys if key in value}


def _find_cpu_utilization(metric: Object, key: str) -> int | None:
    """Return the average CPU utilization of a metric, for which v1 has a field, or None for another metric."""
    source = metric.get("resource") or {}
    if metric.get("type") != "Resource" or source.get("name") != "cpu":
        return None
    percent: int | None = (source.get(key) or {}).get("averageUtilization")
    return percent


def _build_cpu_metric(key: str, value: Object) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", key: value}}


def _convert_metric_to_v1(metric: Object, table: dict[str, Any]) -> Object:
    out: Object = {"type": metric.get("type")}
    for kind, pairs in table.items():
        source = metric.get(kind)
        if source is None:
            continue
        converted: Object = {}
        for old, path in pairs:
            value = lookup(source, path)
            if value is not None or f"{kind}.{old}" in _WRITTEN_WHEN_EMPTY:
                converted[old] = "0" if value is None else _pick_fields(value, _REFERENCE) if old == "target" else value
        out[kind] = converted
    return out


def _convert_metric_to_v2(metric: Object, table: dict[str, Any]) -> Object:
    out: Object = {"type": metric.get("type")}
    for kind, pairs in table.items():
        source = metric.get(kind)
        if source is None:
            continue
        converted: Object = {}
        for old, path in pairs:
            if source.get(old) is None:
                continue
            *parents, last = path.split(".")
            parent = converted
            for key in parents:
                parent = parent.setdefault(key, {})
            parent[last] = source[old]
        if table is _TARGETS:
            converted["target"] = _add_target_type(kind, converted.get("target", {}))
        out[kind] = converted
    return out


def _add_target_type(kind: str, target: Object) -> Object:
    """Return a metric target with its `type`, a field that v1 does not have."""
    if kind == "object" and "averageValue" in target and target.get("value") == "0":
        target = {name: value for name, value in target.items() if name != "value"}
    if kind in ("resource", "containerResource"):
        target_type = "Utilization" if "averageUtilization" in target else "AverageValue"
    elif kind == "object":
        target_type = "AverageValue" if "averageValue" in target else "Value"
    else:
        target_type = "Value" if kind == "external" and "value" in target else "AverageValue"
    return {"type": target_type, **target}


_RULES: Final = ("StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance")
_POLICY: Final = ("Type", "Value", "PeriodSeconds")


def _capitalize_behavior(behavior: Object) -> Object:
    """Return the scaling behavior with capitalized field names, as a real server writes it to the annotation."""
    out: Object = {}
    for name in ("ScaleUp", "ScaleDown"):
        rules = behavior.get(name[0].lower() + name[1:])
        out[name] = rules and {key: rules.get(key[0].lower() + key[1:]) for key in _RULES}
        if rules and rules.get("policies"):
            policies = rules["policies"]
            out[name]["Policies"] = [
                {key: policy.get(key[0].lower() + key[1:]) for key in _POLICY} for policy in policies
            ]
    return out


def _uncapitalize(value: Any) -> Any:
    if isinstance(value, dict):
        return {key[:1].lower() + key[1:]: _uncapitalize(inner) for key, inner in value.items() if inner is not None}
    return [_uncapitalize(item) for item in value] if isinstance(value, list) else value
