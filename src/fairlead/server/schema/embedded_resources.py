"""Validation of embedded resources: objects inside a custom resource that have apiVersion, kind and metadata."""

from typing import Any

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.golang import encoding
from fairlead.server.schema import builtin, codec, names
from fairlead.server.schema.metadata_validation import validate_metadata
from fairlead.server.schema.nodes import Node


def validate_embedded_resources(node: Node | None, value: Any, path: str = "") -> list[FieldError]:
    """Return the errors in apiVersion, kind and metadata of embedded resources. The root object is not checked."""
    if node is None or node.constraints is None:
        return []
    errors: list[FieldError] = []
    if type(value) is dict:
        if node.embedded and path:
            errors += _validate_resource(value, path)
        for key, inner in value.items():
            if type(inner) is dict or type(inner) is list:
                child = node.constraints.properties.get(key)
                if child is not None:
                    errors += validate_embedded_resources(child, inner, f"{path}.{key}" if path else key)
                elif node.values is not None:
                    errors += validate_embedded_resources(node.values, inner, f"{path}[{key}]")
    elif type(value) is list:
        for index, item in enumerate(value):
            errors += validate_embedded_resources(node.items, item, f"{path}[{index}]")
    return errors


def _validate_resource(value: dict[str, Any], path: str) -> list[FieldError]:
    errors = [field_errors.required(f"{path}.{key}") for key in ("apiVersion", "kind") if key not in value]
    version, kind = value.get("apiVersion"), value.get("kind")
    if version == "":
        errors.append(field_errors.invalid(f"{path}.apiVersion", version, "must not be empty"))
    elif isinstance(version, str) and version.count("/") > 1:
        errors.append(field_errors.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    if kind == "":
        errors.append(field_errors.invalid(f"{path}.kind", kind, "must not be empty"))
    elif isinstance(kind, str) and (problems := names.dns1035(kind.lower())):
        message = "may have mixed case, but should otherwise match: " + ",".join(problems)
        errors.append(field_errors.invalid(f"{path}.kind", kind, message))
    metadata = value.get("metadata")
    if metadata is not None:  # The name and the namespace are optional.
        try:
            codec.decode(builtin.schema_of_type("meta.v1.ObjectMeta"), encoding.normalize_numbers(metadata))
        except codec.DecodeError as error:  # Only a default can fail here, because requests are decoded earlier.
            return [*errors, field_errors.invalid(f"{path}.metadata", metadata, error.message)]
        filled = {"name": "unnamed", **{key: inner for key, inner in metadata.items() if inner != ""}}
        errors += validate_metadata(
            filled, names.path_segment, namespaced="namespace" in filled, path=f"{path}.metadata"
        )
    return errors
