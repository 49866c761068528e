"""LimitRanges: the limits and requests that new Pods' containers get, and the bounds that refuse them.

Ranges of type Container are held: default, defaultRequest, min and max. Ratios and the sums of whole Pods are not.
"""

from collections.abc import Iterable
from typing import Any

from fairlead.server.schema import quantity

Object = dict[str, Any]
ANNOTATION = "kubernetes.io/limit-ranger"


def limited(pod: Object, ranges: Iterable[Object]) -> Object:
    """The Pod with what the ranges of its namespace set on its containers; the very Pod when that is nothing."""
    for limits in ranges:
        for item in _containers(limits):
            pod = _with_defaults(pod, item)
    return pod


def refusal(pod: Object, ranges: Iterable[Object]) -> str:
    """Why the ranges refuse a Pod, or ""."""
    found = [
        told
        for limits in ranges
        for item in _containers(limits)
        for container in [*(pod["spec"].get("containers") or ()), *(pod["spec"].get("initContainers") or ())]
        for told in _out_of_bounds(container.get("resources") or {}, item)
    ]
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]" if found else ""


def _containers(limits: Object) -> list[Object]:
    return [item for item in (limits.get("spec") or {}).get("limits") or () if item.get("type") == "Container"]


def _with_defaults(pod: Object, item: Object) -> Object:
    spec, notes = dict(pod["spec"]), []
    for key, called in (("containers", "container"), ("initContainers", "init container")):
        made = []
        for container in spec.get(key) or ():
            resources = dict(container.get("resources") or {})
            for part, default, word in (("requests", "defaultRequest", "request"), ("limits", "default", "limit")):
                given = resources.get(part) or {}
                missing = {name: value for name, value in (item.get(default) or {}).items() if name not in given}
                if missing:
                    resources[part] = {**given, **missing}
                    notes.append(f"{', '.join(sorted(missing))} {word} for {called} {container['name']}")
            made.append({**container, "resources": resources})
        if made:
            spec[key] = made
    if not notes:
        return pod
    annotations = {
        **(pod["metadata"].get("annotations") or {}),
        ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}",
    }
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}, "spec": spec}


def _out_of_bounds(resources: Object, item: Object) -> list[str]:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    found: list[str] = []
    for word, needed, both in (("min", requests, -1), ("max", limits, 1)):
        for name, bound in (item.get(word) or {}).items():
            told = f"{word}imum {name} usage per Container is {bound}"
            kind = "request" if needed is requests else "limit"
            if name not in needed:
                found.append(f"{told}.  No {kind} is specified")
                continue
            for called, given in ((kind, needed), ("limit", limits) if kind == "request" else ("request", requests)):
                if name in given and _beyond(given[name], bound, both):
                    found.append(f"{told}, but {called} is {given[name]}")
                    break
    return found


def _beyond(value: str, bound: str, way: int) -> bool:
    return (quantity.parse(value)[0] - quantity.parse(bound)[0]) * way > 0
