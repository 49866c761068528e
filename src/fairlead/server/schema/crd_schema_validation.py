"""Validation of the openAPIV3Schema of a CustomResourceDefinition.

Checks the keywords, the rules of structural schemas, the default values and the CEL rules.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import re2

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.golang import encoding
from fairlead.server.schema import cel, codec, pruning, structural
from fairlead.server.schema.embedded_resources import validate_embedded_resources
from fairlead.server.schema.paths import find_node
from fairlead.server.schema.patterns import compile_pattern
from fairlead.server.schema.validation import validate_by_schema

Schema = dict[str, Any]
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_COMBINATORS: Final = ("anyOf", "allOf", "oneOf")
_ROOT_ONLY: Final = ("apiVersion", "kind", "metadata")
_LIST_TYPES: Final = ("atomic", "set", "map")
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_IGNORED_IF_EMPTY: Final = ("enum", *_COMBINATORS, "patternProperties", "definitions")
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
_UNIQUE_ITEMS: Final = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
_METADATA_FIELDS: Final = (
    "must not specify anything other than name and generateName, but metadata is implicitly specified"
)
_EMBEDDED_WITHOUT_PROPERTIES: Final = (
    "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
)


def validate_crd_schema(schema: Schema, path: str, *, costs: bool = True) -> list[FieldError]:
    """Return the errors in the schema of a custom resource. CEL rules are compiled only if the rest is valid.

    Without `costs`, the cost of a single rule is not limited, as for a rule that is already stored.
    """
    keyword_errors = list(_keywords(schema, path, root=True, defaults=True))
    errors: list[FieldError] = []
    if not any(cause.reason == "FieldValueForbidden" and _prevents_structural(cause.field) for cause in keyword_errors):
        errors = sorted(
            [*_structure(schema, path, "root"), *_completeness(schema, path)], key=lambda c: (c.field, c.message)
        )
        if not errors:
            embedded = {**schema, "x-kubernetes-embedded-resource": True}
            errors = list(_defaults(embedded, path)) or list(
                _cel_rules(schema, path, [cause.field for cause in keyword_errors], costs)
            )
    if schema.get("nullable"):
        errors.append(field_errors.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    return errors + keyword_errors


def _cel_rules(schema: Schema, path: str, invalid_fields: list[str], costs: bool) -> Iterator[FieldError]:
    """Yield the errors of the CEL rules. A rule is not compiled if its schema has an invalid field."""
    node = structural.compile_schema(schema)
    if not cel.has_rules(node):
        return
    if cel.is_available():
        yield from cel.validate_rules(node, path, invalid_fields, costs=costs)
    else:
        yield field_errors.forbidden(path, cel.MISSING_EXTRA)


def _prevents_structural(field: str) -> bool:
    """Return whether an error in this field means that the schema cannot be read as structural."""
    return field.endswith((*(f".{key}" for key in _UNSUPPORTED), ".items"))


def _children(schema: Schema, path: str) -> Iterator[tuple[Schema, str, str]]:
    """Yield the schemas of items, properties and additionalProperties, each with its path and level."""
    if isinstance(schema.get("items"), dict):
        yield schema["items"], f"{path}.items", "item"
    for key, inner in (schema.get("properties") or {}).items():
        yield inner, f"{path}.properties[{key}]", "field"
    if isinstance(schema.get("additionalProperties"), dict):
        yield schema["additionalProperties"], f"{path}.additionalProperties", "field"


def _alternatives(schema: Schema, path: str) -> Iterator[tuple[Schema, str]]:
    """Yield the schemas in anyOf, allOf, oneOf and not, each with its path."""
    for combinator in _COMBINATORS:
        for index, inner in enumerate(schema.get(combinator) or ()):
            yield inner, f"{path}.{combinator}[{index}]"
    if schema.get("not") is not None:
        yield schema["not"], f"{path}.not"


def _keywords(schema: Schema, path: str, *, root: bool, defaults: bool) -> Iterator[FieldError]:
    kind = schema.get("type") or ""
    if kind and kind not in _TYPES:
        yield field_errors.not_supported(f"{path}.type", kind, _TYPES)
    if "default" in schema and not defaults:
        top = path.partition(".properties[")[2].partition("]")[0]
        yield field_errors.forbidden(f"{path}.default", f"must not be set in top-level {top}")
    for key in _UNSUPPORTED:
        if schema.get(key) or (key == "dependencies" and schema.get(key) is not None):
            yield field_errors.forbidden(f"{path}.{key}", f"{key} is not supported")
    if kind == "null":
        yield field_errors.forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list):
        yield field_errors.forbidden(f"{path}.items", "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        yield field_errors.forbidden(f"{path}.uniqueItems", _UNIQUE_ITEMS)
    additional = schema.get("additionalProperties")
    if additional is not None and additional is not True and schema.get("properties"):
        message = "additionalProperties and properties are mutual exclusive"
        yield field_errors.forbidden(f"{path}.additionalProperties", message)
    for inner, where, _ in _children(schema, path):
        inside_meta = root and where[len(path) :] in {f".properties[{key}]" for key in _ROOT_ONLY}
        yield from _keywords(inner, where, root=False, defaults=defaults and not inside_meta)
    for inner, where in _alternatives(schema, path):
        yield from _keywords(inner, where, root=False, defaults=defaults)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield field_errors.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    yield from _map_type(schema, path, kind)
    yield from _list_type(schema, path, kind)
    yield from _rule_keywords(schema, path)


def _expect_type(path: str, kind: str, expected: str, keyword: str) -> Iterator[FieldError]:
    if kind != expected:
        message = f"must be {expected} if {keyword} is specified"
        yield (
            field_errors.invalid(f"{path}.type", kind, message)
            if kind
            else field_errors.required(f"{path}.type", message)
        )


def _map_type(schema: Schema, path: str, kind: str) -> Iterator[FieldError]:
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is not None:
        yield from _expect_type(path, kind, "object", "x-kubernetes-map-type")
        if map_type not in ("atomic", "granular"):
            yield field_errors.not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _list_type(schema: Schema, path: str, kind: str) -> Iterator[FieldError]:
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    items = schema.get("items") if isinstance(schema.get("items"), dict) else None
    if list_type is not None:
        yield from _expect_type(path, kind, "array", "x-kubernetes-list-type")
        if kind == "array" and list_type == "set" and items is not None:
            yield from _set_items(items, path)
        if list_type not in _LIST_TYPES:
            yield field_errors.not_supported(f"{path}.x-kubernetes-list-type", list_type, _LIST_TYPES)
    if keys and list_type != "map":
        message = "must be map if x-kubernetes-list-map-keys is non-empty"
        where = f"{path}.x-kubernetes-list-type"
        yield (
            field_errors.required(where, message)
            if list_type is None
            else field_errors.invalid(where, list_type, message)
        )
    if list_type == "map":
        yield from _map_items(schema, items, keys, path)
    if list_type in ("set", "map") and items is not None and items.get("nullable"):
        message = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        yield field_errors.forbidden(f"{path}.items.nullable", message)


def _set_items(items: Schema, path: str) -> Iterator[FieldError]:
    message = "must be atomic as item of a list with x-kubernetes-list-type=set"
    inner = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and inner not in (None, "atomic"):
        yield field_errors.invalid(f"{path}.items.x-kubernetes-list-type", inner, message)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield field_errors.invalid(f"{path}.items.x-kubernetes-map-type", inner, message)


def _map_items(schema: Schema, items: Schema | None, keys: list[str], path: str) -> Iterator[FieldError]:
    where = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        yield field_errors.required(where, "must not be empty if x-kubernetes-list-type is map")
    if schema.get("items") is None:
        yield field_errors.required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    if items is None:
        return
    if items.get("type") != "object":
        message = "must be object if parent array's x-kubernetes-list-type is map"
        yield field_errors.invalid(f"{path}.items.type", items.get("type") or "", message)
        return
    properties, needed = items.get("properties") or {}, items.get("required") or []
    for index, key in enumerate(keys):
        inner, property_path = properties.get(key), f"{path}.items.properties[{key}]"
        if inner is None:
            yield field_errors.invalid(where, keys, "entries must all be names of item properties")
        elif inner.get("type") in ("array", "object"):
            message = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield field_errors.invalid(f"{property_path}.type", "object", message)
        if key in keys[:index]:
            yield field_errors.invalid(where, keys, "must not contain duplicate entries")
        if inner is not None and key not in needed and inner.get("default") is None:
            message = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            yield field_errors.required(f"{property_path}.default", message)
        if inner is not None and inner.get("nullable"):
            message = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield field_errors.forbidden(f"{property_path}.nullable", message)


def _rule_keywords(schema: Schema, path: str) -> Iterator[FieldError]:
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        rule_path = f"{path}.x-kubernetes-validations[{index}]"
        text, message = rule.get("rule") or "", rule.get("message") or ""
        if not text.strip():
            yield field_errors.required(f"{rule_path}.rule", "rule is not specified")
        elif message and not message.strip():
            yield field_errors.invalid(f"{rule_path}.message", message, "must be non-empty if specified")
        elif _has_line_break(message.strip()):
            yield field_errors.invalid(f"{rule_path}.message", message, "must not contain line breaks")
        elif _has_line_break(text.strip()) and not message.strip():
            yield field_errors.required(
                f"{rule_path}.message", "message must be specified if rule contains line breaks"
            )
        expression = rule.get("messageExpression") or ""
        if expression and not expression.strip():
            yield field_errors.required(
                f"{rule_path}.messageExpression", "messageExpression must be non-empty if specified"
            )
        reasons = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
        if rule.get("reason") is not None and rule["reason"] not in reasons:
            yield field_errors.not_supported(f"{rule_path}.reason", rule["reason"], reasons)
        if rule.get("fieldPath") and find_node(structural.compile_fragment(schema), rule["fieldPath"]) is None:
            yield field_errors.invalid(f"{rule_path}.fieldPath", rule["fieldPath"], "must be a valid path")


def _has_line_break(text: str) -> bool:
    return "\n" in text or "\r" in text


def _structure(schema: Schema, path: str, level: str) -> Iterator[FieldError]:
    """Yield an error for each violation of the rules of structural schemas."""
    kind = schema.get("type") or ""
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
    properties = schema.get("properties") or {}
    if kind == "array" and schema.get("items") is None:
        yield field_errors.required(f"{path}.items", "must be specified")
    for inner, where, inner_level in _children(schema, path):
        yield from _structure(inner, where, inner_level)
    if level == "root" and schema.get("additionalProperties") is not None:
        yield field_errors.forbidden(f"{path}.additionalProperties", "must not be used at the root")
    for key, is_set in (("preserve-unknown-fields", preserve), ("embedded-resource", embedded)):
        if int_or_string and is_set:
            message = "must be false if x-kubernetes-int-or-string is true"
            yield field_errors.invalid(f"{path}.x-kubernetes-{key}", True, message)
    yield from _value_validations(schema, path, level, allowed=_INT_OR_STRING)
    if embedded and kind != "object":
        message = "must be object if x-kubernetes-embedded-resource is true"
        yield (
            field_errors.invalid(f"{path}.type", kind, message)
            if kind
            else field_errors.required(f"{path}.type", message)
        )
    elif not kind and not int_or_string and not preserve:
        yield field_errors.required(f"{path}.type", f"must not be empty {_LEVELS[level]}")
    if embedded and schema.get("additionalProperties") is not None:
        message = "must not be used if x-kubernetes-embedded-resource is set"
        yield field_errors.forbidden(f"{path}.additionalProperties", message)
    if level == "root" and kind and kind != "object":
        yield field_errors.invalid(f"{path}.type", kind, "must be object at the root")
    if level == "root" or embedded:
        yield from _type_meta(properties, path, root=level == "root")
    if embedded and not preserve and not properties:
        yield field_errors.required(f"{path}.properties", _EMBEDDED_WITHOUT_PROPERTIES)


def _type_meta(properties: Schema, path: str, *, root: bool) -> Iterator[FieldError]:
    for key in ("kind", "apiVersion"):
        if key in properties and properties[key].get("type") != "string":
            where = f"{path}.properties[{key}].type"
            yield field_errors.invalid(where, properties[key].get("type") or "", "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    where = f"{path}.properties[metadata]"
    if metadata.get("type") != "object":
        yield field_errors.invalid(f"{where}.type", metadata.get("type") or "", "must be object")
    if root:
        other_keywords = {
            key for key, value in metadata.items() if key not in ("type", "description", "title", "default") and value
        }
        only_names = set(metadata.get("properties") or ()) <= {"name", "generateName"}
        if other_keywords - {"properties"} or not only_names:
            yield field_errors.forbidden(where, _METADATA_FIELDS)


def _value_validations(schema: Schema, path: str, level: str, allowed: list[Schema] | None) -> Iterator[FieldError]:
    """Yield errors for keywords that are not allowed inside anyOf, allOf, oneOf and not, and for invalid patterns.

    An anyOf that equals `allowed` may name types.
    """
    for inner, where in _alternatives(schema, path):
        is_any_of = where.startswith(f"{path}.anyOf[")
        if allowed is not None and is_any_of and _drop_empty_keywords(schema.get("anyOf") or []) == allowed:
            continue
        first = where == f"{path}.allOf[0]"
        yield from _alternative(inner, where, allowed if first else None)
    pattern = schema.get("pattern")
    if pattern:
        try:
            compile_pattern(pattern)
        except re2.error as error:
            message = (
                f"must be a valid regular expression, but isn't: error parsing regexp: {_regexp_error(error, pattern)}"
            )
            yield field_errors.invalid(f"{path}.pattern", pattern, message)


def _drop_empty_keywords(schemas: list[Schema]) -> list[Schema]:
    """Return the schemas without the empty keywords that Go omits."""
    return [
        {key: value for key, value in schema.items() if value or key not in _IGNORED_IF_EMPTY} for schema in schemas
    ]


def _regexp_error(error: Exception, pattern: str) -> str:
    """Return the message of Go's regexp package for an RE2 error."""
    text = error.args[0] if error.args else ""
    text = text.decode() if isinstance(text, bytes) else str(text)
    name, _, piece = text.partition(": ")
    if name.startswith("trailing"):
        return "trailing backslash at end of expression: ``"
    return f"{_REGEXP_ERRORS.get(name, name)}: `{piece or pattern}`"


