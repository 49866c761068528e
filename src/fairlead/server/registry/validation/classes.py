"""Priority, runtime and ingress classes."""

from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.placing import toleration
from fairlead.server.registry.validation.rules import (
    checks,
    choice,
    each,
    fixed,
    inside,
    needed,
    on_update,
    value,
    words,
)
from fairlead.server.registry.validation.vocabulary import Object, domain_path, labels, subdomain
from fairlead.server.schema import quantity
from fairlead.server.write import names

_LONGEST: Final = 250
_HIGHEST: Final = 1_000_000_000


def _value_kept(new: Object, old: Object | None, path: str) -> list[FieldError]:
    same = old is None or (new.get("value") or 0) == (old.get("value") or 0)
    return [] if same else [field_errors.forbidden("value", "may not be changed in an update.")]


def _reserved(new: Object, old: Object | None, path: str) -> list[FieldError]:
    """Names and values that the system keeps for itself."""
    name, priority = new["metadata"].get("name") or "", new.get("value") or 0
    if old is not None:
        return []
    if name.startswith("system-"):
        told = "priority class names with 'system-' prefix are reserved for system use only. error: "
        told += f"{name} is not a known system priority class"
        return [field_errors.forbidden("metadata.name", told)]
    if priority > _HIGHEST:
        told = f"maximum allowed value of a user defined priority is {_HIGHEST}"
        return [field_errors.forbidden("value", told)]
    return choice("preemptionPolicy", ("PreemptLowerPriority", "Never"))(new, old, path)


priority_class: Final = checks(_reserved, on_update(_value_kept, fixed("preemptionPolicy")))


def _overhead(field: str, amounts: Object) -> list[FieldError]:
    told = "must be greater than or equal to 0"
    below = [(name, amount) for name, amount in amounts.items() if quantity.parse(amount)[0] < 0]
    return [field_errors.invalid(f"overhead.limits[{name}]", amount, told) for name, amount in below]


def _tolerations_once(new: Object, old: Object | None, path: str) -> list[FieldError]:
    given = (new.get("scheduling") or {}).get("tolerations") or []
    again = [(at, one) for at, one in enumerate(given) if one in given[:at]]
    return [field_errors.duplicate(f"scheduling.tolerations[{at}]", one) for at, one in again]


runtime_class: Final = checks(
    needed("handler"),
    words("handler", names.label),
    value("overhead.podFixed", _overhead),
    value("scheduling.nodeSelector", labels),
    each("scheduling.tolerations", toleration),
    _tolerations_once,
    fixed("handler", empty=""),
)


def _scoped(parameters: Object, old: Object | None, path: str) -> list[FieldError]:
    scope, namespace, field = parameters.get("scope"), parameters.get("namespace"), f"{path}.namespace"
    if scope == "Namespace" and not namespace:
        return [field_errors.required(field, "`parameters.scope` is set to 'Namespace'")]
    if scope == "Cluster" and namespace is not None:
        return [field_errors.forbidden(field, "`parameters.scope` is set to 'Cluster'")]
    return []


def _long(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    given = spec.get("controller") or ""
    return [field_errors.too_long(f"{path}.controller", _LONGEST)] if len(given) > _LONGEST else []


ingress_class: Final = checks(
    fixed("spec.controller", empty=""),
    inside(
        "spec",
        needed("controller"),
        _long,
        value("controller", lambda field, text: domain_path(field, text) if text else []),
        inside(
            "parameters",
            value("apiGroup", subdomain),
            needed("kind"),
            words("kind", names.path_segment),
            needed("name"),
            words("name", names.path_segment),
            choice("scope", ("Cluster", "Namespace")),
            _scoped,
        ),
        always=True,
    ),
)
