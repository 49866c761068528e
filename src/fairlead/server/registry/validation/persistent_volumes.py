"""Validation of PersistentVolumes."""

from typing import Final

from fairlead.server.registry.validation.formats import dns_subdomain, path_without_parents
from fairlead.server.registry.validation.rules import (
    IMMUTABLE,
    Errors,
    Object,
    Rule,
    Scope,
    apply,
    build_validator,
    field,
    first_error,
    inside,
    on_update,
)
from fairlead.server.registry.validation.scheduling import node_selector
from fairlead.server.registry.validation.storage import POSITIVE, VOLUME_MODES, check_access_modes
from fairlead.server.registry.validation.volumes import CSI_DRIVER, NAMES_INSIDE, SOURCES
from fairlead.server.schema import quantity

_NOT_SOURCES: Final = frozenset(
    {
        "capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName", "mountOptions",
        "volumeMode", "nodeAffinity", "volumeAttributesClassName",
    }
)  # fmt: skip
_SECRETS: Final = ("controllerPublish", "controllerExpand", "nodePublish", "nodeExpand")
_OWN_SOURCES: Final[dict[str, tuple[Rule, ...]]] = {  # the sources that differ from those of a Pod's volume
    "csi": (
        *CSI_DRIVER,
        field("volumeHandle").required(),
        *(inside(f"{key}SecretRef", field("name", "namespace").required()) for key in _SECRETS),
    ),
    "local": (field("path").required(path_without_parents),),
}


def _get_sources(spec: Object) -> Object:
    return {key: source for key, source in spec.items() if key not in _NOT_SOURCES and source is not None}


def _check_one_source(spec: Scope) -> Errors:
    sources = list(_get_sources(spec.value))
    if not sources:
        yield spec.required("", "must specify a volume type")
        return
    for key in sources[1:]:
        yield spec.forbidden(key, "may not specify more than 1 volume type")
    first = sources[0]
    rules = _OWN_SOURCES.get(first) or SOURCES.get(first, ())
    yield from apply(rules, spec.inside(first, NAMES_INSIDE.get(first, "")))
    if first == "local" and spec.get("nodeAffinity") is None:
        yield spec.required("nodeAffinity", "Local volume requires node affinity")


def _check_capacity(spec: Scope) -> Errors:
    capacity = spec.get("capacity")
    if not capacity:
        yield spec.required("capacity")
    if list(capacity or ()) != ["storage"]:
        yield spec.not_supported("capacity", ("storage",), capacity)
    for name, amount in (capacity or {}).items():
        if quantity.parse(amount)[0] <= 0:
            yield spec.invalid(f"capacity[{name}]", POSITIVE, amount)


def _check_immutable_source(volume: Scope) -> Errors:
    if _get_sources(volume.map("spec")) != _get_sources(volume.old_value("spec") or {}):
        message = "spec.persistentvolumesource is immutable after creation"
        yield volume.forbidden("spec.persistentvolumesource", message)


def _check_immutable_node_affinity(volume: Scope) -> Errors:
    old = volume.old_value("spec.nodeAffinity")
    if old is not None and old != volume.get("spec.nodeAffinity"):
        message = f"{IMMUTABLE}, except for updating from beta label to GA"
        yield volume.invalid("nodeAffinity", message, volume.get("spec.nodeAffinity"))


_SPEC: Final = inside(
    "spec",
    field("accessModes").required(),
    check_access_modes,
    _check_capacity,
    field("persistentVolumeReclaimPolicy").enum("Delete", "Recycle", "Retain"),
    inside(
        "nodeAffinity",
        first_error(
            field("required").required(detail="must specify required node constraints", allow_empty=True),
            inside("required", node_selector),
        ),
    ),
    _check_one_source,
    field("storageClassName").optional(dns_subdomain),
    field("volumeMode").enum(*VOLUME_MODES),
    always=True,
)
volume: Final = build_validator(
    _SPEC,
    on_update(  # a real server checks the spec twice, and reports its errors twice
        _SPEC,
        _check_immutable_source,
        field("spec.volumeMode").immutable(name="volumeMode"),
        _check_immutable_node_affinity,
    ),
)