def _alternative(schema: Schema, path: str, allowed: list[Schema] | None) -> Iterator[FieldError]:
    yield from _value_validations(schema, path, "field", allowed)
    for inner, where, _ in _children(schema, path):
        if not where.endswith(".additionalProperties"):
            yield from _alternative(inner, where, None)
    for key, message in _FORBIDDEN_IN_ALTERNATIVES.items():
        if schema.get(key) not in (None, "", False, []):
            yield field_errors.forbidden(f"{path}.{key}", message)
    if "metadata" in (schema.get("properties") or {}):
        yield field_errors.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness(schema: Schema, path: str) -> Iterator[FieldError]:
    """Yield an error for each property in anyOf, allOf, oneOf and not that is not declared outside them."""
    for inner, where in _alternatives(schema, path):
        yield from _declared(schema, inner, path, where)


def _declared(schema: Schema, inner: Schema, path: str, where: str) -> Iterator[FieldError]:
    properties = schema.get("properties") or {}
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("additionalProperties") is not None
    for key, child in (inner.get("properties") or {}).items():
        outside, inside = f"{path}.properties[{key}]", f"{where}.properties[{key}]"
        if key in properties:
            yield from _declared(properties[key], child, outside, inside)
        elif not open_ended:
            yield field_errors.required(outside, f"because it is defined in {inside}")
    for nested, nested_where in _alternatives(inner, where):
        yield from _declared(schema, nested, path, nested_where)


