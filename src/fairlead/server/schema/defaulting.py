"""Defaulting: what a custom resource's schema fills in, on writes and on reads."""

from typing import Any

from fairlead.server.schema.nodes import MISSING, Node
from fairlead.server.schema.structural import ANYTHING


def apply_defaults(node: Node, obj: Any) -> Any:
    """The object with the schema's defaults; the very object when nothing is added. Defaults are shared, not copied."""
    rules = node.constraints
    if rules is None:
        return obj
    if type(obj) is dict:
        made: dict[str, Any] | None = None
        for key, child in rules.properties.items():
            if child.default is not MISSING and (key not in obj or (obj[key] is None and not child.nullable)):
                if made is None:
                    made = dict(obj)
                made[key] = child.default
        values = None if node.values is ANYTHING else node.values
        for key, inner in (obj if made is None else dict(made)).items():
            child = rules.properties.get(key) or values
            if child is None:
                continue
            filled = _apply_to_value(child, inner)
            if filled is not inner:
                if made is None:
                    made = dict(obj)
                made[key] = filled
        return obj if made is None else made
    if type(obj) is list and node.items is not None:
        items = [_apply_to_value(node.items, item) for item in obj]
        return obj if all(a is b for a, b in zip(items, obj, strict=True)) else items
    return obj


def _apply_to_value(node: Node, value: Any) -> Any:
    if value is None and not node.nullable and node.default is not MISSING:
        value = node.default
    return apply_defaults(node, value) if type(value) is dict or type(value) is list else value
