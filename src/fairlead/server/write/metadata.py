"""Object metadata in a write: validation by kind, and the fields that the server sets."""

from typing import TYPE_CHECKING, Any

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.errors.statuses import bad_request
from fairlead.server.golang.encoding import exactly_equal
from fairlead.server.registry.resource import Resource
from fairlead.server.registry.validation.formats import canonical_ip_address
from fairlead.server.schema import names
from fairlead.server.schema.metadata_validation import FOREGROUND, ORPHAN, NameValidator, validate_metadata

if TYPE_CHECKING:
    from fairlead.server.write.write_request import Write

Object = dict[str, Any]
Metadata = dict[str, Any]

DUPLICATE_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}"
)
DUPLICATE_OWNERS_PATCHED = (
    ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner "
    "references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) "
    "observed: {}"
)
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
    if (resource.group, resource.plural) == ("networking.k8s.io", "ipaddresses"):
        return _check_address_name
    return names.subdomain


def _check_address_name(name: str, is_prefix: bool = False) -> list[str]:
    return list(canonical_ip_address(name))


def validate(metadata: Metadata, resource: Resource, *, is_generic: bool = False) -> list[FieldError]:
    """Return the errors in an object's metadata.

    `is_generic` selects the validation that is common to all kinds: names need only be valid path segments.
    """
    validate_name = names.path_segment if is_generic else name_validator(resource)
    errors = validate_metadata(metadata, validate_name, namespaced=resource.namespaced)
    if not is_generic:
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


def _drop_duplicate_owners(obj: Object) -> tuple[Object, list[str]]:
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


def remove_duplicate_owners(obj: Object, write: "Write", warning: str) -> Object:
    """Return the object without duplicate ownerReferences, and warn about them."""
    obj, duplicates = _drop_duplicate_owners(obj)
    if duplicates:
        write.request.warn(warning.format(", ".join(duplicates)))
    return obj


def expect_namespace(obj: Object, write: "Write") -> Object:
    """Return the object with the namespace of the request. Raises 400 if the object names another namespace."""
    submitted = obj.get("metadata") or {}
    namespace = submitted.get("namespace") or ""
    expected = write.namespace if write.resource.namespaced else ""
    if namespace == expected:
        return obj
    if not namespace or not expected:
        new_metadata = {key: value for key, value in submitted.items() if key != "namespace"}
        if expected:
            new_metadata["namespace"] = expected
        return {**obj, "metadata": new_metadata}
    raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def resource_version_error(version: str) -> str:
    """Return why a resourceVersion is not a number, or "" if it is one."""
    if not (version.isdigit() and version.isascii()):
        return "invalid syntax"
    return "value out of range" if int(version) >= 1 << 64 else ""


def update_generation(
    resource: Resource, subresource: str, obj: Object, old: Object, *, has_changed: bool = False
) -> None:
    """Increment metadata.generation if the desired state changed.

    The desired state of a custom resource is everything but its metadata and status. `has_changed` says that it
    changed, though not in the stored form.
    """
    if not resource.has_generation or subresource == "status":
        return
    if resource.custom:
        ignored = {"metadata", "status"} if resource.has_status else {"metadata"}
        has_changed = not exactly_equal(
            {k: v for k, v in obj.items() if k not in ignored}, {k: v for k, v in old.items() if k not in ignored}
        )
    elif not has_changed:
        has_changed = any(
            not exactly_equal(_get_path(obj, path), _get_path(old, path)) for path in resource.generation_fields
        )
    if has_changed:
        obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _get_path(obj: Object, path: str) -> Any:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value
