"""Validation ratcheting: find the old value of each new value, so that unchanged values are not validated again.

Only the items of lists of type map have an identity. Other lists are compared as a whole.
"""

from collections.abc import Callable
from typing import Any

from fairlead.api import gojson
from fairlead.server.golang.encoding import exactly_equal
from fairlead.server.schema.nodes import MISSING, Node
from fairlead.server.schema.structural import ANYTHING


def match_old_items(node: Node, old: Any) -> Callable[[Any], Any]:
    """Return a function that finds the old item of a new list item, or MISSING if there was none."""
    if type(old) is not list or node.list_type != "map":
        return lambda item: MISSING
    by_identity: dict[bytes, Any] = {}
    for item in old:
        if _has_keys(node, item):
            by_identity.setdefault(_compute_identity(node, item), item)
    return lambda item: by_identity.get(_compute_identity(node, item), MISSING) if _has_keys(node, item) else MISSING


def _has_keys(node: Node, item: Any) -> bool:
    """Return whether a list item has all list-map-keys."""
    return type(item) is dict and all(isinstance(item.get(key), str | int | float) for key in node.keys)


def is_unchanged(node: Node | None, old: Any, new: Any) -> bool:
    """Return whether a real server's ratcheting treats a value as unchanged.

    1 and 1.0 differ. The order of items in a list of type map is ignored. A value with a field that the schema does not
    declare always counts as changed.
    """
    if old is None or new is None:
        return old is new
    if type(old) is dict and type(new) is dict:
        if node is None or node.constraints is None or len(old) != len(new):
            return not new and not old
        values = None if node.values is ANYTHING else node.values
        for key, inner in new.items():
            child = node.constraints.properties.get(key) or values
            if key not in old or child is None or not is_unchanged(child, old[key], inner):
                return False
        return True
    if type(old) is list and type(new) is list and node is not None and node.list_type == "map" and node.items:
        find_old = match_old_items(node, old)
        pairs = [(find_old(item), item) for item in new]
        return len(old) == len(new) and all(a is not MISSING and is_unchanged(node.items, a, b) for a, b in pairs)
    return exactly_equal(old, new)


def reorder_old_value(node: Node | None, old: Any, new: Any) -> Any:
    """Return the old value with its lists of type set and map in the order of the new value.

    CEL compares lists in order, but the order of these lists has no meaning.
    """
    if node is None or node.constraints is None:
        return old
    if type(old) is dict and type(new) is dict:
        values = None if node.values is ANYTHING else node.values
        result = {}
        for key, inner in old.items():
            child = node.constraints.properties.get(key) or values
            result[key] = reorder_old_value(child, inner, new[key]) if key in new else inner
        return result
    if type(old) is list and type(new) is list and node.list_type != "atomic":
        order = {_compute_identity(node, item): index for index, item in enumerate(new)}
        return sorted(old, key=lambda item: order.get(_compute_identity(node, item), len(order)))
    return old


def _compute_identity(node: Node, item: Any) -> bytes:
    """Return the identity of a list item: its keys in a list of type map, the whole item in a set."""
    return gojson.dumps([item.get(key) for key in node.keys] if type(item) is dict and node.keys else item)
