"""Pruning: what a custom resource's schema does not know is dropped before anything else looks at it."""

from typing import Any

from fairlead.server.errors.field_errors import format_value
from fairlead.server.schema import builtin, codec
from fairlead.server.schema.codec import DecodeError
from fairlead.server.schema.nodes import MISSING, Node
from fairlead.server.schema.structural import ANYTHING

_TYPE_META = frozenset({"apiVersion", "kind", "metadata"})


def prune(node: Node, obj: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The object without undeclared fields, and their paths, sorted. The very object when there are none.

    Nulls of fields that are neither nullable nor defaulted go too, unreported. Metadata, the root's and that of
    embedded resources, is decoded as Go does it: raises DecodeError where it has a wrong type.
    """
    unknown: list[str] = []
    embedded: list[str] = []
    made = obj
    if "metadata" in obj:
        metadata, extra = _metadata(obj["metadata"], "metadata")
        unknown += extra
        made = {**obj, "metadata": metadata}
    pruned: list[str] = []
    made = _object(node, made, "", pruned, root=True)
    made = _nulls(node, made)
    made = _coerce(node, made, "", embedded, root=True)
    return made, unknown + sorted(pruned) + sorted(embedded)


def decode_metadata(obj: dict[str, Any]) -> dict[str, Any]:
    """The object with its metadata as the Go type holds it, all else as it is."""
    return {**obj, "metadata": _metadata(obj.get("metadata"), "metadata")[0]}


def coerce_embedded_metadata(node: Node, value: Any) -> Any:
    """A value that is part of an object with the metadata of embedded resources as the Go type holds it, the rest as
    it is. Raises DecodeError."""
    return _coerce(node, value, "", [])


def find_unknown_fields(node: Node, value: Any) -> list[str]:
    """The paths of what pruning would drop from a value that is part of an object."""
    found: list[str] = []
    _value(node, value, "", found)
    return found


def _value(node: Node | None, value: Any, path: str, unknown: list[str]) -> Any:
    if type(value) is dict:
        return _object(node, value, path, unknown)
    if type(value) is list:
        items = node.items if node is not None else None
        if node is not None and node.preserve:
            if items is None:
                return value
            made = [
                _object(items, item, f"{path}[{i}]", unknown, keep=True)
                if type(item) is dict
                else _value(items, item, f"{path}[{i}]", unknown)
                for i, item in enumerate(value)
            ]
        else:
            made = [_value(items, item, f"{path}[{i}]", unknown) for i, item in enumerate(value)]
        return value if all(a is b for a, b in zip(made, value, strict=True)) else made
    return value


def _object(
    node: Node | None, value: dict[str, Any], path: str, unknown: list[str], *, root: bool = False, keep: bool = False
) -> dict[str, Any]:
    if node is None:
        unknown.extend(f"{path}.{key}" if path else key for key in value)
        return {} if value else value
    properties = node.constraints.properties
    keep = keep or node.preserve
    any_key = node.values is not None or node.constraints.additional is not None
    values = None if node.values is ANYTHING else node.values
    made: dict[str, Any] | None = None
    for key, inner in value.items():
        if (node.embedded or root) and key in _TYPE_META:
            continue
        child = properties.get(key)
        if child is None and not any_key:
            if not keep:
                if made is None:
                    made = dict(value)
                del made[key]
                unknown.append(f"{path}.{key}" if path else key)
            continue
        if type(inner) is dict or type(inner) is list:
            kept = _value(child if child is not None else values, inner, f"{path}.{key}" if path else key, unknown)
            if kept is not inner:
                if made is None:
                    made = dict(value)
                made[key] = kept
    return value if made is None else made


def _nulls(node: Node | None, value: Any) -> Any:
    """Drop the nulls in maps that may not be null and have no default."""
    if node is None or node.constraints is None:
        return value
    if type(value) is dict:
        made: dict[str, Any] | None = None
        for key, inner in value.items():
            child = node.constraints.properties.get(key) or (None if node.values is ANYTHING else node.values)
            if child is None:
                continue
            if inner is None:
                if not child.nullable and child.default is MISSING:
                    if made is None:
                        made = dict(value)
                    del made[key]
            elif type(inner) is dict or type(inner) is list:
                kept = _nulls(child, inner)
                if kept is not inner:
                    if made is None:
                        made = dict(value)
                    made[key] = kept
        return value if made is None else made
    if type(value) is list:
        made_list = [_nulls(node.items, item) for item in value]
        return value if all(a is b for a, b in zip(made_list, value, strict=True)) else made_list
    return value


def _coerce(node: Node | None, value: Any, path: str, unknown: list[str], *, root: bool = False) -> Any:
    """Decode the apiVersion, kind and metadata of embedded resources."""
    if node is None or node.constraints is None or not _embeds(node):
        return value
    if type(value) is dict:
        made = dict(value)
        for key, inner in value.items():
            here = f"{path}.{key}" if path else key
            if node.embedded and not root:
                if key == "metadata":
                    try:
                        made[key], extra = _metadata(inner, here)
                    except DecodeError as error:
                        raise DecodeError(f"{here}: Invalid value: {format_value(inner)}: {error.message}") from None
                    unknown += extra
                elif key in _TYPE_META and type(inner) is not str:
                    raise DecodeError(f"{here}: Invalid value: {format_value(inner)}: must be a string")
            child = node.constraints.properties.get(key)
            if child is not None:
                made[key] = _coerce(child, made[key], here, unknown)
            elif node.values is not None:
                made[key] = _coerce(node.values, made[key], f"{path}[{key}]", unknown)
        return made
    if type(value) is list:
        return [_coerce(node.items, item, f"{path}[{i}]", unknown) for i, item in enumerate(value)]
    return value


_embedding: dict[int, tuple[Node, bool]] = {}  # by identity; the node is kept so that its id stays its own


def _embeds(node: Node) -> bool:
    """Whether an embedded resource may stand at or below this node."""
    known = _embedding.get(id(node))
    if known is None:
        rules = node.constraints
        below = [*rules.properties.values(), *filter(None, (node.values, node.items))] if rules is not None else []
        known = _embedding[id(node)] = (node, node.embedded or any(_embeds(one) for one in below))
    return known[1]


def _metadata(value: Any, path: str) -> tuple[Any, list[str]]:
    node = builtin.schema_of_type("meta.v1.ObjectMeta")
    if value is None:
        return {}, []
    decoded = codec.decode(node, value)
    return decoded.object, [f"{path}.{one}" for one in decoded.unknown]
