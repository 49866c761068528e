"""LimitRanges: the limits and requests that new Pods' containers get, and the bounds that refuse Pods and claims."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from fairlead.server.schema import quantity

Object = dict[str, Any]
ANNOTATION = "kubernetes.io/limit-ranger"
Amounts = dict[str, tuple[Decimal, str]]  # of each resource, and how it is written
_NONE = (Decimal(0), "")


def limited(pod: Object, ranges: Iterable[Object]) -> Object:
    """The Pod with what the ranges of its namespace set on its containers; the very Pod when that is nothing."""
    for limits in ranges:
        for item in _containers(limits):
            pod = _with_defaults(pod, item)
    return pod


def refusal(pod: Object, ranges: Iterable[Object]) -> str:
    """Why the first range that refuses a Pod does so, or ""."""
    spec = pod["spec"]
    held = [
        one.get("resources") or {} for one in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    ]
    for limits in ranges:
        found: list[str] = []
        for item in _items(limits):
            measured = {"Container": held, "Pod": [_whole(spec)]}.get(item.get("type") or "", [])
            found += [told for resources in measured for told in _out_of_bounds(resources, item)]
        if found:
            return _told(found)
    return ""


def claim_refusal(claim: Object, ranges: Iterable[Object]) -> str:
    """Why the first range that refuses a claim does so, or "": what it requests counts, limits do not."""
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    for limits in ranges:
        items = [item for item in _items(limits) if item.get("type") == "PersistentVolumeClaim"]
        found = [told for item in items for told in _least({"requests": requests}, item)]
        found += [told for item in items for told in _bounded(item, "max", 1, [("request", requests)])]
        if found:
            return _told(found)
    return ""


def _told(found: list[str]) -> str:
    once = list(dict.fromkeys(found))
    return once[0] if len(once) == 1 else f"[{', '.join(once)}]"


def _items(limits: Object) -> list[Object]:
    return (limits.get("spec") or {}).get("limits") or []


def _containers(limits: Object) -> list[Object]:
    return [item for item in _items(limits) if item.get("type") == "Container"]


def _whole(spec: Object) -> Object:
    """What a Pod asks for and may use at most: what runs together, or what has to start if that is more."""
    made: Object = {}
    for part in ("requests", "limits"):
        total: Amounts = {}
        staying: Amounts = {}
        starting: Amounts = {}
        for one in spec.get("containers") or ():
            total = _sum(total, _given(one, part))
        for one in spec.get("initContainers") or ():
            now = _sum(staying, _given(one, part))
            if one.get("restartPolicy") == "Always":
                total, staying = _sum(total, _given(one, part)), now
            starting = _most(starting, now)
        summed = {name: quantity.format_quantity(*amount) for name, amount in _most(total, starting).items()}
        made[part] = summed | _given(spec, part)
    return made


def _given(one: Object, part: str) -> Object:
    return (one.get("resources") or {}).get(part) or {}


def _most(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, _NONE), other.get(name, _NONE)) for name in one | other}


def _sum(total: Amounts, amounts: Object) -> Amounts:
    made = dict(total)
    for name, text in amounts.items():
        value, form = quantity.parse(text)
        made[name] = (made[name][0] + value, made[name][1]) if name in made else (value, form)
    return made


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
    most = _bounded(item, "max", 1, [("limit", limits), ("request", requests)])
    return _least(resources, item) + most + _ratios(requests, limits, item)


def _least(resources: Object, item: Object) -> list[str]:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    return _bounded(item, "min", -1, [("request", requests), ("limit", limits)])


def _bounded(item: Object, word: str, way: int, held: list[tuple[str, Object]]) -> list[str]:
    """What of these goes beyond a bound; the first must be given."""
    found: list[str] = []
    for name, bound in (item.get(word) or {}).items():
        told = f"{word}imum {name} usage per {item['type']} is {bound}"
        if name not in held[0][1]:
            found.append(f"{told}.  No {held[0][0]} is specified")
            continue
        beyond = [(called, given[name]) for called, given in held if name in given and _beyond(given[name], bound, way)]
        found += [f"{told}, but {called} is {amount}" for called, amount in beyond[:1]]
    return found


def _ratios(requests: Object, limits: Object, item: Object) -> list[str]:
    found: list[str] = []
    for name, bound in (item.get("maxLimitRequestRatio") or {}).items():
        told = f"{name} max limit to request ratio per {item['type']} is {bound}"
        asked, most = (quantity.parse(given.get(name, "0"))[0] for given in (requests, limits))
        missing = [word for word, amount in (("request", asked), ("limit", most)) if not amount]
        if missing:
            found.append(f"{told}, but no {missing[0]} is specified or {missing[0]} is 0")
        elif most / asked > quantity.parse(bound)[0]:
            found.append(f"{told}, but provided ratio is {most / asked:.6f}")
    return found


def _beyond(value: str, bound: str, way: int) -> bool:
    return (quantity.parse(value)[0] - quantity.parse(bound)[0]) * way > 0
