"""Namespaces, Leases, revisions and pod templates."""

import re
from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation import pods
from fairlead.server.registry.validation.rules import at_least
from fairlead.server.registry.validation.vocabulary import Object, at, unchanged
from fairlead.server.write import names


def namespace(new: Object, old: Object | None) -> list[FieldError]:
    told = "name is neither a standard finalizer name nor is it fully qualified"
    odd = [one for one in at(new, "spec.finalizers") or () if "/" not in one and one != "kubernetes"]
    found = [field_errors.invalid("spec.finalizers", one, told) for one in odd] + _phase(new, old)
    return found or _secured(new, old)


def _secured(new: Object, old: Object | None) -> list[FieldError]:
    """Labels that say how secure Pods have to be, where they are new."""
    given = new["metadata"].get("labels") or {}
    before = (old["metadata"].get("labels") or {}) if old is not None else {}
    found: list[FieldError] = []
    for mode in ("enforce", "audit", "warn"):
        key = f"pod-security.kubernetes.io/{mode}"
        told = {key: f"must be one of {', '.join(_LEVELS)}", f"{key}-version": _VERSION}
        wrong = [
            one
            for one in told
            if one in given
            and given[one] != before.get(one)
            and not names.label_value(given[one])
            and not _LEVEL[one == key].fullmatch(given[one])
        ]
        found += [field_errors.invalid(f"metadata.labels[{one}]", given[one], told[one]) for one in wrong]
    return found


_LEVELS: Final = ("privileged", "baseline", "restricted")
_VERSION: Final = 'must be "latest" or "v1.x"'
_LEVEL: Final = (re.compile(r"latest|v1\.([0-9]|[1-9][0-9]{1,3})"), re.compile("|".join(_LEVELS)))


def _phase(new: Object, old: Object | None) -> list[FieldError]:
    phase = at(new, "status.phase")
    if old is None or phase == at(old, "status.phase"):
        return []
    if not new["metadata"].get("deletionTimestamp") and phase != "Active":
        told = "may only be 'Active' if `deletionTimestamp` is empty"
        return [field_errors.invalid("status.Phase", phase or "", told)]
    if new["metadata"].get("deletionTimestamp") and phase != "Terminating":
        told = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        return [field_errors.invalid("status.Phase", phase or "", told)]
    return []


def controller_revision(new: Object, old: Object | None) -> list[FieldError]:
    found = at_least(0, "revision")(new, old, "")
    if old is not None:
        return found + unchanged(new, old, "data")
    return found if new.get("data") is not None else [*found, field_errors.required("data", "data is mandatory")]


def lease(new: Object, old: Object | None) -> list[FieldError]:
    spec = new.get("spec") or {}
    found: list[FieldError] = []
    seconds, changes = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        found.append(field_errors.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if changes is not None and changes < 0:
        told = "must be greater than or equal to 0"
        found.append(field_errors.invalid("spec.leaseTransitions", changes, told))
    return found


def pod_template(new: Object, old: Object | None) -> list[FieldError]:
    return pods.pod_template(new.get("template") or {}, "template")
