"""Validation of a CRD schema by the rules of structural schemas."""

from collections.abc import Iterator
from typing import Final

import re2

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.schema.crd_schema.subschemas import COMBINATORS, Schema, list_alternatives, list_children
from fairlead.server.schema.patterns import compile_pattern

_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_IGNORED_IF_EMPTY: Final = ("enum", *COMBINATORS, "patternProperties", "definitions")
_FORBIDDEN_IN_ALTERNATIVES: Final = {  # Keywords that anyOf, allOf, oneOf and not may not contain, with the message.
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}
_LEVELS: Final = {"root": "at the root", "item": "for specified array items", "field": "for specified object fields"}
_REGEXP_ERRORS: Final = {  # RE2's error messages and those of Go's regexp package.
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
}
_METADATA_FIELDS: Final = (
    "must not specify anything other than name and generateName, but metadata is implicitly specified"
)
_EMBEDDED_WITHOUT_PROPERTIES: Final = (
    "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
)


def validate_structure(schema: Schema, path: str, level: str) -> Iterator[FieldError]:
    """Yield an error for each violation of the rules of structural schemas."""
    kind = schema.get("type") or ""
    is_embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    preserves_unknown = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    is_int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
    properties = schema.get("properties") or {}
    if kind == "array" and schema.get("items") is None:
        yield field_errors.required(f"{path}.items", "must be specified")
    for inner, inner_path, inner_level in list_children(schema, path):
        yield from validate_structure(inner, inner_path, inner_level)
    if level == "root" and schema.get("additionalProperties") is not None:
        yield field_errors.forbidden(f"{path}.additionalProperties", "must not be used at the root")
    for key, is_set in (("preserve-unknown-fields", preserves_unknown), ("embedded-resource", is_embedded)):
        if is_int_or_string and is_set:
            message = "must be false if x-kubernetes-int-or-string is true"
            yield field_errors.invalid(f"{path}.x-kubernetes-{key}", True, message)
    yield from _validate_value_keywords(schema, path, level, allowed=_INT_OR_STRING)
    if is_embedded and kind != "object":
        message = "must be object if x-kubernetes-embedded-resource is true"
        yield (
            field_errors.invalid(f"{path}.type", kind, message)
            if kind
            else field_errors.required(f"{path}.type", message)
        )
    elif not kind and not is_int_or_string and not preserves_unknown:
        yield field_errors.required(f"{path}.type", f"must not be empty {_LEVELS[level]}")
    if is_embedded and schema.get("additionalProperties") is not None:
        message = "must not be used if x-kubernetes-embedded-resource is set"
        yield field_errors.forbidden(f"{path}.additionalProperties", message)
    if level == "root" and kind and kind != "object":
        yield field_errors.invalid(f"{path}.type", kind, "must be object at the root")
    if level == "root" or is_embedded:
        yield from _validate_type_meta(properties, path, is_root=level == "root")
    if is_embedded and not preserves_unknown and not properties:
        yield field_errors.required(f"{path}.properties", _EMBEDDED_WITHOUT_PROPERTIES)


def _validate_type_meta(properties: Schema, path: str, *, is_root: bool) -> Iterator[FieldError]:
    for key in ("kind", "apiVersion"):
        if key in properties and properties[key].get("type") != "string":
            type_path = f"{path}.properties[{key}].type"
            yield field_errors.invalid(type_path, properties[key].get("type") or "", "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    type_path = f"{path}.properties[metadata]"
    if metadata.get("type") != "object":
        yield field_errors.invalid(f"{type_path}.type", metadata.get("type") or "", "must be object")
    if is_root:
        other_keywords = {
            key for key, value in metadata.items() if key not in ("type", "description", "title", "default") and value
        }
        has_only_names = set(metadata.get("properties") or ()) <= {"name", "generateName"}
        if other_keywords - {"properties"} or not has_only_names:
            yield field_errors.forbidden(type_path, _METADATA_FIELDS)


def _validate_value_keywords(
    schema: Schema, path: str, level: str, allowed: list[Schema] | None
) -> Iterator[FieldError]:
    """Yield errors for keywords that are not allowed inside anyOf, allOf, oneOf and not, and for invalid patterns.

    An anyOf that equals `allowed` may name types.
    """
    for inner, inner_path in list_alternatives(schema, path):
        is_any_of = inner_path.startswith(f"{path}.anyOf[")
        if allowed is not None and is_any_of and _drop_empty_keywords(schema.get("anyOf") or []) == allowed:
            continue
        is_first = inner_path == f"{path}.allOf[0]"
        yield from _validate_alternative(inner, inner_path, allowed if is_first else None)
    pattern = schema.get("pattern")
    if pattern:
        try:
            compile_pattern(pattern)
        except re2.error as error:
            problem = f"error parsing regexp: {_format_regexp_error(error, pattern)}"
            message = f"must be a valid regular expression, but isn't: {problem}"
            yield field_errors.invalid(f"{path}.pattern", pattern, message)


def _drop_empty_keywords(schemas: list[Schema]) -> list[Schema]:
    """Return the schemas without the empty keywords that Go omits."""
    return [
        {key: value for key, value in schema.items() if value or key not in _IGNORED_IF_EMPTY} for schema in schemas
    ]


def _format_regexp_error(error: Exception, pattern: str) -> str:
    """Return the message of Go's regexp package for an RE2 error."""
    reason = error.args[0] if error.args else ""
    reason = reason.decode() if isinstance(reason, bytes) else str(reason)
    name, _, piece = reason.partition(": ")
    if name.startswith("trailing"):
        return "trailing backslash at end of expression: ``"
    return f"{_REGEXP_ERRORS.get(name, name)}: `{piece or pattern}`"


def _validate_alternative(schema: Schema, path: str, allowed: list[Schema] | None) -> Iterator[FieldError]:
    yield from _validate_value_keywords(schema, path, "field", allowed)
    for inner, inner_path, _ in list_children(schema, path):
        if not inner_path.endswith(".additionalProperties"):
            yield from _validate_alternative(inner, inner_path, None)
    for key, message in _FORBIDDEN_IN_ALTERNATIVES.items():
        if schema.get(key) not in (None, "", False, []):
            yield field_errors.forbidden(f"{path}.{key}", message)
    if "metadata" in (schema.get("properties") or {}):
        yield field_errors.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def validate_completeness(schema: Schema, path: str) -> Iterator[FieldError]:
    """Yield an error for each property in anyOf, allOf, oneOf and not that is not declared outside them."""
    for inner, inner_path in list_alternatives(schema, path):
        yield from _find_undeclared(schema, inner, path, inner_path)


def _find_undeclared(schema: Schema, inner: Schema, path: str, inner_path: str) -> Iterator[FieldError]:
    properties = schema.get("properties") or {}
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("additionalProperties") is not None
    for key, child in (inner.get("properties") or {}).items():
        outside, inside = f"{path}.properties[{key}]", f"{inner_path}.properties[{key}]"
        if key in properties:
            yield from _find_undeclared(properties[key], child, outside, inside)
        elif not open_ended:
            yield field_errors.required(outside, f"because it is defined in {inside}")
    for nested, nested_where in list_alternatives(inner, inner_path):
        yield from _find_undeclared(schema, nested, path, nested_where)
