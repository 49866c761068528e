"""Merge an applied configuration into a live value, and take fields out of a value, along a shape.

Results share every part that did not change with the live value; where nothing changed it is that very value.
"""

from typing import Any

from fairlead.api.fields.tries import Trie
from fairlead.server.ownership.equality import identical
from fairlead.server.ownership.extraction import element_of
from fairlead.server.ownership.shapes import ATOMIC, Shape


def merge(shape: Shape, live: Any, config: Any) -> Any:
    """`live` with what `config` says. Nothing is removed; a null replaces leaves and leaves all else alone."""
    kind = type(config)
    if kind is dict and shape.is_map:
        if shape.atomic or (not config and not (type(live) is dict and live)):
            return live if identical(live, config) else config
        if type(live) is not dict or not live:
            return config
        return _merge_map(shape.open(), live, config)
    if kind is list and shape.is_list:
        if shape.listing == ATOMIC or (not config and not (type(live) is list and live)):
            return live if identical(live, config) else config
        if type(live) is not list or not live:
            return config
        return _merge_items(shape.open(), live, config)
    if config is None and _shared(shape, live):
        return live
    return live if identical(live, config) else config


def _shared(shape: Shape, live: Any) -> bool:
    """Whether `live` is a container with parts of its own, which a null does not replace."""
    if not live:
        return False
    if shape.is_map:
        return type(live) is dict and not shape.atomic
    return not shape.scalar and type(live) is list and shape.listing != ATOMIC


def _merge_map(shape: Shape, live: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] | None = None
    fields = shape.fields
    for name, theirs in config.items():
        merged = theirs
        if name in live:
            ours = live[name]
            if ours is theirs:
                continue
            if type(theirs) is str:
                if theirs == ours:
                    continue
            else:
                declared = fields.get(name)
                child = declared[1] if declared is not None else shape.values
                if child is not None:
                    merged = merge(child, ours, theirs)
                    if merged is ours:
                        continue
        if out is None:
            out = dict(live)
        out[name] = merged
    return live if out is None else out


def _merge_items(shape: Shape, live: list[Any], config: list[Any]) -> list[Any]:
    """The merged list: shared items in the configuration's order; its new items go before the shared item that they
    precede there, or to the end."""
    child = shape.item
    assert child is not None
    ours = [element_of(shape, item) for item in live]
    theirs = [element_of(shape, item) for item in config]
    at_ours: dict[str, Any] = {}
    for element, item in zip(ours, live, strict=True):
        at_ours[element] = None if element in at_ours else item  # a repeated item is replaced, not merged
    wanted = set(theirs)
    due = [element for element in theirs if element in at_ours]  # shared items, in the order to keep
    due.append("")
    turn = 0
    out: list[Any] = []
    taken: set[str] = set()
    i = j = 0
    while i < len(ours) or j < len(theirs):
        if i < len(ours):
            element = ours[i]
            if element not in wanted:
                out.append(live[i])
                i += 1
                continue
            if j < len(theirs) and element != theirs[j] and due[turn] and element != due[turn]:
                i += 1  # shared, but its turn is another
                continue
            if element in taken or (j < len(theirs) and element == theirs[j]):
                i += 1
        if j < len(theirs):
            element = theirs[j]
            out.append(merge(child, at_ours[element], config[j]) if element in at_ours else config[j])
            taken.add(element)
            j += 1
            if element == due[turn]:
                turn += 1
    if len(out) == len(live) and all(x is y for x, y in zip(out, live, strict=True)):
        return live
    return out


def remove(shape: Shape | None, value: Any, fields: Trie) -> Any:
    """`value` without `fields` and what is below them. A container that loses its last part becomes null."""
    if type(value) is dict:
        if shape is None or not shape.is_map:
            return value
        if not value or shape.atomic:
            return None
        shape = shape if shape.opened else shape.open()
        declared = shape.fields
        kept: dict[str, Any] = {}
        for name, below in value.items():
            known = declared.get(name)
            node = fields.get(known[0] if known is not None else "f:" + name)
            if node is None:
                kept[name] = below
            elif node and "." not in node:
                kept[name] = remove(known[1] if known is not None else shape.values, below, node)
        return kept or None
    if type(value) is list:
        if shape is None or not shape.is_list:
            return value
        if not value or shape.listing == ATOMIC:
            return None
        shape = shape if shape.opened else shape.open()
        items: list[Any] = []
        for item in value:
            node = fields.get(element_of(shape, item))
            if node is None:
                items.append(item)
            elif node and "." not in node:
                items.append(remove(shape.item, item, node))
        return items or None
    return value
