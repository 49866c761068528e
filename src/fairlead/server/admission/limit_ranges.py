"""LimitRanger: LimitRanges set default requests and limits of new containers, and bound those of Pods and claims."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from fairlead.server.admission.plugin import CREATE, AdmissionAttributes, AdmissionPlugin
from fairlead.server.schema import quantity

Object = dict[str, Any]
ANNOTATION = "kubernetes.io/limit-ranger"
Amounts = dict[str, tuple[Decimal, str]]  # resource name -> amount and its suffix format
_ZERO = (Decimal(0), "")


class LimitRanger(AdmissionPlugin):
    resources = frozenset((("", "pods"), ("", "persistentvolumeclaims")))

    def admit(self, attributes: AdmissionAttributes) -> None:
        if attributes.operation == CREATE and attributes.resource.kind == "Pod" and attributes.object is not None:
            attributes.object = set_defaults(attributes.object, self._list_ranges(attributes))

    def validate(self, attributes: AdmissionAttributes) -> None:
        obj, error = attributes.object, ""
        assert obj is not None
        if attributes.resource.kind == "PersistentVolumeClaim":
            error = check_claim(obj, self._list_ranges(attributes))
        elif attributes.operation == CREATE:
            error = check_pod(obj, self._list_ranges(attributes))
        if error:
            raise attributes.forbid(error)

    def _list_ranges(self, attributes: AdmissionAttributes) -> Iterable[Object]:
        return self.list_stored("", "limitranges", attributes.namespace)


def set_defaults(pod: Object, ranges: Iterable[Object]) -> Object:
    """Return the Pod with the default requests and limits of the LimitRanges, or `pod` itself if they add none."""
    for limit_range in ranges:
        for item in _get_limits(limit_range):
            if item.get("type") == "Container":
                pod = _set_container_defaults(pod, item)
    return pod


def check_pod(pod: Object, ranges: Iterable[Object]) -> str:
    """Return why a LimitRange of the namespace rejects a Pod, or "" if all of them permit the Pod."""
    spec = pod["spec"]
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    by_type = {
        "Container": [container.get("resources") or {} for container in containers],
        "Pod": [_sum_pod_resources(spec)],
    }
    for limit_range in ranges:
        errors = [
            error
            for item in _get_limits(limit_range)
            for resources in by_type.get(item.get("type") or "", [])
            for error in _check_bounds(resources, item)
        ]
        if errors:
            return _join_unique(errors)
    return ""


def check_claim(claim: Object, ranges: Iterable[Object]) -> str:
    """Return why a LimitRange rejects a PersistentVolumeClaim, or "".

    Only the requests of the claim count, not its limits.
    """
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    for limit_range in ranges:
        items = [item for item in _get_limits(limit_range) if item.get("type") == "PersistentVolumeClaim"]
        errors = [error for item in items for error in _check_minimum({"requests": requests}, item)]
        errors += [error for item in items for error in _check_bound(item, "max", 1, [("request", requests)])]
        if errors:
            return _join_unique(errors)
    return ""


def _join_unique(errors: list[str]) -> str:
    unique = list(dict.fromkeys(errors))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def _get_limits(limit_range: Object) -> list[Object]:
    return (limit_range.get("spec") or {}).get("limits") or []


def _sum_pod_resources(spec: Object) -> Object:
    """Return the requests and limits of a whole Pod.

    The amount of a resource is the sum over the containers that run at the same time, or the maximum during
    initialization if that is larger.
    """
    result: Object = {}
    for part in ("requests", "limits"):
        total: Amounts = {}
        sidecars: Amounts = {}
        initialization: Amounts = {}
        for container in spec.get("containers") or ():
            total = _add_amounts(total, _get_amounts(container, part))
        for container in spec.get("initContainers") or ():
            with_sidecars = _add_amounts(sidecars, _get_amounts(container, part))
            if container.get("restartPolicy") == "Always":
                total, sidecars = _add_amounts(total, _get_amounts(container, part)), with_sidecars
            initialization = _take_larger_amounts(initialization, with_sidecars)
        summed = {
            name: quantity.format_quantity(*amount)
            for name, amount in _take_larger_amounts(total, initialization).items()
        }
        result[part] = summed | _get_amounts(spec, part)
    return result


def _get_amounts(container: Object, part: str) -> Object:
    return (container.get("resources") or {}).get(part) or {}


def _take_larger_amounts(a: Amounts, b: Amounts) -> Amounts:
    return {name: max(a.get(name, _ZERO), b.get(name, _ZERO)) for name in a | b}


def _add_amounts(total: Amounts, amounts: Object) -> Amounts:
    result = dict(total)
    for name, text in amounts.items():
        value, suffix = quantity.parse(text)
        result[name] = (result[name][0] + value, result[name][1]) if name in result else (value, suffix)
    return result


def _set_container_defaults(pod: Object, item: Object) -> Object:
    spec, notes = dict(pod["spec"]), []
    for key, description in (("containers", "container"), ("initContainers", "init container")):
        containers = []
        for container in spec.get(key) or ():
            resources = dict(container.get("resources") or {})
            for part, default, word in (("requests", "defaultRequest", "request"), ("limits", "default", "limit")):
                present = resources.get(part) or {}
                missing = {name: value for name, value in (item.get(default) or {}).items() if name not in present}
                if missing:
                    resources[part] = {**present, **missing}
                    notes.append(f"{', '.join(sorted(missing))} {word} for {description} {container['name']}")
            containers.append({**container, "resources": resources})
        if containers:
            spec[key] = containers
    if not notes:
        return pod
    annotations = {
        **(pod["metadata"].get("annotations") or {}),
        ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}",
    }
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}, "spec": spec}


def _check_bounds(resources: Object, item: Object) -> list[str]:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    maximum_errors = _check_bound(item, "max", 1, [("limit", limits), ("request", requests)])
    return _check_minimum(resources, item) + maximum_errors + _check_ratios(requests, limits, item)


def _check_minimum(resources: Object, item: Object) -> list[str]:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    return _check_bound(item, "min", -1, [("request", requests), ("limit", limits)])


def _check_bound(item: Object, bound_type: str, sign: int, amounts: list[tuple[str, Object]]) -> list[str]:
    """Return an error for each resource that is beyond the `min` or `max` of a LimitRange item.

    A resource that the first of `amounts` does not specify is an error too.
    """
    errors: list[str] = []
    first_word, first = amounts[0]
    for name, bound in (item.get(bound_type) or {}).items():
        message = f"{bound_type}imum {name} usage per {item['type']} is {bound}"
        if name not in first:
            errors.append(f"{message}.  No {first_word} is specified")
            continue
        exceeding = [
            (word, values[name])
            for word, values in amounts
            if name in values and _is_beyond_bound(values[name], bound, sign)
        ]
        errors += [f"{message}, but {word} is {amount}" for word, amount in exceeding[:1]]
    return errors


def _check_ratios(requests: Object, limits: Object, item: Object) -> list[str]:
    errors: list[str] = []
    for name, bound in (item.get("maxLimitRequestRatio") or {}).items():
        message = f"{name} max limit to request ratio per {item['type']} is {bound}"
        request, limit = (quantity.parse(amounts.get(name, "0"))[0] for amounts in (requests, limits))
        missing = [word for word, amount in (("request", request), ("limit", limit)) if not amount]
        if missing:
            errors.append(f"{message}, but no {missing[0]} is specified or {missing[0]} is 0")
        elif limit / request > quantity.parse(bound)[0]:
            errors.append(f"{message}, but provided ratio is {limit / request:.6f}")
    return errors


def _is_beyond_bound(value: str, bound: str, sign: int) -> bool:
    return (quantity.parse(value)[0] - quantity.parse(bound)[0]) * sign > 0
