"""Validation and coercion of the default values in a CRD schema."""

import contextlib
from collections.abc import Iterator

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.golang import encoding
from fairlead.server.schema import cel, codec, pruning, structural
from fairlead.server.schema.crd_schema.subschemas import Schema, list_children
from fairlead.server.schema.embedded_resources import validate_embedded_resources
from fairlead.server.schema.validation import validate_by_schema


def validate_defaults(schema: Schema, path: str) -> Iterator[FieldError]:
    """Yield the errors of default values, which must be valid and must not have unknown fields."""
    if schema.get("default") is not None:
        node, value, default_path = structural.compile_fragment(schema), schema["default"], f"{path}.default"
        if isinstance(value, dict | list) and pruning.find_unknown_fields(node, value):
            yield field_errors.invalid(default_path, value, "must not have unknown fields")
        errors = validate_embedded_resources(node, value, default_path)
        errors = errors or validate_by_schema(
            structural.compile_fragment(_drop_int_or_string(schema), every_format=True), value, under=default_path
        )
        if not errors and cel.has_rules(node) and cel.is_available():
            rule_errors = cel.evaluate_rules(node, value, value, default_path) or cel.evaluate_rules(
                node, value, None, default_path
            )
            errors = [failure.error for failure in rule_errors]
        yield from errors
    for inner, inner_path, _ in list_children(schema, path):
        if not inner_path.endswith(".additionalProperties"):  # A real server does not check defaults there.
            yield from validate_defaults(inner, inner_path)


def coerce_defaults(schema: Schema) -> Schema:
    """Return the schema as a real server stores it, or `schema` itself if nothing changes.

    Default values of embedded resources lose their unknown metadata fields.
    """
    changed_schema: Schema = {}
    value = schema.get("default")
    if isinstance(value, dict | list) and _contains_embedded(schema):
        with contextlib.suppress(codec.DecodeError):  # Validation reports this error.
            if (
                result := pruning.coerce_embedded_metadata(
                    structural.compile_fragment(schema), encoding.normalize_numbers(value)
                )
            ) != value:
                changed_schema["default"] = result
    properties = schema.get("properties") or {}
    changed_properties = {key: new for key, old in properties.items() if (new := coerce_defaults(old)) is not old}
    if changed_properties:
        changed_schema["properties"] = {**properties, **changed_properties}
    items = schema.get("items")
    if isinstance(items, dict) and (new := coerce_defaults(items)) is not items:
        changed_schema["items"] = new
    return {**schema, **changed_schema} if changed_schema else schema


def _contains_embedded(schema: Schema) -> bool:
    """Return whether the schema contains an embedded resource."""
    children = [schema.get("items"), schema.get("additionalProperties"), *(schema.get("properties") or {}).values()]
    return bool(schema.get("x-kubernetes-embedded-resource")) or any(
        _contains_embedded(inner) for inner in children if isinstance(inner, dict)
    )


def _drop_int_or_string(schema: Schema) -> Schema:
    """Return the schema by which a real server validates default values: int-or-string fields accept any type."""
    result = {key: value for key, value in schema.items() if key != "x-kubernetes-int-or-string"}
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), dict):
            result[key] = _drop_int_or_string(result[key])
    if result.get("properties"):
        result["properties"] = {key: _drop_int_or_string(value) for key, value in result["properties"].items()}
    return result
