"""Namespaces, claims, Leases and classes."""

from typing import Final

from fairlead.server import causes
from fairlead.server.causes import Cause
from fairlead.server.registry.checks.vocabulary import Object, at, one_of, unchanged
from fairlead.server.schema import quantity

_CLAIM: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_COUNTED: Final = frozenset(
    {
        "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    }
)  # fmt: skip
_HIGHEST: Final = 1_000_000_000


def namespace(new: Object, old: Object | None) -> list[Cause]:
    told = "name is neither a standard finalizer name nor is it fully qualified"
    odd = [one for one in at(new, "spec.finalizers") or () if "/" not in one and one != "kubernetes"]
    return [causes.invalid("spec.finalizers", one, told) for one in odd] + _phase(new, old)


def _phase(new: Object, old: Object | None) -> list[Cause]:
    phase = at(new, "status.phase")
    if old is None or phase == at(old, "status.phase"):
        return []
    if not new["metadata"].get("deletionTimestamp") and phase != "Active":
        told = "may only be 'Active' if `deletionTimestamp` is empty"
        return [causes.invalid("status.Phase", phase or "", told)]
    if new["metadata"].get("deletionTimestamp") and phase != "Terminating":
        told = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        return [causes.invalid("status.Phase", phase or "", told)]
    return []


def claim(new: Object, old: Object | None) -> list[Cause]:
    spec = new["spec"]
    if old is None:
        found = (
            []
            if spec.get("accessModes")
            else [causes.required("spec.accessModes", "at least 1 access mode is required")]
        )
        for index, mode in enumerate(spec.get("accessModes") or ()):
            found += one_of(f"spec.accessModes[{index}]", mode, _MODES)
        if not at(spec, "resources.requests.storage"):
            found.append(causes.required("spec.resources[storage]"))
        return found
    was = old["spec"]
    bound = at(old, "status.phase") == "Bound"
    free = {"resources", "volumeAttributesClassName"} if bound else set()
    free |= {key for key in ("volumeName", "storageClassName") if not bound and not was.get(key)}
    kept, before = ({k: v for k, v in one.items() if k not in free} for one in (spec, was))
    return [] if kept == before else [causes.forbidden("spec", _CLAIM)]


def resource_quota(new: Object, old: Object | None) -> list[Cause]:
    found: list[Cause] = []
    for name, amount in ((new.get("spec") or {}).get("hard") or {}).items():
        value, field = quantity.parse(amount)[0], f"spec.hard[{name}]"
        if value < 0:
            found.append(causes.invalid(field, amount, "must be greater than or equal to 0"))
        counted = name in _COUNTED or name.startswith("count/") or ("/" in name and "kubernetes.io/" not in name)
        if counted and value != value.to_integral_value():
            found.append(causes.invalid(field, amount, "must be an integer"))
    return found


def controller_revision(new: Object, old: Object | None) -> list[Cause]:
    found = [] if new.get("data") is not None else [causes.required("data", "data is mandatory")]
    return found + (unchanged(new, old, "data") if old is not None else [])


def lease(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    found: list[Cause] = []
    seconds, changes = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        found.append(causes.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if changes is not None and changes < 0:
        told = "must be greater than or equal to 0"
        found.append(causes.invalid("spec.leaseTransitions", changes, told))
    return found


def storage_class(new: Object, old: Object | None) -> list[Cause]:
    if old is None:
        return [] if new.get("provisioner") else [causes.required("provisioner")]
    return unchanged(new, old, "parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")


def priority_class(new: Object, old: Object | None) -> list[Cause]:
    value = new.get("value") or 0
    if old is not None:
        found = (
            [] if value == (old.get("value") or 0) else [causes.forbidden("value", "may not be changed in an update.")]
        )
        return found + unchanged(new, old, "preemptionPolicy")
    name = new["metadata"].get("name") or ""
    if name.startswith("system-"):
        told = "priority class names with 'system-' prefix are reserved for system use only. error: "
        told += f"{name} is not a known system priority class"
        return [causes.forbidden("metadata.name", told)]
    if value > _HIGHEST:
        told = f"maximum allowed value of a user defined priority is {_HIGHEST}"
        return [causes.forbidden("value", told)]
    return one_of("preemptionPolicy", new.get("preemptionPolicy"), ("Never", "PreemptLowerPriority"))
