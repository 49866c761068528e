"""The built-in kind served at two versions: what autoscaling/v1 has no fields for stands in annotations."""

import json
from collections.abc import Callable
from typing import Any, Final

Object = dict[str, Any]

_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOR = (
    _PREFIX + name for name in ("metrics", "current-metrics", "conditions", "behavior")
)
_DEFAULT_UTILIZATION: Final = 80

# A metric's source by its field: (v1's name, path in v2), in the order in which Go writes them.
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
_ALWAYS: Final = (  # what v1 writes although nothing was given
    "object.targetValue",
    "object.currentValue",
    "external.currentValue",
    "resource.currentAverageValue",
    "containerResource.currentAverageValue",
    "pods.currentAverageValue",
    "pods.targetAverageValue",
)


def to_v1(obj: Object) -> Object:
    """An autoscaling/v2 autoscaler at v1."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    metrics, behavior = spec.pop("metrics", None) or [], spec.pop("behavior", None)
    current, conditions = status.pop("currentMetrics", None) or [], status.pop("conditions", None)
    others = []
    for metric in metrics:
        utilization = _cpu(metric, "target")
        if utilization is None:
            others.append(_older(metric, _TARGETS))
        else:
            spec.setdefault("targetCPUUtilizationPercentage", utilization)
    for metric in current:
        utilization = _cpu(metric, "current")
        if utilization is not None:
            status.setdefault("currentCPUUtilizationPercentage", utilization)
    said = {
        _METRICS: others,
        _CURRENT: [_older(metric, _CURRENTS) for metric in current],
        _BEHAVIOR: _capital(behavior) if behavior else None,
        _CONDITIONS: conditions and [_ordered(condition, _CONDITION) for condition in conditions],
    }
    texts = {
        name: json.dumps(value, ensure_ascii=False, separators=(",", ":")) for name, value in said.items() if value
    }
    return _made(obj, "autoscaling/v1", spec, status, texts)


def to_v2(obj: Object) -> Object:
    """An autoscaling/v1 autoscaler at v2; without any metric it gets the one that v1 always implied."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    utilization, current = (
        spec.pop("targetCPUUtilizationPercentage", None),
        status.pop("currentCPUUtilizationPercentage", None),
    )
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    metrics = _read(annotations, _METRICS, lambda said: [_newer(metric, _TARGETS) for metric in said]) or []
    if utilization is not None or not metrics:
        percent = _DEFAULT_UTILIZATION if utilization is None else utilization
        metrics.append(_cpu_metric("target", {"type": "Utilization", "averageUtilization": percent}))
    spec["metrics"] = metrics
    if behavior := _read(annotations, _BEHAVIOR, _small):
        spec["behavior"] = behavior
    measured = _read(annotations, _CURRENT, lambda said: [_newer(metric, _CURRENTS) for metric in said])
    if measured is None and current is not None:
        measured = [_cpu_metric("current", {"averageUtilization": current})]
    if measured is not None:
        status["currentMetrics"] = measured
    if conditions := _read(annotations, _CONDITIONS, list):
        status["conditions"] = conditions
    return _made(obj, "autoscaling/v2", spec, status, {})


def _made(obj: Object, api_version: str, spec: Object, status: Object, texts: dict[str, str]) -> Object:
    metadata = dict(obj.get("metadata") or {})
    ours = (_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOR)
    annotations = {name: text for name, text in (metadata.pop("annotations", None) or {}).items() if name not in ours}
    if annotations or texts:
        metadata["annotations"] = {**annotations, **texts}
    return {**obj, "apiVersion": api_version, "metadata": metadata, "spec": spec, "status": status}


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _read(annotations: dict[str, str], name: str, use: Callable[[Any], Any]) -> Any:
    """What an annotation says; None where there is none, or one that cannot be read."""
    try:
        return use(json.loads(annotations[name])) if name in annotations else None
    except (ValueError, TypeError, AttributeError):
        return None


def _ordered(value: Object, words: tuple[str, ...]) -> Object:
    """`value` with its fields in the order in which Go writes them."""
    return {word: value[word] for word in words if word in value}


def _cpu(metric: Object, word: str) -> int | None:
    """The utilization of a metric that v1 has a field for."""
    source = metric.get("resource") or {}
    if metric.get("type") != "Resource" or source.get("name") != "cpu":
        return None
    percent: int | None = (source.get(word) or {}).get("averageUtilization")
    return percent


def _cpu_metric(word: str, value: Object) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", word: value}}


def _older(metric: Object, table: dict[str, Any]) -> Object:
    out: Object = {"type": metric.get("type")}
    for kind, pairs in table.items():
        source = metric.get(kind)
        if source is None:
            continue
        made: Object = {}
        for old, path in pairs:
            value = source
            for word in path.split("."):
                value = (value or {}).get(word)
            if value is not None or f"{kind}.{old}" in _ALWAYS:
                made[old] = "0" if value is None else _ordered(value, _REFERENCE) if old == "target" else value
        out[kind] = made
    return out


def _newer(metric: Object, table: dict[str, Any]) -> Object:
    out: Object = {"type": metric.get("type")}
    for kind, pairs in table.items():
        source = metric.get(kind)
        if source is None:
            continue
        made: Object = {}
        for old, path in pairs:
            if source.get(old) is None:
                continue
            *above, last = path.split(".")
            place = made
            for word in above:
                place = place.setdefault(word, {})
            place[last] = source[old]
        if table is _TARGETS:
            made["target"] = _typed(kind, made.get("target", {}))
        out[kind] = made
    return out


def _typed(kind: str, target: Object) -> Object:
    """A target with its type, which v1 does not write."""
    if kind == "object" and "averageValue" in target and target.get("value") == "0":
        target = {name: value for name, value in target.items() if name != "value"}
    if kind in ("resource", "containerResource"):
        word = "Utilization" if "averageUtilization" in target else "AverageValue"
    elif kind == "object":
        word = "AverageValue" if "averageValue" in target else "Value"
    else:
        word = "Value" if kind == "external" and "value" in target else "AverageValue"
    return {"type": word, **target}


_RULES: Final = ("StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance")
_POLICY: Final = ("Type", "Value", "PeriodSeconds")


def _capital(behavior: Object) -> Object:
    """As a real server writes it: its internal type, whose fields have no names of their own."""
    out: Object = {}
    for name in ("ScaleUp", "ScaleDown"):
        rules = behavior.get(name[0].lower() + name[1:])
        out[name] = rules and {word: rules.get(word[0].lower() + word[1:]) for word in _RULES}
        if rules and rules.get("policies"):
            policies = rules["policies"]
            out[name]["Policies"] = [
                {word: one.get(word[0].lower() + word[1:]) for word in _POLICY} for one in policies
            ]
    return out


def _small(value: Any) -> Any:
    if isinstance(value, dict):
        return {key[:1].lower() + key[1:]: _small(inner) for key, inner in value.items() if inner is not None}
    return [_small(item) for item in value] if isinstance(value, list) else value
