"""Growing claims: admitted where they are bound and their storage class allows it."""

from collections.abc import Callable
from decimal import Decimal

from fairlead.server.registry.resource import Object
from fairlead.server.schema import quantity

_UNBOUND = "Only bound persistent volume claims can be expanded"
_FIXED = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)
_CLASS = "volume.beta.kubernetes.io/storage-class"


def refusal(claim: Object, old: Object, storage_class: Callable[[str], Object | None]) -> str:
    """Why a claim may not have the size it asks for now, "" where it may; `storage_class` finds one by name."""
    if _size(claim) <= _size(old):
        return ""
    if (old.get("status") or {}).get("phase") != "Bound":
        return _UNBOUND
    name = _class(claim)
    found = storage_class(name) if name and name == _class(old) else None
    return "" if found and found.get("allowVolumeExpansion") else _FIXED


def _size(claim: Object) -> Decimal:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return quantity.parse(requests.get("storage", "0"))[0]


def _class(claim: Object) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    return str(annotations.get(_CLASS, (claim.get("spec") or {}).get("storageClassName") or ""))
