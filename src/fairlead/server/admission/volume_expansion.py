"""PersistentVolumeClaimResize: a claim may grow if the claim is bound and its StorageClass has allowVolumeExpansion."""

from collections.abc import Callable
from decimal import Decimal

from fairlead.server.admission.plugin import UPDATE, AdmissionAttributes, AdmissionPlugin
from fairlead.server.registry.resource import Object
from fairlead.server.schema import quantity

_NOT_BOUND = "Only bound persistent volume claims can be expanded"
_NOT_EXPANDABLE = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class PersistentVolumeClaimResize(AdmissionPlugin):
    operations = (UPDATE,)
    resources = frozenset((("", "persistentvolumeclaims"),))

    def validate(self, attributes: AdmissionAttributes) -> None:
        assert attributes.object is not None
        assert attributes.old is not None
        if error := check_expansion(attributes.object, attributes.old, self._find_storage_class):
            raise attributes.forbid(error)

    def _find_storage_class(self, name: str) -> Object | None:
        stored = self.server.store.table("storage.k8s.io", "storageclasses").get("", name)
        return stored.object if stored else None


def check_expansion(claim: Object, old: Object, find_storage_class: Callable[[str], Object | None]) -> str:
    """Return why a claim may not grow to its new size, or "" if it may."""
    if _get_requested_size(claim) <= _get_requested_size(old):
        return ""
    if (old.get("status") or {}).get("phase") != "Bound":
        return _NOT_BOUND
    name = _get_storage_class_name(claim)
    storage_class = find_storage_class(name) if name and name == _get_storage_class_name(old) else None
    return "" if storage_class and storage_class.get("allowVolumeExpansion") else _NOT_EXPANDABLE


def _get_requested_size(claim: Object) -> Decimal:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return quantity.parse(requests.get("storage", "0"))[0]


def _get_storage_class_name(claim: Object) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    return str(annotations.get(_CLASS_ANNOTATION, (claim.get("spec") or {}).get("storageClassName") or ""))
