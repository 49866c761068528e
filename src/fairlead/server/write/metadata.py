"""Object metadata in a write: validation by kind, and the fields that the server sets."""

from typing import Any

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.resource import Resource
from fairlead.server.schema import names
from fairlead.server.schema.metadata_validation import FOREGROUND, ORPHAN, NameValidator, validate_metadata

Object = dict[str, Any]
Metadata = dict[str, Any]

STANDARD_FINALIZERS = frozenset(("kubernetes", ORPHAN, FOREGROUND))
# Groups whose kinds accept any qualified name as a finalizer, as custom resources do.
_ANY_FINALIZER = frozenset(
    (
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "coordination.k8s.io",
        "node.k8s.io",
        "policy",
    )
)


def name_validator(resource: Resource) -> NameValidator:
    """Return the function that validates object names of this kind."""
    if not resource.group and resource.plural in ("namespaces", "services"):
        return names.label
    if resource.group == "rbac.authorization.k8s.io" or resource.plural in ("poddisruptionbudgets", "events"):
        return names.path_segment
    return names.subdomain


def validate(metadata: Metadata, resource: Resource, *, generic: bool = False) -> list[FieldError]:
    """Return the errors in an object's metadata.

    `generic` selects the validation that is common to all kinds: names need only be valid path segments.
    """
    validate_name = names.path_segment if generic else name_validator(resource)
    errors = validate_metadata(metadata, validate_name, namespaced=resource.namespaced)
    if not generic:
        errors += validate_standard_finalizers(metadata, resource)
    return errors


def validate_standard_finalizers(metadata: Metadata, resource: Resource) -> list[FieldError]:
    """Return an error for each finalizer that is neither domain-qualified nor a standard one.

    Custom resources and some built-in groups allow any finalizer.
    """
    errors: list[FieldError] = []
    if resource.custom or resource.group in _ANY_FINALIZER:
        return errors
    for index, finalizer in enumerate(metadata.get("finalizers") or []):
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            errors.append(
                field_errors.invalid(
                    f"metadata.finalizers[{index}]",
                    finalizer,
                    "name is neither a standard finalizer name nor is it fully qualified",
                )
            )
    return errors


_SYSTEM_FIELDS = frozenset(("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"))


def remove_system_fields(obj: Object) -> Object:
    """Return a new object without the metadata that only the server may set, such as uid."""
    submitted = obj.get("metadata") or {}
    if _SYSTEM_FIELDS.isdisjoint(submitted):
        return obj
    return {**obj, "metadata": {k: v for k, v in submitted.items() if k not in _SYSTEM_FIELDS}}


def prepare_create(obj: Object, *, namespace: str, uid: str, now: str) -> Object:
    """Return a new object with uid, creationTimestamp and namespace, and without fields that clients may not set."""
    submitted = obj.get("metadata") or {}
    dropped = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
    metadata = {k: v for k, v in submitted.items() if v is not None and k not in dropped}
    metadata["uid"] = uid
    metadata["creationTimestamp"] = now
    if namespace:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    return {**obj, "metadata": metadata}


def prepare_update(obj: Object, old: Object) -> Object:
    """Return a changed object with the metadata that an update cannot change copied from the live object."""
    metadata = {k: v for k, v in (obj.get("metadata") or {}).items() if v is not None and k != "selfLink"}
    live = old["metadata"]
    if not metadata.get("uid"):
        metadata["uid"] = live["uid"]
    metadata["creationTimestamp"] = live["creationTimestamp"]
    if "deletionTimestamp" in live:
        metadata["deletionTimestamp"] = live["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in live and metadata.get("deletionGracePeriodSeconds") is None:
        metadata["deletionGracePeriodSeconds"] = live["deletionGracePeriodSeconds"]
    if "generation" in live:
        metadata["generation"] = live["generation"]
    else:
        metadata.pop("generation", None)
    return {**obj, "metadata": metadata}


def remove_duplicate_owners(obj: Object) -> tuple[Object, list[str]]:
    """Return the object without duplicate ownerReferences, and the uids of the removed references."""
    references = obj.get("metadata", {}).get("ownerReferences")
    if not references or len(references) < 2:
        return obj, []
    unique: list[dict[str, Any]] = []
    duplicates: list[str] = []
    for reference in references:
        if reference in unique:
            duplicates.append(reference.get("uid", ""))
        else:
            unique.append(reference)
    if not duplicates:
        return obj, []
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": unique}}, duplicates
