"""The Targets cell of a HorizontalPodAutoscaler: current and target values of its metrics."""

from fairlead.server.registry.resource import Object
from fairlead.server.tables.ages import UNKNOWN
from fairlead.server.tables.cells.formatters import NONE, at

_POD_SOURCES = {"Resource": "resource", "ContainerResource": "containerResource", "Pods": "pods"}
_OBJECT_SOURCES = {"Object": "object", "External": "external"}


def targets(obj: Object) -> str:
    specs, statuses = at(obj, "spec", "metrics") or [], at(obj, "status", "currentMetrics") or []
    if (percent := at(obj, "spec", "targetCPUUtilizationPercentage")) is not None:
        target = {"name": "cpu", "target": {"averageUtilization": percent}}
        current = {"averageUtilization": at(obj, "status", "currentCPUUtilizationPercentage")}
        specs = [{"type": "Resource", "resource": target}, *specs]
        statuses = [{"type": "Resource", "resource": {"current": current}}, *statuses]
    metric_texts = [
        _format_metric(spec, statuses[index] if index < len(statuses) else {}) for index, spec in enumerate(specs)
    ]
    omitted_suffix = f" + {len(metric_texts) - 2} more..." if len(metric_texts) > 2 else ""
    return ", ".join(metric_texts[:2]) + omitted_suffix if metric_texts else NONE


def _format_metric(metric: Object, status: Object) -> str:
    kind = metric.get("type") or ""
    key = _POD_SOURCES.get(kind) or _OBJECT_SOURCES.get(kind)
    if key is None:
        return "<unknown type>"
    source, reported = metric.get(key) or {}, status.get(key)
    target, current = source.get("target") or {}, (reported or {}).get("current") or {}
    if kind in _OBJECT_SOURCES:
        value, suffix = ("averageValue", " (avg)") if target.get("averageValue") is not None else ("value", "")
        missing_text = UNKNOWN if reported is None or suffix else "<nil>"
        return f"{current.get(value) or missing_text}/{target.get(value)}{suffix}"
    if kind == "Pods":
        return f"{current.get('averageValue') or UNKNOWN}/{target.get('averageValue')}"
    if target.get("averageValue") is not None:
        return f"{source.get('name')}: {current.get('averageValue') or UNKNOWN}/{target['averageValue']}"
    shown = (_format_percentage(current, UNKNOWN), _format_percentage(target, "<auto>"))
    return f"{source.get('name')}: {'/'.join(shown)}"


def _format_percentage(value: Object, missing_text: str) -> str:
    utilization = value.get("averageUtilization")
    return f"{utilization}%" if utilization is not None else missing_text
