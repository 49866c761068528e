"""Structural schemas of custom resources: compile an openAPIV3Schema into nodes. Equal schemas compile once."""

from collections import OrderedDict
from typing import Any, Final

import msgspec

from fairlead.server.schema import builtin
from fairlead.server.schema.formats import enforced_format
from fairlead.server.schema.nodes import MISSING, ListType, Node

ANYTHING: Final = Node("", preserve=True)  # The schema of the values under `additionalProperties: true`.
_CACHE_SIZE: Final = 512  # All servers of a process share the cache.
_cache: "OrderedDict[bytes, Node]" = OrderedDict()


class Constraints:
    """The keywords of one part of a custom resource's schema, which pruning, defaulting and validation read.

    `properties` are the declared properties. A node's `fields` also have the apiVersion, kind and metadata of embedded
    resources, which only ownership needs.
    """

    __slots__ = (
        "additional",
        "all_of",
        "any_of",
        "enum",
        "exclusive_maximum",
        "exclusive_minimum",
        "format",
        "keys",
        "max_items",
        "max_length",
        "max_properties",
        "maximum",
        "min_items",
        "min_length",
        "min_properties",
        "minimum",
        "multiple_of",
        "not_",
        "one_of",
        "only_type",
        "pattern",
        "properties",
        "required",
        "types",
        "validations",
    )

    def __init__(self, schema: dict[str, Any], properties: dict[str, Node], every_format: bool = False) -> None:
        self.properties = properties
        additional = schema.get("additionalProperties")
        self.additional = additional if isinstance(additional, bool) else None
        if schema.get("x-kubernetes-int-or-string"):
            self.types: tuple[str, ...] = ("integer", "string")
        else:
            self.types = (schema["type"],) if schema.get("type") else ()
        self.required: tuple[str, ...] = tuple(schema.get("required") or ())
        self.enum: list[Any] = schema.get("enum") or []
        self.format: str = schema.get("format") or ""
        if not every_format:
            self.format = enforced_format(self.types, self.format)
        self.pattern: str = schema.get("pattern") or ""
        self.min_length: int | None = schema.get("minLength")
        self.max_length: int | None = schema.get("maxLength")
        self.min_items: int | None = schema.get("minItems")
        self.max_items: int | None = schema.get("maxItems")
        self.min_properties: int | None = schema.get("minProperties")
        self.max_properties: int | None = schema.get("maxProperties")
        self.minimum: float | None = schema.get("minimum")
        self.maximum: float | None = schema.get("maximum")
        self.exclusive_minimum = bool(schema.get("exclusiveMinimum"))
        self.exclusive_maximum = bool(schema.get("exclusiveMaximum"))
        self.multiple_of: float | None = schema.get("multipleOf")
        self.all_of = tuple(_build_node(inner) for inner in schema.get("allOf") or ())
        self.any_of = tuple(_build_node(inner) for inner in schema.get("anyOf") or ())
        self.one_of = tuple(_build_node(inner) for inner in schema.get("oneOf") or ())
        self.not_ = _build_node(schema["not"]) if schema.get("not") is not None else None
        self.validations: list[dict[str, Any]] = schema.get("x-kubernetes-validations") or []
        self.keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        # Most schemas constrain only the type.
        self.only_type = not (
            self.enum or self.format or self.pattern or self.all_of or self.any_of or self.one_of or self.not_
            or self.min_length is not None or self.max_length is not None or self.minimum is not None
            or self.maximum is not None or self.multiple_of is not None
        )  # fmt: skip


def compile_schema(schema: dict[str, Any]) -> Node:
    """Return the root node of a custom resource's schema. Equal schemas share one node."""
    content = msgspec.json.encode(schema, order="sorted")
    node = _cache.get(content)
    if node is None:
        node = _cache[content] = _build_node({**schema, "x-kubernetes-embedded-resource": True})
        if len(_cache) > _CACHE_SIZE:
            _cache.popitem(last=False)
    else:
        _cache.move_to_end(content)
    return node


def compile_version(version: dict[str, Any]) -> Node:
    """Return the root node for a version of a CRD. A version without a schema keeps unknown fields."""
    return compile_schema((version.get("schema") or {}).get("openAPIV3Schema") or _PRESERVE_UNKNOWN)


_PRESERVE_UNKNOWN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def compile_fragment(schema: dict[str, Any], *, every_format: bool = False) -> Node:
    """Return an uncached node for a part of a schema. `every_format` also enforces formats that its type ignores."""
    return _build_node(schema, every_format)


def _build_node(schema: dict[str, Any], every_format: bool = False) -> Node:
    properties = {key: _build_node(inner, every_format) for key, inner in (schema.get("properties") or {}).items()}
    additional = schema.get("additionalProperties")
    values = _build_node(additional, every_format) if isinstance(additional, dict) else ANYTHING if additional else None
    items = schema.get("items")
    is_embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    list_type: ListType = schema.get("x-kubernetes-list-type") or "atomic"
    is_int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
    return Node(
        "" if is_int_or_string else schema.get("type") or "",
        fields={**properties, **_build_type_meta()} if is_embedded else properties,
        values=values,
        items=_build_node(items, every_format) if isinstance(items, dict) else None,
        map_type="atomic" if schema.get("x-kubernetes-map-type") == "atomic" else "granular",
        list_type=list_type,
        keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        preserve=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        int_or_string=is_int_or_string,
        embedded=is_embedded,
        nullable=bool(schema.get("nullable")),
        format=schema.get("format") or "",
        default=MISSING if schema.get("default") is None else schema["default"],
        constraints=Constraints(schema, properties, every_format),
    )


def _build_type_meta() -> dict[str, Node]:
    config_map = builtin.schema_of_kind("", "v1", "ConfigMap").fields
    return {key: config_map[key] for key in ("apiVersion", "kind", "metadata")}