def _defaults(schema: Schema, path: str) -> Iterator[FieldError]:
    """Yield the errors of default values, which must be valid and must not have unknown fields."""
    if schema.get("default") is not None:
        node, value, default_path = structural.compile_fragment(schema), schema["default"], f"{path}.default"
        if isinstance(value, dict | list) and pruning.find_unknown_fields(node, value):
            yield field_errors.invalid(default_path, value, "must not have unknown fields")
        errors = validate_embedded_resources(node, value, default_path)
        errors = errors or validate_by_schema(
            structural.compile_fragment(_without_int_or_string(schema), every_format=True), value, under=default_path
        )
        if not errors and cel.has_rules(node) and cel.is_available():
            failed = cel.evaluate_rules(node, value, value, default_path) or cel.evaluate_rules(
                node, value, None, default_path
            )
            errors = [failure.error for failure in failed]
        yield from errors
    for inner, where, _ in _children(schema, path):
        if not where.endswith(".additionalProperties"):  # A real server does not check defaults there.
            yield from _defaults(inner, where)


def coerce_defaults(schema: Schema) -> Schema:
    """Return the schema as a real server stores it, or `schema` itself if nothing changes.

    Default values of embedded resources lose their unknown metadata fields.
    """
    changed: Schema = {}
    value = schema.get("default")
    if isinstance(value, dict | list) and _contains_embedded(schema):
        with contextlib.suppress(codec.DecodeError):  # Validation reports this error.
            if (
                result := pruning.coerce_embedded_metadata(
                    structural.compile_fragment(schema), encoding.normalize_numbers(value)
                )
            ) != value:
                changed["default"] = result
    properties = schema.get("properties") or {}
    changed_properties = {key: new for key, old in properties.items() if (new := coerce_defaults(old)) is not old}
    if changed_properties:
        changed["properties"] = {**properties, **changed_properties}
    items = schema.get("items")
    if isinstance(items, dict) and (new := coerce_defaults(items)) is not items:
        changed["items"] = new
    return {**schema, **changed} if changed else schema


def _contains_embedded(schema: Schema) -> bool:
    """Return whether the schema contains an embedded resource."""
    children = [schema.get("items"), schema.get("additionalProperties"), *(schema.get("properties") or {}).values()]
    return bool(schema.get("x-kubernetes-embedded-resource")) or any(
        _contains_embedded(inner) for inner in children if isinstance(inner, dict)
    )


def _without_int_or_string(schema: Schema) -> Schema:
    """Return the schema by which a real server validates default values: int-or-string fields accept any type."""
    result = {key: value for key, value in schema.items() if key != "x-kubernetes-int-or-string"}
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), dict):
            result[key] = _without_int_or_string(result[key])
    if result.get("properties"):
        result["properties"] = {key: _without_int_or_string(value) for key, value in result["properties"].items()}
    return result
