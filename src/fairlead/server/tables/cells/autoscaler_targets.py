"""What an autoscaler aims at, and where it is."""

from fairlead.server.registry.resource import Object
from fairlead.server.tables.ages import UNKNOWN
from fairlead.server.tables.cells.formatters import NONE, at

_SOURCES = {"Resource": "resource", "ContainerResource": "containerResource", "Pods": "pods"}
_OTHERS = {"Object": "object", "External": "external"}


def targets(obj: Object) -> str:
    wanted, now = at(obj, "spec", "metrics") or [], at(obj, "status", "currentMetrics") or []
    if (percent := at(obj, "spec", "targetCPUUtilizationPercentage")) is not None:
        target = {"name": "cpu", "target": {"averageUtilization": percent}}
        current = {"averageUtilization": at(obj, "status", "currentCPUUtilizationPercentage")}
        wanted = [{"type": "Resource", "resource": target}, *wanted]
        now = [{"type": "Resource", "resource": {"current": current}}, *now]
    shown = [_metric(metric, now[index] if index < len(now) else {}) for index, metric in enumerate(wanted)]
    more = f" + {len(shown) - 2} more..." if len(shown) > 2 else ""
    return ", ".join(shown[:2]) + more if shown else NONE


def _metric(metric: Object, status: Object) -> str:
    kind = metric.get("type") or ""
    key = _SOURCES.get(kind) or _OTHERS.get(kind)
    if key is None:
        return "<unknown type>"
    source, held = metric.get(key) or {}, status.get(key)
    target, current = source.get("target") or {}, (held or {}).get("current") or {}
    if kind in _OTHERS:
        value, mark = ("averageValue", " (avg)") if target.get("averageValue") is not None else ("value", "")
        missing = UNKNOWN if held is None or mark else "<nil>"
        return f"{current.get(value) or missing}/{target.get(value)}{mark}"
    if kind == "Pods":
        return f"{current.get('averageValue') or UNKNOWN}/{target.get('averageValue')}"
    if target.get("averageValue") is not None:
        return f"{source.get('name')}: {current.get('averageValue') or UNKNOWN}/{target['averageValue']}"
    ends = [one.get("averageUtilization") for one in (current, target)]
    now, aim = (f"{end}%" if end is not None else word for end, word in zip(ends, (UNKNOWN, "<auto>"), strict=True))
    return f"{source.get('name')}: {now}/{aim}"
