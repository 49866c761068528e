"""Empty lists and maps that Go keeps in memory but does not write.

Go omits an empty list or map when it writes a field with `omitempty` as JSON. The struct in memory still has it. So two
objects with the same JSON can differ in memory. A real server compares atomic lists in memory.
"""

from functools import cache
from typing import Any, Final

from fairlead.server.schema import builtin
from fairlead.server.schema.nodes import Node

_UNIONS: Final = ("SchemaOrBool", "SchemaOrArray", "SchemaOrStrings")
_CONTAINERS: Final = ("list", "map", *_UNIONS)


def keep_in_atomic_lists(node: Node, submitted: Any, decoded: Any, *, is_in_atomic_list: bool = False) -> Any:
    """Return `decoded` with the empty lists and maps that `submitted` has inside atomic lists.

    The result is `decoded` itself if there are none.
    """
    kind = node.go.kind
    if kind in _UNIONS:
        props = builtin.schema_of_type("apiextensions.v1.JSONSchemaProps")
        return keep_in_atomic_lists(props, submitted, decoded, is_in_atomic_list=is_in_atomic_list)
    if type(submitted) is dict and type(decoded) is dict:
        changed_fields: dict[str, Any] = {}
        for key, value in submitted.items():
            field = node.fields.get(key) if kind == "struct" else node.values
            if field is None or (type(value) is not dict and type(value) is not list):
                continue
            if key in decoded:
                result = keep_in_atomic_lists(field, value, decoded[key], is_in_atomic_list=is_in_atomic_list)
                if result is not decoded[key]:
                    changed_fields[key] = result
            elif is_in_atomic_list and is_omitted(field, value):
                changed_fields[key] = value
        return {**decoded, **changed_fields} if changed_fields else decoded
    if type(submitted) is list and type(decoded) is list and node.items is not None:
        is_atomic = is_in_atomic_list or node.list_type == "atomic"
        pairs = zip(submitted, decoded, strict=True)
        items = [keep_in_atomic_lists(node.items, *pair, is_in_atomic_list=is_atomic) for pair in pairs]
        return items if any(new is not old for new, old in zip(items, decoded, strict=True)) else decoded
    return decoded


def has_omitted(node: Node, submitted: Any) -> bool:
    """Return whether a submitted value contains an empty list or map that Go does not write."""
    if type(submitted) is dict:
        pairs = [
            (node.fields.get(key) if node.go.kind == "struct" else node.values, value)
            for key, value in submitted.items()
        ]
        return any(
            field is not None and (is_omitted(field, value) or has_omitted(field, value)) for field, value in pairs
        )
    if type(submitted) is list and node.items is not None:
        return any(has_omitted(node.items, item) for item in submitted)
    return False


def is_omitted(field: Node, value: Any) -> bool:
    """Return whether `value` is an empty list or map that Go does not write in this field."""
    go_type = field.go
    is_empty = (go_type.kind == "list" and value == []) or (go_type.kind == "map" and value == {})
    return is_empty and bool(go_type.omits_empty) and not go_type.is_pointer


def restore_nulls(dropped: Any, before: Any) -> Any:
    """Return `dropped` with the empty lists and maps of `before` in place of the nulls that `drop` wrote."""
    if dropped is None:
        return before if before in ([], {}) else None
    if type(dropped) is dict and type(before) is dict:
        return {key: restore_nulls(value, before.get(key)) for key, value in dropped.items()}
    if type(dropped) is list and type(before) is list and len(dropped) == len(before):
        return [restore_nulls(*pair) for pair in zip(dropped, before, strict=True)]
    return dropped


def drop(node: Node, value: dict[str, Any]) -> dict[str, Any]:
    """Return a struct as storage returns it, without empty lists and maps.

    A field without `omitempty` becomes null instead. The result is `value` itself if it contains no empty list or map.
    A writer owns the empty list that it sends, so the server calls this function only after it has recorded the owners.
    """
    result: dict[str, Any] | None = None
    for key, inner in value.items():
        if type(inner) is not dict and type(inner) is not list:
            continue
        field = node.fields.get(key)
        if field is None:
            continue
        dropped = _drop_in_field(field, inner)
        if dropped is not inner:
            if result is None:
                result = dict(value)
            if dropped is None and field.go.omits_empty:
                del result[key]
            else:
                result[key] = dropped
    return value if result is None else result


def _drop_in_field(field: Node, value: Any) -> Any:
    kind = field.go.kind
    if kind == "struct":
        return drop(field, value)
    if kind == "list" or kind == "map":
        return _drop_in_children(field, value) if value or field.go.is_pointer else None
    if kind in _UNIONS and type(value) is dict:
        return drop(builtin.schema_of_type("apiextensions.v1.JSONSchemaProps"), value)
    return value


def _drop_in_children(node: Node, value: Any) -> Any:
    child = node.items if node.go.kind == "list" else node.values
    if child is None or child.go.kind != "struct" or not _has_container(child.go.name):
        return value
    if node.go.kind == "list":
        items = [drop(child, item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    values = {key: drop(child, inner) for key, inner in value.items()}
    return values if any(values[key] is not inner for key, inner in value.items()) else value


@cache
def _has_container(name: str) -> bool:
    """Return whether the struct with this Go type name has a list, map or union at any depth."""
    kinds = [(field.go.kind, field.go.name) for field in builtin.schema_of_type(name).fields.values()]
    return any(kind in _CONTAINERS or (kind == "struct" and _has_container(child)) for kind, child in kinds)
