"""Whether an openAPIV3Schema may be a custom resource's: supported keywords, structural rules, sound defaults."""

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
_JUNCTORS: Final = ("anyOf", "allOf", "oneOf")
_ROOT_ONLY: Final = ("apiVersion", "kind", "metadata")
_LIST_TYPES: Final = ("atomic", "set", "map")
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_IGNORED: Final = ("enum", *_JUNCTORS, "patternProperties", "definitions")
_EMPTY: Final = {  # of the alternatives of a combinator: what they may not say, and how that is told
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
_WHERE: Final = {"root": "at the root", "item": "for specified array items", "field": "for specified object fields"}
_REGEXP: Final = {  # RE2's words for what is wrong with a pattern, and those of Go's regexp
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
}
_UNIQUE: Final = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
_METADATA: Final = "must not specify anything other than name and generateName, but metadata is implicitly specified"
_EMBEDDED: Final = (
    "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
)


def validate_crd_schema(schema: Schema, path: str, *, costs: bool = True) -> list[FieldError]:
    """What is wrong with a custom resource's schema. Rules are compiled once all else is sound.

    Without `costs`, no single rule is too expensive: that of one which stood there before.
    """
    spoken = list(_keywords(schema, path, root=True, defaults=True))
    found: list[FieldError] = []
    if not any(cause.reason == "FieldValueForbidden" and _breaks(cause.field) for cause in spoken):
        found = sorted(
            [*_shape(schema, path, "root"), *_completeness(schema, path)], key=lambda c: (c.field, c.message)
        )
        if not found:
            whole = {**schema, "x-kubernetes-embedded-resource": True}
            found = list(_defaults(whole, path)) or list(
                _compiling(schema, path, [cause.field for cause in spoken], costs)
            )
    if schema.get("nullable"):
        found.append(field_errors.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    return found + spoken


def _compiling(schema: Schema, path: str, wrong: list[str], costs: bool) -> Iterator[FieldError]:
    """What is wrong with the rules, save where a field at or below the schema they stand in is wrong anyway."""
    node = structural.compile_schema(schema)
    if not cel.has_rules(node):
        return
    if cel.available():
        yield from cel.problems(node, path, wrong, costs=costs)
    else:
        yield field_errors.forbidden(path, cel.MISSING_EXTRA)


def _breaks(field: str) -> bool:
    """Whether this keyword keeps a schema from being read as structural at all."""
    return field.endswith((*(f".{key}" for key in _UNSUPPORTED), ".items"))


def _children(schema: Schema, path: str) -> Iterator[tuple[Schema, str, str]]:
    """The schemas of what is inside: items, properties, additionalProperties, with how deep they stand."""
    if isinstance(schema.get("items"), dict):
        yield schema["items"], f"{path}.items", "item"
    for key, inner in (schema.get("properties") or {}).items():
        yield inner, f"{path}.properties[{key}]", "field"
    if isinstance(schema.get("additionalProperties"), dict):
        yield schema["additionalProperties"], f"{path}.additionalProperties", "field"


def _nested(schema: Schema, path: str) -> Iterator[tuple[Schema, str]]:
    """The alternatives of a schema's combinators."""
    for junctor in _JUNCTORS:
        for index, inner in enumerate(schema.get(junctor) or ()):
            yield inner, f"{path}.{junctor}[{index}]"
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
        yield field_errors.forbidden(f"{path}.uniqueItems", _UNIQUE)
    additional = schema.get("additionalProperties")
    if additional is not None and additional is not True and schema.get("properties"):
        told = "additionalProperties and properties are mutual exclusive"
        yield field_errors.forbidden(f"{path}.additionalProperties", told)
    for inner, where, _ in _children(schema, path):
        inside_meta = root and where[len(path) :] in {f".properties[{key}]" for key in _ROOT_ONLY}
        yield from _keywords(inner, where, root=False, defaults=defaults and not inside_meta)
    for inner, where in _nested(schema, path):
        yield from _keywords(inner, where, root=False, defaults=defaults)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield field_errors.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    yield from _map_type(schema, path, kind)
    yield from _list_type(schema, path, kind)
    yield from _rules(schema, path)


def _must_be(path: str, kind: str, wanted: str, why: str) -> Iterator[FieldError]:
    if kind != wanted:
        told = f"must be {wanted} if {why} is specified"
        yield field_errors.invalid(f"{path}.type", kind, told) if kind else field_errors.required(f"{path}.type", told)


def _map_type(schema: Schema, path: str, kind: str) -> Iterator[FieldError]:
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is not None:
        yield from _must_be(path, kind, "object", "x-kubernetes-map-type")
        if map_type not in ("atomic", "granular"):
            yield field_errors.not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _list_type(schema: Schema, path: str, kind: str) -> Iterator[FieldError]:
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    items = schema.get("items") if isinstance(schema.get("items"), dict) else None
    if list_type is not None:
        yield from _must_be(path, kind, "array", "x-kubernetes-list-type")
        if kind == "array" and list_type == "set" and items is not None:
            yield from _set_items(items, path)
        if list_type not in _LIST_TYPES:
            yield field_errors.not_supported(f"{path}.x-kubernetes-list-type", list_type, _LIST_TYPES)
    if keys and list_type != "map":
        told = "must be map if x-kubernetes-list-map-keys is non-empty"
        where = f"{path}.x-kubernetes-list-type"
        yield field_errors.required(where, told) if list_type is None else field_errors.invalid(where, list_type, told)
    if list_type == "map":
        yield from _map_items(schema, items, keys, path)
    if list_type in ("set", "map") and items is not None and items.get("nullable"):
        told = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        yield field_errors.forbidden(f"{path}.items.nullable", told)


def _set_items(items: Schema, path: str) -> Iterator[FieldError]:
    told = "must be atomic as item of a list with x-kubernetes-list-type=set"
    inner = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and inner not in (None, "atomic"):
        yield field_errors.invalid(f"{path}.items.x-kubernetes-list-type", inner, told)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield field_errors.invalid(f"{path}.items.x-kubernetes-map-type", inner, told)


def _map_items(schema: Schema, items: Schema | None, keys: list[str], path: str) -> Iterator[FieldError]:
    where = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        yield field_errors.required(where, "must not be empty if x-kubernetes-list-type is map")
    if schema.get("items") is None:
        yield field_errors.required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    if items is None:
        return
    if items.get("type") != "object":
        told = "must be object if parent array's x-kubernetes-list-type is map"
        yield field_errors.invalid(f"{path}.items.type", items.get("type") or "", told)
        return
    properties, needed = items.get("properties") or {}, items.get("required") or []
    for index, key in enumerate(keys):
        inner, here = properties.get(key), f"{path}.items.properties[{key}]"
        if inner is None:
            yield field_errors.invalid(where, keys, "entries must all be names of item properties")
        elif inner.get("type") in ("array", "object"):
            told = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield field_errors.invalid(f"{here}.type", "object", told)
        if key in keys[:index]:
            yield field_errors.invalid(where, keys, "must not contain duplicate entries")
        if inner is not None and key not in needed and inner.get("default") is None:
            told = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            yield field_errors.required(f"{here}.default", told)
        if inner is not None and inner.get("nullable"):
            told = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield field_errors.forbidden(f"{here}.nullable", told)


def _rules(schema: Schema, path: str) -> Iterator[FieldError]:
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        here = f"{path}.x-kubernetes-validations[{index}]"
        text, message = rule.get("rule") or "", rule.get("message") or ""
        if not text.strip():
            yield field_errors.required(f"{here}.rule", "rule is not specified")
        elif message and not message.strip():
            yield field_errors.invalid(f"{here}.message", message, "must be non-empty if specified")
        elif _breaks_lines(message.strip()):
            yield field_errors.invalid(f"{here}.message", message, "must not contain line breaks")
        elif _breaks_lines(text.strip()) and not message.strip():
            yield field_errors.required(f"{here}.message", "message must be specified if rule contains line breaks")
        expression = rule.get("messageExpression") or ""
        if expression and not expression.strip():
            yield field_errors.required(f"{here}.messageExpression", "messageExpression must be non-empty if specified")
        reasons = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
        if rule.get("reason") is not None and rule["reason"] not in reasons:
            yield field_errors.not_supported(f"{here}.reason", rule["reason"], reasons)
        if rule.get("fieldPath") and find_node(structural.compile_fragment(schema), rule["fieldPath"]) is None:
            yield field_errors.invalid(f"{here}.fieldPath", rule["fieldPath"], "must be a valid path")


def _breaks_lines(text: str) -> bool:
    return "\n" in text or "\r" in text


def _shape(schema: Schema, path: str, level: str) -> Iterator[FieldError]:
    """The invariants of a structural schema."""
    kind = schema.get("type") or ""
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
    properties = schema.get("properties") or {}
    if kind == "array" and schema.get("items") is None:
        yield field_errors.required(f"{path}.items", "must be specified")
    for inner, where, below in _children(schema, path):
        yield from _shape(inner, where, below)
    if level == "root" and schema.get("additionalProperties") is not None:
        yield field_errors.forbidden(f"{path}.additionalProperties", "must not be used at the root")
    for key, given in (("preserve-unknown-fields", preserve), ("embedded-resource", embedded)):
        if int_or_string and given:
            told = "must be false if x-kubernetes-int-or-string is true"
            yield field_errors.invalid(f"{path}.x-kubernetes-{key}", True, told)
    yield from _values(schema, path, level, free=_INT_OR_STRING)
    if embedded and kind != "object":
        told = "must be object if x-kubernetes-embedded-resource is true"
        yield field_errors.invalid(f"{path}.type", kind, told) if kind else field_errors.required(f"{path}.type", told)
    elif not kind and not int_or_string and not preserve:
        yield field_errors.required(f"{path}.type", f"must not be empty {_WHERE[level]}")
    if embedded and schema.get("additionalProperties") is not None:
        told = "must not be used if x-kubernetes-embedded-resource is set"
        yield field_errors.forbidden(f"{path}.additionalProperties", told)
    if level == "root" and kind and kind != "object":
        yield field_errors.invalid(f"{path}.type", kind, "must be object at the root")
    if level == "root" or embedded:
        yield from _type_meta(properties, path, root=level == "root")
    if embedded and not preserve and not properties:
        yield field_errors.required(f"{path}.properties", _EMBEDDED)


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
        rest = {
            key for key, value in metadata.items() if key not in ("type", "description", "title", "default") and value
        }
        names = set(metadata.get("properties") or ()) <= {"name", "generateName"}
        if rest - {"properties"} or not names:
            yield field_errors.forbidden(where, _METADATA)


def _values(schema: Schema, path: str, level: str, free: list[Schema] | None) -> Iterator[FieldError]:
    """Value validations: the alternatives of combinators may not say what the structure must say."""
    for inner, where in _nested(schema, path):
        if free is not None and where.startswith(f"{path}.anyOf[") and _plain(schema.get("anyOf") or []) == free:
            continue
        first = where == f"{path}.allOf[0]"
        yield from _alternative(inner, where, free if first else None)
    pattern = schema.get("pattern")
    if pattern:
        try:
            compile_pattern(pattern)
        except re2.error as error:
            told = (
                f"must be a valid regular expression, but isn't: error parsing regexp: {_regexp_error(error, pattern)}"
            )
            yield field_errors.invalid(f"{path}.pattern", pattern, told)


def _plain(alternatives: list[Schema]) -> list[Schema]:
    """Alternatives as they are compared: of what is given empty, only a structure of their own counts."""
    return [{key: one for key, one in each.items() if one or key not in _IGNORED} for each in alternatives]


def _regexp_error(error: Exception, pattern: str) -> str:
    """RE2's error as Go's regexp words it."""
    text = error.args[0] if error.args else ""
    text = text.decode() if isinstance(text, bytes) else str(text)
    name, _, piece = text.partition(": ")
    if name.startswith("trailing"):
        return "trailing backslash at end of expression: ``"
    return f"{_REGEXP.get(name, name)}: `{piece or pattern}`"


def _alternative(schema: Schema, path: str, free: list[Schema] | None) -> Iterator[FieldError]:
    yield from _values(schema, path, "field", free)
    for inner, where, _ in _children(schema, path):
        if not where.endswith(".additionalProperties"):
            yield from _alternative(inner, where, None)
    for key, told in _EMPTY.items():
        if schema.get(key) not in (None, "", False, []):
            yield field_errors.forbidden(f"{path}.{key}", told)
    if "metadata" in (schema.get("properties") or {}):
        yield field_errors.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness(schema: Schema, path: str) -> Iterator[FieldError]:
    """What the root's alternatives speak of must be declared outside them."""
    for inner, where in _nested(schema, path):
        yield from _declared(schema, inner, path, where)


def _declared(schema: Schema, inner: Schema, path: str, where: str) -> Iterator[FieldError]:
    properties = schema.get("properties") or {}
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("additionalProperties") is not None
    for key, below in (inner.get("properties") or {}).items():
        here, there = f"{path}.properties[{key}]", f"{where}.properties[{key}]"
        if key in properties:
            yield from _declared(properties[key], below, here, there)
        elif not open_ended:
            yield field_errors.required(here, f"because it is defined in {there}")
    for nested, nested_where in _nested(inner, where):
        yield from _declared(schema, nested, path, nested_where)


def _defaults(schema: Schema, path: str) -> Iterator[FieldError]:
    """Defaults must themselves be valid, and hold nothing that would be pruned."""
    if schema.get("default") is not None:
        node, value, here = structural.compile_fragment(schema), schema["default"], f"{path}.default"
        if isinstance(value, dict | list) and pruning.find_unknown_fields(node, value):
            yield field_errors.invalid(here, value, "must not have unknown fields")
        wrong = validate_embedded_resources(node, value, here)
        wrong = wrong or validate_by_schema(
            structural.compile_fragment(_untyped(schema), every_format=True), value, under=here
        )
        if not wrong and cel.has_rules(node) and cel.available():
            failed = cel.failures(node, value, value, here) or cel.failures(node, value, None, here)
            wrong = [one.cause for one in failed]
        yield from wrong
    for inner, where, _ in _children(schema, path):
        if not where.endswith(".additionalProperties"):  # nobody looks at defaults there
            yield from _defaults(inner, where)


def coerce_defaults(schema: Schema) -> Schema:
    """The schema as a real server keeps it: metadata of embedded resources in defaults lose what they do not know."""
    changed: Schema = {}
    value = schema.get("default")
    if isinstance(value, dict | list) and _embeds(schema):
        with contextlib.suppress(codec.DecodeError):  # validation tells of it
            if (
                made := pruning.coerce_embedded_metadata(
                    structural.compile_fragment(schema), encoding.normalize_numbers(value)
                )
            ) != value:
                changed["default"] = made
    properties = schema.get("properties") or {}
    below = {key: new for key, old in properties.items() if (new := coerce_defaults(old)) is not old}
    if below:
        changed["properties"] = {**properties, **below}
    items = schema.get("items")
    if isinstance(items, dict) and (new := coerce_defaults(items)) is not items:
        changed["items"] = new
    return {**schema, **changed} if changed else schema


def _embeds(schema: Schema) -> bool:
    below = [schema.get("items"), schema.get("additionalProperties"), *(schema.get("properties") or {}).values()]
    return bool(schema.get("x-kubernetes-embedded-resource")) or any(
        _embeds(inner) for inner in below if isinstance(inner, dict)
    )


def _untyped(schema: Schema) -> Schema:
    """The schema as a real server holds defaults to it: of integers or strings, any type passes."""
    made = {key: value for key, value in schema.items() if key != "x-kubernetes-int-or-string"}
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), dict):
            made[key] = _untyped(made[key])
    if made.get("properties"):
        made["properties"] = {key: _untyped(value) for key, value in made["properties"].items()}
    return made
