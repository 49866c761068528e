"""Claims, volumes, storage classes and drivers."""

from typing import Any, Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
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
from fairlead.server.registry.validation.vocabulary import Object, at, qualified, selector
from fairlead.server.schema import quantity
from fairlead.server.write import names

_CLAIM: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_ACCESS: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
MODES: Final = ("Block", "Filesystem")
POSITIVE: Final = "must be greater than zero"
_TEN_MINUTES: Final = 600


def accessed(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    modes, field = spec.get("accessModes") or [], f"{path}.accessModes"
    found = [field_errors.not_supported(field, mode, _ACCESS) for mode in modes if mode not in _ACCESS]
    if "ReadWriteOncePod" in modes and any(mode in _ACCESS[:3] for mode in modes):
        found.append(field_errors.forbidden(field, "may not use ReadWriteOncePod with other access modes"))
    return found


def _requested(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    amount, field = at(spec, "resources.requests.storage"), f"{path}.resources[storage]"
    if amount is None:
        return [field_errors.required(field)]
    return [] if quantity.parse(amount)[0] > 0 else [field_errors.invalid(field, amount, POSITIVE)]


def _claim_kept(new: Object, old: Object | None, path: str) -> list[FieldError]:
    assert old is not None
    spec, was = new.get("spec") or {}, old.get("spec") or {}
    bound = at(new, "status.phase") == "Bound"
    free = {"volumeAttributesClassName"} if bound else set()
    free |= {key for key, none in (("volumeName", ""), ("storageClassName", None)) if was.get(key, none) == none}
    kept, before = ({k: v for k, v in one.items() if k not in free} for one in (spec, was))
    if bound and at(kept, "resources.requests") is not None:
        kept, before = ({**one, "resources": _unsized(one["resources"])} for one in (kept, before))
    found = [] if kept == before else [field_errors.forbidden("spec", _CLAIM)]
    size, past, full = (
        quantity.parse(at(one, where) or "0")[0]
        for one, where in (
            (spec, "resources.requests.storage"),
            (was, "resources.requests.storage"),
            (old, "status.capacity.storage"),
        )
    )
    if size < past and size <= full:
        told = "field can not be less than status.capacity"
        found.append(field_errors.forbidden("spec.resources.requests.storage", told))
    return found + fixed("spec.volumeMode", named="volumeMode")(new, old, "")


def _unsized(resources: Object) -> Object:
    return {**resources, "requests": {k: v for k, v in (resources.get("requests") or {}).items() if k != "storage"}}


def _from(source: Object, old: Object | None, path: str) -> list[FieldError]:
    """What a claim's volume is filled from."""
    group, kind = source.get("apiGroup") or "", source.get("kind") or ""
    found = needed("name", "kind")(source, None, path)
    if not group and kind != "PersistentVolumeClaim":
        told = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        found.append(field_errors.invalid(path, kind, told))
    found += words("apiGroup", names.subdomain)(source, None, path)
    return found + words("namespace", names.label)(source, None, path)


def _filled(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    known = any(at(old or {}, f"{key}.apiGroup") is not None for key in ("dataSource", "dataSourceRef"))
    found = [c for key in ("dataSource", "dataSourceRef") for c in inside(key, _from)(spec, None, path)]
    return [cause for cause in found if not (known and cause.field.endswith(".apiGroup"))]


claim_spec: Final = inside(
    "spec",
    needed("accessModes", told="at least 1 access mode is required"),
    value("selector", selector),
    accessed,
    _requested,
    words("storageClassName", names.subdomain),
    choice("volumeMode", MODES),
    _filled,
    words("volumeAttributesClassName", names.subdomain),
    always=True,
)
claim: Final = checks(claim_spec, on_update(_claim_kept))


def _keys(field: str, parameters: Object) -> list[FieldError]:
    return [field_errors.invalid(field, "", "field can not be empty.") for key in parameters if not key]


def _provisioner(field: str, text: str) -> list[FieldError]:
    return [field_errors.invalid(field, text.lower(), told) for told in names.qualified(text.lower())] if text else []


def _topology(field: str, terms: list[Any]) -> list[FieldError]:
    found: list[FieldError] = []
    before: list[dict[str, set[str]]] = [{} for _ in terms]  # a term of nothing is none
    for index, term in enumerate(terms):
        here, seen = f"{field}[{index}].matchLabelExpressions", dict[str, set[str]]()
        for place, one in enumerate(term.get("matchLabelExpressions") or ()):
            key, values = one.get("key") or "", one.get("values") or []
            found += [] if values else [field_errors.required(f"{here}[{place}].values")]
            again = [(at_, text) for at_, text in enumerate(values) if text in values[:at_]]
            found += [field_errors.duplicate(f"{here}[{place}].values[{at_}]", text) for at_, text in again]
            found += qualified(f"{here}[{place}].key", key)
            found += [field_errors.duplicate(f"{here}[{place}].key", key)] if key in seen else []
            seen[key] = set(values)
        found += [field_errors.duplicate(here, "")] * before.count(seen)
        before.append(seen)
    return found


storage_class: Final = checks(
    needed("provisioner"),
    value("provisioner", _provisioner),
    value("parameters", _keys),
    choice("reclaimPolicy", ("Delete", "Retain")),
    choice("volumeBindingMode", ("Immediate", "WaitForFirstConsumer")),
    value("allowedTopologies", _topology),
    fixed("parameters"),
    fixed("provisioner", empty=""),
    fixed("reclaimPolicy", "volumeBindingMode"),
)


def _lifecycles(field: str, modes: list[str]) -> list[FieldError]:
    allowed = ("Persistent", "Ephemeral")
    return [field_errors.not_supported(field, mode, allowed) for mode in modes if mode not in allowed]


def _lasting(field: str, seconds: int) -> list[FieldError]:
    told = "may not specify a duration less than 10 minutes"
    return [field_errors.invalid(field, seconds, told)] if seconds < _TEN_MINUTES else []


driver: Final = checks(
    inside(
        "spec",
        choice("fsGroupPolicy", ("File", "None", "ReadWriteOnceWithFSType")),
        each("tokenRequests", value("expirationSeconds", _lasting)),
        value("volumeLifecycleModes", _lifecycles),
        fixed("attachRequired", named="attachedRequired"),
        fixed("volumeLifecycleModes"),
    ),
)
