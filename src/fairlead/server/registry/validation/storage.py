"""Validation of PersistentVolumeClaims, StorageClasses and CSIDrivers."""

from typing import Final

from fairlead.server.registry.validation.formats import dns_label, dns_subdomain, qualified_name
from fairlead.server.registry.validation.rules import (
    Errors,
    Object,
    Scope,
    build_validator,
    each,
    field,
    inside,
    lookup,
    on_update,
)
from fairlead.server.registry.validation.selectors import check_label_selector
from fairlead.server.schema import quantity

VOLUME_MODES: Final = ("Block", "Filesystem")
POSITIVE: Final = "must be greater than zero"
_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_LIFECYCLE_MODES: Final = ("Persistent", "Ephemeral")
_DATA_SOURCES: Final = ("dataSource", "dataSourceRef")
_SIZE: Final = "resources.requests.storage"


def check_access_modes(spec: Scope) -> Errors:
    modes = spec.items("accessModes")
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield spec.not_supported("accessModes", _ACCESS_MODES, mode)
    if "ReadWriteOncePod" in modes and any(mode in _ACCESS_MODES[:3] for mode in modes):
        yield spec.forbidden("accessModes", "may not use ReadWriteOncePod with other access modes")


def _check_requested_size(spec: Scope) -> Errors:
    size = spec.get(_SIZE)
    if size is None:
        yield spec.required("resources[storage]")
    elif quantity.parse(size)[0] <= 0:
        yield spec.invalid("resources[storage]", POSITIVE, size)


def _check_immutable_claim(claim: Scope) -> Errors:
    """Reject an update of a claim, except to the size and attributes class of a bound claim.

    The volume name and the storage class may also be set once.
    """
    new, old = claim.map("spec"), claim.old_value("spec") or {}
    is_bound = claim.get("status.phase") == "Bound"
    mutable = {"volumeAttributesClassName"} if is_bound else set()
    mutable |= {key for key, zero in (("volumeName", ""), ("storageClassName", None)) if old.get(key, zero) == zero}
    new_part, old_part = ({k: v for k, v in spec.items() if k not in mutable} for spec in (new, old))
    if is_bound and lookup(new_part, "resources.requests") is not None:
        new_part, old_part = ({**part, "resources": _drop_size(part["resources"])} for part in (new_part, old_part))
    if new_part != old_part:
        message = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield claim.forbidden("spec", message)
    size, old_size, capacity = (
        quantity.parse(size_text or "0")[0]
        for size_text in (lookup(new, _SIZE), lookup(old, _SIZE), claim.old_value("status.capacity.storage"))
    )
    if size < old_size and size <= capacity:
        yield claim.forbidden(f"spec.{_SIZE}", "field can not be less than status.capacity")


def _drop_size(resources: Object) -> Object:
    return {**resources, "requests": {k: v for k, v in (resources.get("requests") or {}).items() if k != "storage"}}


def _check_core_data_source(source: Scope) -> Errors:
    if not source.get("apiGroup") and source.get("kind") != "PersistentVolumeClaim":
        message = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield source.invalid("", message, source.text("kind"))


_DATA_SOURCE: Final = (
    field("name", "kind").required(),
    _check_core_data_source,
    field("apiGroup").optional(dns_subdomain),
    field("namespace").optional(dns_label),
)


def _check_data_sources(spec: Scope) -> Errors:
    """Check dataSource and dataSourceRef.

    An update of a claim that has an API group there does not check them again.
    """
    had_group = any(spec.old_value(f"{key}.apiGroup") is not None for key in _DATA_SOURCES)
    for key in _DATA_SOURCES:
        for error in inside(key, *_DATA_SOURCE)(spec):
            if not (had_group and error.field.endswith(".apiGroup")):
                yield error


claim_spec: Final = inside(
    "spec",
    field("accessModes").required(detail="at least 1 access mode is required"),
    check_label_selector("selector"),
    check_access_modes,
    _check_requested_size,
    field("storageClassName").optional(dns_subdomain),
    field("volumeMode").enum(*VOLUME_MODES),
    _check_data_sources,
    field("volumeAttributesClassName").optional(dns_subdomain),
    always=True,
)
claim: Final = build_validator(
    claim_spec, on_update(_check_immutable_claim, field("spec.volumeMode").immutable(name="volumeMode"))
)


def _check_parameter_names(storage_class: Scope) -> Errors:
    if "" in storage_class.map("parameters"):
        yield storage_class.invalid("parameters", "field can not be empty.", "")


def _check_provisioner(storage_class: Scope) -> Errors:
    return storage_class.check("provisioner", qualified_name, storage_class.text("provisioner").lower())


def _check_topologies(storage_class: Scope) -> Errors:
    earlier: list[dict[str, set[str]]] = [{} for _ in storage_class.items("allowedTopologies")]  # empty terms repeat
    for term in storage_class.each("allowedTopologies"):
        seen_values_by_key: dict[str, set[str]] = {}
        for expression in term.each("matchLabelExpressions"):
            key, values = expression.text("key"), expression.items("values")
            if not values:
                yield expression.required("values")
            for index, value in enumerate(values):
                if value in values[:index]:
                    yield expression.duplicate(f"values[{index}]", value)
            yield from expression.check("key", qualified_name, key)
            if key in seen_values_by_key:
                yield expression.duplicate("key")
            seen_values_by_key[key] = set(values)
        for _ in range(earlier.count(seen_values_by_key)):
            yield term.duplicate("matchLabelExpressions", "")
        earlier.append(seen_values_by_key)


storage_class: Final = build_validator(
    field("provisioner").required(),
    lambda storage_class: _check_provisioner(storage_class) if storage_class.get("provisioner") else (),
    _check_parameter_names,
    field("reclaimPolicy").enum("Delete", "Retain"),
    field("volumeBindingMode").enum("Immediate", "WaitForFirstConsumer"),
    _check_topologies,
    field("parameters").immutable(),
    field("provisioner").immutable(zero=""),
    field("reclaimPolicy", "volumeBindingMode").immutable(),
)


def _check_lifecycle_modes(spec: Scope) -> Errors:
    for mode in spec.items("volumeLifecycleModes"):
        if mode not in _LIFECYCLE_MODES:
            yield spec.not_supported("volumeLifecycleModes", _LIFECYCLE_MODES, mode)


driver: Final = build_validator(
    inside(
        "spec",
        field("fsGroupPolicy").enum("File", "None", "ReadWriteOnceWithFSType"),
        each(
            "tokenRequests",
            field("expirationSeconds").at_least(600, message="may not specify a duration less than 10 minutes"),
        ),
        _check_lifecycle_modes,
        field("attachRequired").immutable(name="attachedRequired"),
        field("volumeLifecycleModes").immutable(),
    )
)
