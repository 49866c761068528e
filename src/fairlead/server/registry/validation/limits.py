"""Resource quotas and limit ranges."""

from decimal import Decimal
from typing import Any, Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.rules import checks, each, fixed, inside
from fairlead.server.registry.validation.vocabulary import Object
from fairlead.server.schema import quantity
from fairlead.server.write import names

_COUNTED: Final = frozenset(
    {
        "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    }
)  # fmt: skip
_COMPUTE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD: Final = _COUNTED | _COMPUTE | {"storage", "requests.storage"} | {
    f"{which}.{name}" for which in ("requests", "limits") for name in _COMPUTE
}  # fmt: skip
_SCOPES: Final = (
    "Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
)  # fmt: skip
_OPPOSITE: Final = ({"Terminating", "NotTerminating"}, {"BestEffort", "NotBestEffort"})
_TYPES: Final = ("Container", "Pod", "PersistentVolumeClaim")


def _hard(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for name, amount in (spec.get("hard") or {}).items():
        number, field = quantity.parse(amount)[0], f"{path}.hard[{name}]"
        found += [field_errors.invalid(field, name, told) for told in names.qualified(name)]
        if "/" not in name and name not in _STANDARD and not _huge(name):
            told = "must be a standard resource type or fully qualified"
            found.append(field_errors.invalid(field, name, told))
            found.append(field_errors.invalid(field, name, "must be a standard resource for quota"))
        if number < 0:
            found.append(field_errors.invalid(field, amount, "must be greater than or equal to 0"))
        counted = name in _COUNTED or name.startswith("count/") or ("/" in name and "kubernetes.io/" not in name)
        if counted and number != number.to_integral_value():
            found.append(field_errors.invalid(field, amount, "must be an integer"))
    return found


def _huge(name: str) -> bool:
    return name.startswith(("hugepages-", "requests.hugepages-", "limits.hugepages-"))


def _scopes(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    scopes, field = spec.get("scopes") or [], f"{path}.scopes"
    found: list[FieldError] = []
    for scope in scopes:
        if scope not in _SCOPES:
            found.append(field_errors.invalid(field, scopes, "unsupported scope"))
        elif scope == "BestEffort" and any(name != "pods" for name in spec.get("hard") or ()):
            found.append(field_errors.invalid(field, scopes, "unsupported scope applied to resource"))
    found += [field_errors.invalid(field, scopes, "conflicting scopes") for pair in _OPPOSITE if pair <= set(scopes)]
    return found


def _scope_selector(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for one in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        here, operator, values = f"{path}.scopeSelector.matchExpressions", one.get("operator"), one.get("values") or []
        if one.get("scopeName") not in _SCOPES:
            found.append(field_errors.invalid(f"{here}.scopeName", one.get("scopeName") or "", "unsupported scope"))
        if operator in ("In", "NotIn") and not values:
            told = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            found.append(field_errors.required(f"{here}.values", told))
        elif operator in ("Exists", "DoesNotExist") and values:
            told = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            found.append(field_errors.invalid(f"{here}.values", values, told))
        elif operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            found.append(field_errors.invalid(f"{here}.operator", operator or "", "not a valid selector operator"))
    return found


resource_quota: Final = checks(inside("spec", _hard, _scopes, _scope_selector), fixed("spec.scopes"))


def _limit_type(item: Object, old: Object | None, path: str) -> list[FieldError]:
    kind = item.get("type") or ""
    found = [field_errors.invalid(f"{path}.type", kind, told) for told in names.qualified(kind)]
    if not found and "/" not in kind and kind not in _TYPES:
        told = "must be a standard limit type or fully qualified"
        found.append(field_errors.invalid(f"{path}.type", kind, told))
    return found


def _default(item: Object, old: Object | None, path: str) -> list[FieldError]:
    kind = item.get("type")
    found: list[FieldError] = []
    if kind == "Pod":
        told = "may not be specified when `type` is 'Pod'"
        found += [
            field_errors.forbidden(f"{path}.{key}", told) for key in ("default", "defaultRequest") if item.get(key)
        ]
    if kind == "PersistentVolumeClaim" and not any("storage" in (item.get(key) or {}) for key in ("min", "max")):
        told = "either minimum or maximum storage value is required, but neither was provided"
        found.append(field_errors.required(f"{path}.limits", told))
    return found


def _ranges(item: Object, old: Object | None, path: str) -> list[FieldError]:
    """Minimum, default request, default and maximum follow each other."""
    keys = ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
    named = sorted({name for key in keys for name in item.get(key) or ()})
    return [cause for name in named for cause in _range(item, name, path)]


def _range(item: Object, name: str, path: str) -> list[FieldError]:
    texts = {key: (item.get(key) or {}).get(name) for key in ("min", "max", "default", "defaultRequest")}
    given: dict[str, Any] = {key: quantity.parse(text)[0] for key, text in texts.items() if text is not None}
    found: list[FieldError] = []

    def ordered(low: str, high: str, field: str, shown: str, told: str) -> None:
        if low in given and high in given and given[low] > given[high]:
            said = told.format(low=texts[low], high=texts[high])
            found.append(field_errors.invalid(f"{path}.{field}[{name}]", texts[shown], said))

    request, limit = "defaultRequest", "default"
    ordered("min", "max", "min", "min", "min value {low} is greater than max value {high}")
    ordered("min", request, request, request, "min value {low} is greater than default request value {high}")
    ordered(request, "max", request, request, "default request value {low} is greater than max value {high}")
    ordered(request, limit, request, request, "default request value {low} is greater than default limit value {high}")
    ordered("min", limit, limit, "min", "min value {low} is greater than default value {high}")
    ordered(limit, "max", limit, "max", "default value {low} is greater than max value {high}")
    return found + _ratio(item, name, given, path)


def _ratio(item: Object, name: str, given: dict[str, Decimal], path: str) -> list[FieldError]:
    text = (item.get("maxLimitRequestRatio") or {}).get(name)
    if text is None:
        return []
    ratio, field = quantity.parse(text)[0], f"{path}.maxLimitRequestRatio[{name}]"
    found = [field_errors.invalid(field, text, f"ratio {text} is less than 1")] if ratio < 1 else []
    if given.get("min") and "max" in given and ratio > (most := given["max"] / given["min"]):
        found.append(field_errors.invalid(field, text, f"ratio {text} is greater than max/min = {most:.6f}"))
    return found


def _once(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    types = [item.get("type") for item in spec.get("limits") or ()]
    return [
        field_errors.duplicate(f"{path}.limits[{i}].type", kind) for i, kind in enumerate(types) if kind in types[:i]
    ]


limit_range: Final = checks(inside("spec", _once, each("limits", _limit_type, _default, _ranges)))
