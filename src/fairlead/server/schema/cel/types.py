"""The CEL types of a schema, with the minimum and maximum size of their values."""

from functools import lru_cache
from typing import Final, NamedTuple

from fairlead.server.schema.cel.values import cel_names
from fairlead.server.schema.nodes import MISSING, Node
from fairlead.server.schema.structural import ANYTHING

MAX_REQUEST_BYTES: Final = 3 * 1024 * 1024
_TIMES: Final = {"duration": ("duration", 32, 3), "date": ("timestamp", 12, 12), "date-time": ("timestamp", 32, 21)}


class Type(NamedTuple):
    """A CEL type. The kind `object` has declared fields. The kind `dyn` can be any type."""

    kind: str
    max_size: int = 0  # Characters, bytes, items or entries. Other types have no size.
    min_bytes: int = 0  # Of the value's JSON.
    element: "Type | None" = None  # Of a list, of a map's values, or of an optional.
    fields: "dict[str, Type] | None" = None


DYN: Final = Type("dyn")
BOOL: Final = Type("bool", min_bytes=4)
INT: Final = Type("int", min_bytes=1)
DOUBLE: Final = Type("double", min_bytes=1)
STRING: Final = Type("string", MAX_REQUEST_BYTES - 2, 2)
_METADATA: Final = Type("object", min_bytes=2, fields={"name": STRING, "generateName": STRING})


@lru_cache(maxsize=64)
def cached_type(node: Node) -> Type | None:
    """Return the CEL type of a schema that has rules. The result is cached, because each rule needs it."""
    return type_of_schema(node)


def type_of_schema(node: Node) -> Type | None:
    """Return the CEL type of a schema, or None if CEL cannot express it."""
    constraints = node.constraints
    if node.int_or_string:
        return Type("dyn", _compute_max_length(constraints.max_length, 4), 1)
    if node.type == "array":
        return _list_type(node)
    if node.type == "object":
        if node.values is not None and node.values is not ANYTHING:
            return _map_type(node)
        return _build_object_type(node)
    if node.type == "string":
        return _build_string_type(node)
    return {"boolean": BOOL, "integer": INT, "number": DOUBLE}.get(node.type)


def _list_type(node: Node) -> Type | None:
    element = type_of_schema(node.items) if node.items is not None else None
    if element is None:
        return None
    limit = node.constraints.max_items
    max_size = (MAX_REQUEST_BYTES - 2) // (element.min_bytes + 1) if limit is None else max(0, limit)
    return Type("list", max_size, 2, element)


def _map_type(node: Node) -> Type | None:
    element = type_of_schema(node.values) if node.values is not None else None
    if element is None:
        return None
    limit = node.constraints.max_properties
    max_size = (MAX_REQUEST_BYTES - 2) // (element.min_bytes + 6) if limit is None else max(0, limit)
    return Type("map", max_size, 2, element)


def _build_object_type(node: Node) -> Type:
    fields: dict[str, Type] = {}
    min_bytes = 2
    properties = {key: type_of_schema(child) for key, child in node.constraints.properties.items()}
    if node.embedded and not _declares_identity(properties):
        properties |= {"kind": STRING, "apiVersion": STRING, "metadata": _METADATA}
    for key, property_type in properties.items():
        if property_type is None:
            continue
        fields |= dict.fromkeys(cel_names(key), property_type)
        child = node.constraints.properties.get(key)
        if key in node.constraints.required and (child is None or child.default is MISSING):
            min_bytes += len(key.encode()) + property_type.min_bytes + 4
    return Type("object", min_bytes=min_bytes, fields=fields)


def _declares_identity(properties: dict[str, Type | None]) -> bool:
    """Return whether a schema declares kind, apiVersion, metadata.name and metadata.generateName as strings."""
    metadata = properties.get("metadata")
    in_metadata = (metadata.fields or {}) if metadata is not None else {}
    identity = [
        properties.get("kind"),
        properties.get("apiVersion"),
        in_metadata.get("name"),
        in_metadata.get("generateName"),
    ]
    return all(field is not None and field.kind == "string" for field in identity)


def _build_string_type(node: Node) -> Type:
    constraints = node.constraints
    if node.format in _TIMES:
        return Type(*_TIMES[node.format])
    if node.format == "byte":
        return Type("bytes", _compute_max_length(constraints.max_length, 1), 2)
    if constraints.max_length is None and constraints.enum:
        longest = max(len(value.encode()) if isinstance(value, str) else 0 for value in constraints.enum)
        return Type("string", longest, 2)
    return Type("string", _compute_max_length(constraints.max_length, 4), 2)


def _compute_max_length(limit: int | None, bytes_per_character: int) -> int:
    """Return the maximum size of a text in bytes. Without a limit, the text can fill a request."""
    return MAX_REQUEST_BYTES - 2 if limit is None else max(0, limit) * bytes_per_character
