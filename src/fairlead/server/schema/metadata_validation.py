"""Validation of object metadata that is the same for all kinds."""

import json
from collections.abc import Callable
from typing import Any

from fairlead.api.gojson import quote_go
from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.schema import names

Metadata = dict[str, Any]
NameValidator = Callable[[str, bool], list[str]]  # takes a name and whether it is a generateName prefix

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
ANNOTATIONS_LIMIT = 256 * 1024
IMMUTABLE = "field is immutable"


def validate_metadata(
    metadata: Metadata, validate_name: NameValidator, *, namespaced: bool, path: str = "metadata"
) -> list[FieldError]:
    """Return the errors in an object's metadata. `validate_name` checks name and generateName."""
    errors: list[FieldError] = []
    prefix = metadata.get("generateName") or ""
    if prefix:
        errors += [field_errors.invalid(f"{path}.generateName", prefix, m) for m in validate_name(prefix, True)]
    name = metadata.get("name") or ""
    if not name:
        errors.append(field_errors.required(f"{path}.name", "name or generateName is required"))
    else:
        errors += [field_errors.invalid(f"{path}.name", name, m) for m in validate_name(name, False)]
    namespace = metadata.get("namespace") or ""
    if namespaced:
        if not namespace:
            errors.append(field_errors.required(f"{path}.namespace"))
        else:
            errors += [field_errors.invalid(f"{path}.namespace", namespace, m) for m in names.label(namespace)]
    elif namespace:
        errors.append(field_errors.forbidden(f"{path}.namespace", "not allowed on this type"))
    generation = metadata.get("generation") or 0
    if generation < 0:
        errors.append(field_errors.invalid(f"{path}.generation", generation, "must be greater than or equal to 0"))
    errors += validate_labels_and_annotations(metadata, path)
    errors += _validate_owner_references(metadata, path)
    errors += _validate_finalizers(metadata, path)
    errors += _validate_managed_fields(metadata, path)
    return errors


def validate_update(new: Metadata, old: Metadata) -> list[FieldError]:
    """Return the errors in a change of metadata, such as changed immutable fields."""
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        added_finalizers = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added_finalizers:
            go_slice = "[]string{" + ", ".join(map(quote_go, added_finalizers)) + "}"
            errors.append(
                field_errors.forbidden(
                    "metadata.finalizers",
                    f"no new finalizers can be added if the object is being deleted, found new finalizers {go_slice}",
                )
            )
    if not new.get("resourceVersion"):
        errors.append(field_errors.invalid("metadata.resourceVersion", "", "must be specified for an update"))
    for key in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        value = new.get(key)
        if value != old.get(key) and not (value in ("", None) and old.get(key) in ("", None)):
            errors.append(
                field_errors.invalid(f"metadata.{key}", _get_zero_value(key) if value is None else value, IMMUTABLE)
            )
    errors += validate_labels_and_annotations(new, "metadata")
    errors += _validate_owner_references(new, "metadata")
    errors += _validate_managed_fields(new, "metadata")
    return errors


def _get_zero_value(key: str) -> str | None:
    return "" if key in ("name", "namespace", "uid") else None


def validate_labels_and_annotations(metadata: Metadata, path: str) -> list[FieldError]:
    """Return the errors in the labels and annotations of an object or a Pod template."""
    errors: list[FieldError] = []
    for key, value in (metadata.get("labels") or {}).items():
        errors += [field_errors.invalid(f"{path}.labels", key, m) for m in names.qualified(key)]
        errors += [field_errors.invalid(f"{path}.labels", value, m) for m in names.label_value(value)]
    size = 0
    for key, value in (metadata.get("annotations") or {}).items():
        # Annotation keys are validated in lower case: for compatibility they may contain upper case.
        errors += [field_errors.invalid(f"{path}.annotations", key, m) for m in names.qualified(key.lower())]
        size += len(key.encode()) + len(value.encode())
    if size > ANNOTATIONS_LIMIT:
        errors.append(field_errors.too_long(f"{path}.annotations", ANNOTATIONS_LIMIT))
    return errors


def _validate_owner_references(metadata: Metadata, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    field = f"{path}.ownerReferences"
    references = metadata.get("ownerReferences") or []
    controller = ""
    for reference in references:
        api_version = reference.get("apiVersion") or ""
        group, _, version = api_version.rpartition("/") if api_version.count("/") < 2 else ("", "", "")
        kind, name = reference.get("kind") or "", reference.get("name") or ""
        if not version:
            errors.append(field_errors.invalid(f"{field}.apiVersion", api_version, "version must not be empty"))
        if not kind:
            errors.append(field_errors.invalid(f"{field}.kind", "", "must not be empty"))
        if not name:
            errors.append(field_errors.invalid(f"{field}.name", "", "must not be empty"))
        if not reference.get("uid"):
            errors.append(field_errors.invalid(f"{field}.uid", "", "must not be empty"))
        if (group, version, kind) == ("", "v1", "Event"):
            message = "/v1, Kind=Event is disallowed from being an owner"
            errors.append(_build_reference_error(field, _order_reference(reference), message))
        if reference.get("controller"):
            current = f"{kind}/{name}"
            if controller:
                message = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {current}"
                )
                errors.append(_build_reference_error(field, [_order_reference(r) for r in references], message))
            else:
                controller = current
    return errors


def _order_reference(reference: dict[str, Any]) -> dict[str, Any]:
    """Return an owner reference with its fields in the order of the Go type."""
    required = {key: reference.get(key, "") for key in ("apiVersion", "kind", "name", "uid")}
    return required | {key: reference[key] for key in ("controller", "blockOwnerDeletion") if key in reference}


def _build_reference_error(field: str, value: Any, message: str) -> FieldError:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return FieldError("FieldValueInvalid", field, f"Invalid value: {text}: {message}")


def _validate_finalizers(metadata: Metadata, path: str) -> list[FieldError]:
    field = f"{path}.finalizers"
    finalizers = metadata.get("finalizers") or []
    errors = [field_errors.invalid(field, f, m) for f in finalizers for m in names.qualified(f)]
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        message = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        errors.append(field_errors.invalid(field, finalizers, message))
    return errors


def _validate_managed_fields(metadata: Metadata, path: str) -> list[FieldError]:
    """Return the errors in managedFields. Entries that cannot be decoded are ignored."""
    errors: list[FieldError] = []
    for index, entry in enumerate(metadata.get("managedFields") or ()):
        manager, subresource = entry.get("manager") or "", entry.get("subresource") or ""
        if len(manager) > 32 or not manager.isprintable():
            errors += field_errors.validate_manager_name(f"{path}.managedFields[{index}].manager", manager)
        if len(subresource) > 256:
            errors.append(field_errors.too_long(f"{path}.managedFields[{index}].subresource", 256))
    return errors
