"""An object walked by its types; those that hold no default are not."""

from collections.abc import Callable
from functools import cache
from typing import Any

from fairlead.server.registry.defaults.rules import Value
from fairlead.server.registry.defaults.table import FIELDS, WHOLES
from fairlead.server.schema.nodes import MISSING, Node


def default(node: Node, obj: Value) -> Value:
    """The object with the defaults of its type and of those inside; the very object when nothing is added."""
    filled: Value = _walk(node, obj)
    return filled


def _walk(node: Node, value: Any) -> Any:
    below, mine, whole = _plan(node)
    if not (below or mine or whole):
        return value
    if type(value) is list:
        if node.items is None:
            return value
        items = [_walk(node.items, item) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    if type(value) is not dict:
        return value
    made = value
    for rule in whole:
        changed = rule(made)
        made = made if changed == made else changed
    for key, wanted, pointer in mine:
        if made.get(key) is None or (made[key] == "" and not pointer):
            found = wanted(made) if callable(wanted) else wanted
            if found is not MISSING:
                made = {**made, key: found}
    if node.go.kind == "map" and node.values is not None:
        below = dict.fromkeys(value, node.values)
    for key, child in below.items():
        inner = made.get(key)
        if inner is not None:
            kept = _walk(child, inner)
            if kept is not inner:
                made = {**made, key: kept}
    return made


_Plan = tuple[dict[str, Node], tuple[tuple[str, Any, bool], ...], tuple[Callable[[Value], Value], ...]]


@cache
def _plan(node: Node) -> _Plan:
    """The children worth walking, the fields to fill, the rules on the whole."""
    name = node.go.name
    below = {key: child for key, child in node.fields.items() if _reaches(child)}
    if node.items is not None and _reaches(node.items):
        below = {"": node.items}
    if node.values is not None and _reaches(node.values):
        below = {"": node.values}
    mine = tuple((key, wanted, _pointer(node, key)) for key, wanted in FIELDS.get(name, {}).items())
    return below, mine, WHOLES.get(name, ())


def _pointer(node: Node, key: str) -> bool:
    """Whether a field tells what is given empty from what is not given."""
    child = node.fields.get(key)
    return child is not None and bool(child.go.pointer)


def _reaches(node: Node, seen: frozenset[str] = frozenset()) -> bool:
    """Whether a type with defaults stands at or below this node."""
    name = node.go.name
    if name in FIELDS or name in WHOLES:
        return True
    if name:
        if name in seen:
            return False
        known = _reached.get(name)
        if known is None:
            known = any(_reaches(child, seen | {name}) for child in node.fields.values())
            if not seen:
                _reached[name] = known
        return known
    return any(_reaches(child, seen) for child in (node.items, node.values) if child is not None)


_reached: dict[str, bool] = {}
