"""Validation of Namespaces."""

import re
from typing import Final

from fairlead.server.registry.validation.formats import label_value
from fairlead.server.registry.validation.rules import Errors, Scope, build_validator, first_error

_LEVELS: Final = ("privileged", "baseline", "restricted")
_VERSION: Final = re.compile(r"latest|v1\.([0-9]|[1-9][0-9]{1,3})")


def _check_finalizers_and_phase(namespace: Scope) -> Errors:
    for finalizer in namespace.items("spec.finalizers"):
        if "/" not in finalizer and finalizer != "kubernetes":
            message = "name is neither a standard finalizer name nor is it fully qualified"
            yield namespace.invalid("spec.finalizers", message, finalizer)
    phase, is_deleted = namespace.text("status.phase"), bool(namespace.get("metadata.deletionTimestamp"))
    if namespace.old is None or namespace.get("status.phase") == namespace.old_value("status.phase"):
        return
    if not is_deleted and phase != "Active":
        yield namespace.invalid("status.Phase", "may only be 'Active' if `deletionTimestamp` is empty", phase)
    if is_deleted and phase != "Terminating":
        yield namespace.invalid("status.Phase", "may only be 'Terminating' if `deletionTimestamp` is not empty", phase)


def _check_pod_security_labels(namespace: Scope) -> Errors:
    """Check the pod-security.kubernetes.io labels that an update changes."""
    labels, old = namespace.map("metadata.labels"), namespace.old_value("metadata.labels") or {}
    for mode in ("enforce", "audit", "warn"):
        key = f"pod-security.kubernetes.io/{mode}"
        for label, is_valid, message in (
            (key, lambda value: value in _LEVELS, f"must be one of {', '.join(_LEVELS)}"),
            (f"{key}-version", _VERSION.fullmatch, 'must be "latest" or "v1.x"'),
        ):
            value = labels.get(label)
            if value is not None and value != old.get(label) and not label_value(value) and not is_valid(value):
                yield namespace.invalid(f"metadata.labels[{label}]", message, value)


namespace: Final = build_validator(first_error(_check_finalizers_and_phase, _check_pod_security_labels))
