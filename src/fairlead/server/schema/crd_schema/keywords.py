"""Validation of the keywords of a CRD schema: which are supported, and which values they may have."""

from collections.abc import Iterator
from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.schema import structural
from fairlead.server.schema.crd_schema.subschemas import Schema, list_alternatives, list_children
from fairlead.server.schema.paths import find_node

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_ROOT_ONLY: Final = ("apiVersion", "kind", "metadata")
_LIST_TYPES: Final = ("atomic", "set", "map")
_UNIQUE_ITEMS: Final = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"


def validate_keywords(schema: Schema, path: str, *, is_root: bool, allows_defaults: bool) -> Iterator[FieldError]:
    kind = schema.get("type") or ""
    if kind and kind not in _TYPES:
        yield field_errors.not_supported(f"{path}.type", kind, _TYPES)
    if "default" in schema and not allows_defaults:
        top = path.partition(".properties[")[2].partition("]")[0]
        yield field_errors.forbidden(f"{path}.default", f"must not be set in top-level {top}")
    for key in UNSUPPORTED:
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
    for inner, inner_path, _ in list_children(schema, path):
        inside_meta = is_root and inner_path[len(path) :] in {f".properties[{key}]" for key in _ROOT_ONLY}
        yield from validate_keywords(
            inner, inner_path, is_root=False, allows_defaults=allows_defaults and not inside_meta
        )
    for inner, inner_path in list_alternatives(schema, path):
        yield from validate_keywords(inner, inner_path, is_root=False, allows_defaults=allows_defaults)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield field_errors.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    yield from _validate_map_type(schema, path, kind)
    yield from _validate_list_type(schema, path, kind)
    yield from _validate_rule_keywords(schema, path)


def _check_type(path: str, kind: str, expected: str, keyword: str) -> Iterator[FieldError]:
    if kind != expected:
        message = f"must be {expected} if {keyword} is specified"
        yield (
            field_errors.invalid(f"{path}.type", kind, message)
            if kind
            else field_errors.required(f"{path}.type", message)
        )


def _validate_map_type(schema: Schema, path: str, kind: str) -> Iterator[FieldError]:
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is not None:
        yield from _check_type(path, kind, "object", "x-kubernetes-map-type")
        if map_type not in ("atomic", "granular"):
            yield field_errors.not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _validate_list_type(schema: Schema, path: str, kind: str) -> Iterator[FieldError]:
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    items = schema.get("items") if isinstance(schema.get("items"), dict) else None
    if list_type is not None:
        yield from _check_type(path, kind, "array", "x-kubernetes-list-type")
        if kind == "array" and list_type == "set" and items is not None:
            yield from _validate_set_items(items, path)
        if list_type not in _LIST_TYPES:
            yield field_errors.not_supported(f"{path}.x-kubernetes-list-type", list_type, _LIST_TYPES)
    if keys and list_type != "map":
        message = "must be map if x-kubernetes-list-map-keys is non-empty"
        list_type_path = f"{path}.x-kubernetes-list-type"
        yield (
            field_errors.required(list_type_path, message)
            if list_type is None
            else field_errors.invalid(list_type_path, list_type, message)
        )
    if list_type == "map":
        yield from _validate_map_items(schema, items, keys, path)
    if list_type in ("set", "map") and items is not None and items.get("nullable"):
        message = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        yield field_errors.forbidden(f"{path}.items.nullable", message)


def _validate_set_items(items: Schema, path: str) -> Iterator[FieldError]:
    message = "must be atomic as item of a list with x-kubernetes-list-type=set"
    inner = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and inner not in (None, "atomic"):
        yield field_errors.invalid(f"{path}.items.x-kubernetes-list-type", inner, message)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield field_errors.invalid(f"{path}.items.x-kubernetes-map-type", inner, message)


def _validate_map_items(schema: Schema, items: Schema | None, keys: list[str], path: str) -> Iterator[FieldError]:
    map_keys_path = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        yield field_errors.required(map_keys_path, "must not be empty if x-kubernetes-list-type is map")
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
            yield field_errors.invalid(map_keys_path, keys, "entries must all be names of item properties")
        elif inner.get("type") in ("array", "object"):
            message = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield field_errors.invalid(f"{property_path}.type", "object", message)
        if key in keys[:index]:
            yield field_errors.invalid(map_keys_path, keys, "must not contain duplicate entries")
        if inner is not None and key not in needed and inner.get("default") is None:
            message = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            yield field_errors.required(f"{property_path}.default", message)
        if inner is not None and inner.get("nullable"):
            message = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield field_errors.forbidden(f"{property_path}.nullable", message)


def _validate_rule_keywords(schema: Schema, path: str) -> Iterator[FieldError]:
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        rule_path = f"{path}.x-kubernetes-validations[{index}]"
        rule_text, message = rule.get("rule") or "", rule.get("message") or ""
        if not rule_text.strip():
            yield field_errors.required(f"{rule_path}.rule", "rule is not specified")
        elif message and not message.strip():
            yield field_errors.invalid(f"{rule_path}.message", message, "must be non-empty if specified")
        elif _has_line_break(message.strip()):
            yield field_errors.invalid(f"{rule_path}.message", message, "must not contain line breaks")
        elif _has_line_break(rule_text.strip()) and not message.strip():
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
