"""Pruning: drop the fields that a custom resource's schema does not declare."""

from typing import Any

from fairlead.server.errors.field_errors import format_value
from fairlead.server.schema import builtin, codec
from fairlead.server.schema.codec import DecodeError
from fairlead.server.schema.nodes import MISSING, Node
from fairlead.server.schema.structural import ANYTHING

_TYPE_META = frozenset({"apiVersion", "kind", "metadata"})


def prune(node: Node, obj: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the object without undeclared fields, and the paths of the dropped fields.

    Nulls of fields that are neither nullable nor defaulted are dropped too, but not reported. The metadata of the
    object and of embedded resources is decoded as in Go. Raises DecodeError if metadata has a wrong type.
    """
    in_metadata: list[str] = []
    in_object: list[str] = []
    in_embedded: list[str] = []
    result = obj
    if "metadata" in obj:
        metadata, in_metadata = _decode_object_meta(obj["metadata"], "metadata")
        result = {**obj, "metadata": metadata}
    result = _prune_object(node, result, "", in_object, is_root=True)
    result = _drop_nulls(node, result)
    result = _coerce(node, result, "", in_embedded, is_root=True)
    return result, in_metadata + sorted(in_object) + sorted(in_embedded)


def decode_metadata(obj: dict[str, Any]) -> dict[str, Any]:
    """Return the object with its metadata decoded as in Go. The rest is unchanged."""
    return {**obj, "metadata": _decode_object_meta(obj.get("metadata"), "metadata")[0]}


def coerce_embedded_metadata(node: Node, value: Any) -> Any:
    """Return a value with the metadata of embedded resources decoded as in Go. Raises DecodeError."""
    return _coerce(node, value, "", [])


def find_unknown_fields(node: Node, value: Any) -> list[str]:
    """Return the paths of the fields that pruning would drop from a value."""
    unknown: list[str] = []
    _prune_value(node, value, "", unknown)
    return unknown


def _prune_value(node: Node | None, value: Any, path: str, unknown: list[str]) -> Any:
    if type(value) is dict:
        return _prune_object(node, value, path, unknown)
    if type(value) is list:
        items = node.items if node is not None else None
        if node is not None and node.preserve:
            if items is None:
                return value
            changed_items = [
                _prune_object(items, item, f"{path}[{i}]", unknown, keeps_unknown=True)
                if type(item) is dict
                else _prune_value(items, item, f"{path}[{i}]", unknown)
                for i, item in enumerate(value)
            ]
        else:
            changed_items = [_prune_value(items, item, f"{path}[{i}]", unknown) for i, item in enumerate(value)]
        return value if all(a is b for a, b in zip(changed_items, value, strict=True)) else changed_items
    return value


def _prune_object(
    node: Node | None,
    value: dict[str, Any],
    path: str,
    unknown: list[str],
    *,
    is_root: bool = False,
    keeps_unknown: bool = False,
) -> dict[str, Any]:
    if node is None:
        unknown.extend(f"{path}.{key}" if path else key for key in value)
        return {} if value else value
    properties = node.constraints.properties
    keeps_unknown = keeps_unknown or node.preserve
    allows_any_key = node.values is not None or node.constraints.additional is not None
    values = None if node.values is ANYTHING else node.values
    changed_fields: dict[str, Any] | None = None
    for key, inner in value.items():
        if (node.embedded or is_root) and key in _TYPE_META:
            continue
        child = properties.get(key)
        if child is None and not allows_any_key:
            if not keeps_unknown:
                if changed_fields is None:
                    changed_fields = dict(value)
                del changed_fields[key]
                unknown.append(f"{path}.{key}" if path else key)
            continue
        if type(inner) is dict or type(inner) is list:
            field_path = f"{path}.{key}" if path else key
            pruned = _prune_value(child if child is not None else values, inner, field_path, unknown)
            if pruned is not inner:
                if changed_fields is None:
                    changed_fields = dict(value)
                changed_fields[key] = pruned
    return value if changed_fields is None else changed_fields


def _drop_nulls(node: Node | None, value: Any) -> Any:
    """Return a value without the null fields that are neither nullable nor defaulted."""
    if node is None or node.constraints is None:
        return value
    if type(value) is dict:
        changed_fields: dict[str, Any] | None = None
        for key, inner in value.items():
            child = node.constraints.properties.get(key) or (None if node.values is ANYTHING else node.values)
            if child is None:
                continue
            if inner is None:
                if not child.nullable and child.default is MISSING:
                    if changed_fields is None:
                        changed_fields = dict(value)
                    del changed_fields[key]
            elif type(inner) is dict or type(inner) is list:
                result = _drop_nulls(child, inner)
                if result is not inner:
                    if changed_fields is None:
                        changed_fields = dict(value)
                    changed_fields[key] = result
        return value if changed_fields is None else changed_fields
    if type(value) is list:
        items = [_drop_nulls(node.items, item) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    return value


def _coerce(node: Node | None, value: Any, path: str, unknown: list[str], *, is_root: bool = False) -> Any:
    """Return a value with apiVersion, kind and metadata of embedded resources decoded as in Go."""
    if node is None or node.constraints is None or not _contains_embedded(node):
        return value
    if type(value) is dict:
        changed_object = dict(value)
        for key, inner in value.items():
            field_path = f"{path}.{key}" if path else key
            if node.embedded and not is_root:
                if key == "metadata":
                    try:
                        changed_object[key], extra = _decode_object_meta(inner, field_path)
                    except DecodeError as error:
                        raise DecodeError(
                            f"{field_path}: Invalid value: {format_value(inner)}: {error.message}"
                        ) from None
                    unknown += extra
                elif key in _TYPE_META and type(inner) is not str:
                    raise DecodeError(f"{field_path}: Invalid value: {format_value(inner)}: must be a string")
            child = node.constraints.properties.get(key)
            if child is not None:
                changed_object[key] = _coerce(child, changed_object[key], field_path, unknown)
            elif node.values is not None:
                changed_object[key] = _coerce(node.values, changed_object[key], f"{path}[{key}]", unknown)
        return changed_object
    if type(value) is list:
        return [_coerce(node.items, item, f"{path}[{i}]", unknown) for i, item in enumerate(value)]
    return value


_embedded_cache: dict[
    int, tuple[Node, bool]
] = {}  # By id. The cache keeps the node alive, so that its id is not reused.


def _contains_embedded(node: Node) -> bool:
    """Return whether this node or a node below it is an embedded resource."""
    cached = _embedded_cache.get(id(node))
    if cached is None:
        children: list[Node] = []
        if node.constraints is not None:
            children = [*node.constraints.properties.values(), *filter(None, (node.values, node.items))]
        cached = _embedded_cache[id(node)] = (
            node,
            node.embedded or any(_contains_embedded(child) for child in children),
        )
    return cached[1]


def _decode_object_meta(value: Any, path: str) -> tuple[Any, list[str]]:
    node = builtin.schema_of_type("meta.v1.ObjectMeta")
    if value is None:
        return {}, []
    decoded = codec.decode(node, value)
    return decoded.object, [f"{path}.{unknown}" for unknown in decoded.unknown]
