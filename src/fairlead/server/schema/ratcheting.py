"""Which old value a new one stands for: only items of map lists have an identity."""

from collections.abc import Callable
from typing import Any

from fairlead.api import gojson
from fairlead.server.golang.encoding import exactly_equal
from fairlead.server.schema.nodes import MISSING, Node
from fairlead.server.schema.structural import ANYTHING


def match_old_items(node: Node, old: Any) -> Callable[[Any], Any]:
    """For a new item of a list, the old item it stands for, or MISSING."""
    if type(old) is not list or node.list_type != "map":
        return lambda item: MISSING
    known: dict[bytes, Any] = {}
    for item in old:
        if _has_keys(node, item):
            known.setdefault(_identity(node, item), item)
    return lambda item: known.get(_identity(node, item), MISSING) if _has_keys(node, item) else MISSING


def _has_keys(node: Node, item: Any) -> bool:
    """Whether an item has all the keys that tell it apart."""
    return type(item) is dict and all(isinstance(item.get(key), str | int | float) for key in node.keys)


def is_unchanged(node: Node | None, old: Any, new: Any) -> bool:
    """Whether a value is taken to be what stood there before, as ratcheting sees it.

    1 and 1.0 are not the same, the order of a map list's items does not count, and nothing that holds a field which
    the schema does not declare is ever unchanged.
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
        before = match_old_items(node, old)
        same = [(was := before(item)) is not MISSING and is_unchanged(node.items, was, item) for item in new]
        return len(old) == len(new) and all(same)
    return exactly_equal(old, new)


def reorder_old_value(node: Node | None, old: Any, new: Any) -> Any:
    """The old value with its sets and map lists in the new one's order: it means nothing when they are compared."""
    if node is None or node.constraints is None:
        return old
    if type(old) is dict and type(new) is dict:
        values = None if node.values is ANYTHING else node.values
        made = {}
        for key, inner in old.items():
            child = node.constraints.properties.get(key) or values
            made[key] = reorder_old_value(child, inner, new[key]) if key in new else inner
        return made
    if type(old) is list and type(new) is list and node.list_type != "atomic":
        order = {_identity(node, item): index for index, item in enumerate(new)}
        return sorted(old, key=lambda item: order.get(_identity(node, item), len(order)))
    return old


def _identity(node: Node, item: Any) -> bytes:
    """What tells an item apart: its keys in a map list, all of it in a set."""
    return gojson.dumps([item.get(key) for key in node.keys] if type(item) is dict and node.keys else item)
