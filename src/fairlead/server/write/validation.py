"""Validation of the object of a write, and the warnings about it."""

from collections.abc import Callable
from typing import Any

from fairlead.api.gojson import quote_go
from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.resource import MetadataRepetition, Object, Resource
from fairlead.server.schema import metadata_validation
from fairlead.server.schema import validation as schema_validation
from fairlead.server.write import metadata

_MAX_REPLICAS = 2**31 - 1
_GO_TYPES = {
    type(None): "<nil>",
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def validate_create(resource: Resource, obj: Object) -> list[FieldError]:
    """Return the validation errors of a new object."""
    if resource.custom and (errors := _validate_type_meta(resource, obj)):
        return errors + schema_validation.validate(resource.schema, obj, checks_schema=False)
    errors = metadata.validate(obj["metadata"], resource)
    if resource.custom:
        errors += schema_validation.validate(resource.schema, obj) + _validate_replicas(resource, obj)
    return errors + (resource.validate(obj, None) if resource.validate else [])


def validate_update(
    resource: Resource, subresource: str, obj: Object, old: Object, warn: Callable[[str], None]
) -> list[FieldError]:
    """Return the validation errors of a changed object.

    The validation of a kind checks the metadata again, so that a real server reports some errors more than once.
    """
    is_status = subresource == "status"
    update_errors = metadata_validation.validate_update(obj["metadata"], old["metadata"])
    errors = metadata.validate(obj["metadata"], resource, is_generic=True) + update_errors
    if resource.custom and (type_errors := _validate_type_meta(resource, obj)):
        schema_errors = schema_validation.validate(
            resource.schema, obj, old, checks_status_only=is_status, checks_schema=False, warn=warn
        )
        return errors + type_errors + schema_errors
    if resource.custom:
        errors += update_errors
        errors += schema_validation.validate(resource.schema, obj, old, checks_status_only=is_status, warn=warn)
        return errors + _validate_replicas(resource, obj, checks_status_only=is_status)
    repetition = resource.status_metadata_repetition if is_status else resource.metadata_repetition
    errors += _repeat_metadata_errors(repetition, update_errors, obj["metadata"], resource)
    validate = resource.validate_status if is_status else resource.validate
    return errors + (validate(obj, old) if validate else [])


def find_warnings(resource: Resource, obj: Object, old: Object | None) -> list[str]:
    """Return the warnings about a new or changed object."""
    if resource.custom:
        return _warn_about_finalizers(obj, old)
    return resource.warn(obj, old) if resource.warn else []


def _validate_type_meta(resource: Resource, obj: Object) -> list[FieldError]:
    """Return the errors in kind and apiVersion of a custom resource."""
    expected = {"kind": resource.kind, "apiVersion": resource.api_version}
    return [
        field_errors.invalid(key, obj.get(key) or "", f"must be {value}")
        for key, value in expected.items()
        if obj.get(key) != value
    ]


def _validate_replicas(resource: Resource, obj: Object, *, checks_status_only: bool = False) -> list[FieldError]:
    """Return the errors in the /scale replicas of a custom resource: negative, too large or not an integer."""
    errors: list[FieldError] = []
    keys = ("statusReplicasPath",) if checks_status_only else ("specReplicasPath", "statusReplicasPath")
    for key in keys if resource.scale else ():
        path = resource.scale[key]
        value, error = _get_integer(obj, path.removeprefix(".").split("."))
        if error:
            errors.append(field_errors.invalid(path, 0, error))
        elif value < 0:
            errors.append(field_errors.invalid(path, value, "should be a non-negative integer"))
        elif value > _MAX_REPLICAS:
            errors.append(field_errors.invalid(path, value, f"should be less than or equal to {_MAX_REPLICAS}"))
    return errors


def _get_integer(obj: Object, path: list[str]) -> tuple[int, str]:
    """Return the integer at a path (0 if absent), and an error message or "" if the value is an integer."""
    value: Any = obj
    for index, part in enumerate(path):
        if value is None:
            return 0, ""
        if not isinstance(value, dict):
            return 0, _format_accessor_error(path[: index + 1], value, "map[string]interface{}")
        if part not in value:
            return 0, ""
        value = value[part]
    return (value, "") if type(value) is int else (0, _format_accessor_error(path, value, "int64"))


def _format_accessor_error(path: list[str], value: Any, expected: str) -> str:
    problem = f"{field_errors.format_go(value)} is of the type {_GO_TYPES[type(value)]}"
    return f".{'.'.join(path)} accessor error: {problem}, expected {expected}"


def _warn_about_finalizers(obj: Object, old: Object | None) -> list[str]:
    """Return a warning for each new finalizer of a custom resource that is not qualified by a domain."""
    old_finalizers = (old["metadata"].get("finalizers") or ()) if old else ()
    return [
        f"metadata.finalizers: {quote_go(name)}: prefer a domain-qualified finalizer name to avoid "
        "accidental conflicts with other finalizer writers"
        for name in obj["metadata"].get("finalizers") or ()
        if "/" not in name and name not in metadata.STANDARD_FINALIZERS and name not in old_finalizers
    ]


def _repeat_metadata_errors(
    repetition: MetadataRepetition, update_errors: list[FieldError], new: Object, resource: Resource
) -> list[FieldError]:
    """Return the metadata errors that the validation of a built-in kind reports a second time."""
    errors: list[FieldError] = []
    if repetition in ("twice", "once", "loosely"):
        errors += update_errors
    if repetition in ("twice", "once"):
        errors += metadata.validate_standard_finalizers(new, resource)
    if repetition in ("twice", "as new", "as new twice"):
        errors += metadata.validate(new, resource) * (2 if repetition == "as new twice" else 1)
    return errors
