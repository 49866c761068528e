"""Apply the tables of default values to an object. Parts of the object without any default are not visited."""

from collections.abc import Callable
from functools import cache
from typing import Any

from fairlead.server.registry.defaults.computed import Value
from fairlead.server.registry.defaults.table import FIELDS, OBJECTS
from fairlead.server.schema.nodes import MISSING, Node


def apply_defaults(node: Node, obj: Value) -> Value:
    """Return the object with its default values, or `obj` itself if no default is missing."""
    result: Value = _apply_to_value(node, obj)
    return result


def _apply_to_value(node: Node, value: Any) -> Any:
    children, field_defaults, object_rules = _find_defaults(node)
    if not (children or field_defaults or object_rules):
        return value
    if type(value) is list:
        if node.items is None:
            return value
        items = [_apply_to_value(node.items, item) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    if type(value) is not dict:
        return value
    result = value
    for rule in object_rules:
        changed_result = rule(result)
        result = result if changed_result == result else changed_result
    for key, default, is_pointer in field_defaults:
        if result.get(key) is None or (result[key] == "" and not is_pointer):
            computed = default(result) if callable(default) else default
            if computed is not MISSING:
                result = {**result, key: computed}
    if node.go.kind == "map" and node.values is not None:
        children = dict.fromkeys(value, node.values)
    for key, child in children.items():
        inner = result.get(key)
        if inner is not None:
            changed_result = _apply_to_value(child, inner)
            if changed_result is not inner:
                result = {**result, key: changed_result}
    return result


_Defaults = tuple[dict[str, Node], tuple[tuple[str, Any, bool], ...], tuple[Callable[[Value], Value], ...]]


@cache
def _find_defaults(node: Node) -> _Defaults:
    """Return the children that have defaults, the default values of fields, and the rules for the whole object."""
    name = node.go.name
    children = {key: child for key, child in node.fields.items() if _has_defaults(child)}
    if node.items is not None and _has_defaults(node.items):
        children = {"": node.items}
    if node.values is not None and _has_defaults(node.values):
        children = {"": node.values}
    field_defaults = tuple((key, default, _is_pointer(node, key)) for key, default in FIELDS.get(name, {}).items())
    return children, field_defaults, OBJECTS.get(name, ())


def _is_pointer(node: Node, key: str) -> bool:
    """Return whether the Go type of a field is a pointer, so that an empty value differs from an absent one."""
    child = node.fields.get(key)
    return child is not None and bool(child.go.is_pointer)


def _has_defaults(node: Node, visited_types: frozenset[str] = frozenset()) -> bool:
    """Return whether the type of this node, or of a node below it, has defaults."""
    name = node.go.name
    if name in FIELDS or name in OBJECTS:
        return True
    if name:
        if name in visited_types:
            return False
        has_defaults = _known.get(name)
        if has_defaults is None:
            has_defaults = any(_has_defaults(child, visited_types | {name}) for child in node.fields.values())
            if not visited_types:
                _known[name] = has_defaults
        return has_defaults
    return any(_has_defaults(child, visited_types) for child in (node.items, node.values) if child is not None)


_known: dict[str, bool] = {}
