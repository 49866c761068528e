"""Defaulting: add the default values in a custom resource's schema, on writes and on reads."""

from typing import Any

from fairlead.server.schema.nodes import MISSING, Node
from fairlead.server.schema.structural import ANYTHING


def apply_defaults(node: Node, obj: Any) -> Any:
    """Return the object with the default values of its schema, or `obj` itself if none is missing.

    The result shares the default values with the schema.
    """
    constraints = node.constraints
    if constraints is None:
        return obj
    if type(obj) is dict:
        result: dict[str, Any] | None = None
        for key, child in constraints.properties.items():
            if child.default is not MISSING and (key not in obj or (obj[key] is None and not child.nullable)):
                if result is None:
                    result = dict(obj)
                result[key] = child.default
        values = None if node.values is ANYTHING else node.values
        for key, inner in (obj if result is None else dict(result)).items():
            child = constraints.properties.get(key) or values
            if child is None:
                continue
            filled = _apply_to_value(child, inner)
            if filled is not inner:
                if result is None:
                    result = dict(obj)
                result[key] = filled
        return obj if result is None else result
    if type(obj) is list and node.items is not None:
        items = [_apply_to_value(node.items, item) for item in obj]
        return obj if all(a is b for a, b in zip(items, obj, strict=True)) else items
    return obj


def _apply_to_value(node: Node, value: Any) -> Any:
    if value is None and not node.nullable and node.default is not MISSING:
        value = node.default
    return apply_defaults(node, value) if type(value) is dict or type(value) is list else value
