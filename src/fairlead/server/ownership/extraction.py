"""The fields that a value holds.

Two answers, because appliers and writers own differently: `applied` lists leaves, items and keys; `everything` lists
each map and list as well.
"""

from typing import Any

from fairlead.api.fields.tries import DOT, LEAF, Trie, owned
from fairlead.server.ownership.shapes import ATOMIC, ItemError, Shape


def applied(shape: Shape, value: Any) -> Trie | None:
    """What an applier of `value` owns at this place: the trie here, LEAF for the place itself, None for nothing."""
    kind = type(value)
    if kind is dict and shape.is_map:
        if shape.atomic:
            return LEAF
        if not value:
            return None
        shape = shape if shape.opened else shape.open()
        out: Trie = {}
        fields = shape.fields
        for name, below in value.items():
            declared = fields.get(name)
            if declared is not None:
                element, child = declared
                if child.scalar and type(below) is str:
                    out[element] = LEAF
                    continue
                node = applied(child, below)
                if below is None or below == {}:
                    node = LEAF if node is None else owned(node)
                if node is not None:
                    out[element] = node
            elif type(below) is str or shape.values is None:
                out["f:" + name] = LEAF
            else:
                node = applied(shape.values, below)
                out["f:" + name] = LEAF if node is None else owned(node)
        return out or None
    if kind is list and shape.is_list:
        return LEAF if shape.listing == ATOMIC else _applied_items(shape.open(), value)
    if value is not None:
        return LEAF if shape.scalar else None
    return LEAF if (shape.atomic if shape.is_map else shape.scalar or shape.listing == ATOMIC) else None


def _applied_items(shape: Shape, items: list[Any]) -> Trie | None:
    out: Trie = {}
    repeated: set[str] = set()
    child = shape.item
    assert child is not None
    for item in items:
        element = element_of(shape, item)
        if element in out:
            repeated.add(element)
        node = applied(child, item)
        out[element] = LEAF if node is None else owned(node)
    for element in repeated:
        out[element] = LEAF
    return out or None


def everything(shape: Shape, value: Any) -> Trie:
    """What a writer who adds `value` owns at this place: all of it, containers included."""
    kind = type(value)
    if kind is dict and value and shape.is_map and not shape.atomic:
        shape = shape if shape.opened else shape.open()
        out: Trie = dict(DOT)
        fields = shape.fields
        for name, below in value.items():
            declared = fields.get(name)
            if declared is not None:
                out[declared[0]] = LEAF if type(below) is str else everything(declared[1], below)
            else:
                out["f:" + name] = (
                    LEAF if type(below) is str or shape.values is None else everything(shape.values, below)
                )
        return out
    if kind is list and value and shape.is_list and shape.listing != ATOMIC:
        shape = shape if shape.opened else shape.open()
        out = dict(DOT)
        repeated: set[str] = set()
        child = shape.item
        assert child is not None
        for item in value:
            element = element_of(shape, item)
            if element in out:
                repeated.add(element)
            out[element] = everything(child, item)
        for element in repeated:
            out[element] = LEAF
        return out
    return LEAF


def element_of(shape: Shape, item: Any) -> str:
    """The element of an item of a list that conforms, where every item has one."""
    try:
        return shape.element(item)
    except ItemError:
        return "k:{}"  # one place for all that cannot be told apart
