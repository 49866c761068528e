"""Which fields a write added, modified and removed."""

from typing import Any

from fairlead.api.fields.tries import LEAF, Trie, union, union_of_roots
from fairlead.server.ownership.equality import equal
from fairlead.server.ownership.extraction import element_of, everything
from fairlead.server.ownership.shapes import ATOMIC, Shape


class Comparison:
    """Three disjoint root tries. Parts that are the very same object are not looked into."""

    __slots__ = ("added", "modified", "removed")

    def __init__(self, added: Trie, modified: Trie, removed: Trie) -> None:
        self.added = added
        self.modified = modified
        self.removed = removed

    def __bool__(self) -> bool:
        return bool(self.added or self.modified or self.removed)


def compare(shape: Shape, old: Any, new: Any) -> Comparison:
    """How `new` differs from `old`. The order of a list's items is no difference."""
    changes = Comparison({}, {}, {})
    if old is not new:
        _descend(shape, old, new, changes)
    return changes


def first(shape: Shape, empty: dict[str, Any], new: dict[str, Any]) -> Trie:
    """What a first write adds to and modifies of the `empty` object of its kind, whose parts hold nothing."""
    shape = shape if shape.opened else shape.open()
    fields = shape.fields
    out: Trie = {}
    for name, after in new.items():
        declared = fields.get(name)
        if declared is None:
            if shape.values is None:
                continue
            element, child = "f:" + name, shape.values
        else:
            element, child = declared
        if name not in empty:
            out[element] = everything(child, after)
        elif empty[name] != after:
            if empty[name] or not after or type(after) is not dict or not child.is_map or child.atomic:
                changes = compare(shape, empty, new)
                return union_of_roots(changes.added, changes.modified)
            out[element] = below = everything(child, after)
            del below["."]
    return out


def _descend(shape: Shape, old: Any, new: Any, out: Comparison) -> bool:
    """Put what differs at this place into `out`, which is this place's own; whether the place itself is modified."""
    was, now = _atom(shape, old), _atom(shape, new)
    modified = _alike(shape, was, old, new, out)
    if was != now:  # a map became a list or the like: both ways of looking at it count
        modified = _alike(shape, now, old, new, out) or modified
    return modified


def _atom(shape: Shape, value: Any) -> str:
    """How a value is looked at here: as a map, a list or a scalar."""
    if type(value) is dict and shape.is_map:
        return "map"
    if type(value) is list and shape.is_list:
        return "list"
    if value is not None and shape.scalar:
        return "scalar"
    return "map" if shape.is_map else "scalar" if shape.scalar else "list"


def _alike(shape: Shape, atom: str, old: Any, new: Any, out: Comparison) -> bool:
    if atom == "map":
        ours = old if type(old) is dict else {}
        theirs = new if type(new) is dict else {}
        if not shape.atomic and (ours or theirs):
            _maps(shape if shape.opened else shape.open(), ours, theirs, out)
            return False
    elif atom == "list":
        before = old if type(old) is list else []
        after = new if type(new) is list else []
        if shape.listing != ATOMIC and (before or after):
            _lists(shape if shape.opened else shape.open(), before, after, out)
            return False
    return not equal(old, new)


def _maps(shape: Shape, old: dict[str, Any], new: dict[str, Any], out: Comparison) -> None:
    fields = shape.fields
    for name, before in old.items():
        if name in new:
            after = new[name]
            if before is after:
                continue
            if type(before) is str and type(after) is str:
                if before != after:
                    out.modified["f:" + name] = LEAF
                continue
        declared = fields.get(name)
        if declared is not None:
            element, child = declared
        else:
            element = "f:" + name
            if shape.values is None:
                continue
            child = shape.values
        if name in new:
            _place(child, element, before, new[name], out)
        else:
            _put(out.removed, element, everything(child, before))
    if len(new) == len(old) and not out.removed:
        return
    for name, after in new.items():
        if name in old:
            continue
        declared = fields.get(name)
        if declared is not None:
            _put(out.added, declared[0], everything(declared[1], after))
        elif shape.values is not None:
            _put(out.added, "f:" + name, everything(shape.values, after))


def _place(child: Shape, element: str, before: Any, after: Any, out: Comparison) -> None:
    """Compare what both have at `element`."""
    below = Comparison({}, {}, {})
    if _descend(child, before, after, below):
        below.modified = {".": LEAF, **below.modified} if below.modified else LEAF
        _put(out.modified, element, below.modified)
    elif below.modified:
        _put(out.modified, element, below.modified)
    if below.added:
        _put(out.added, element, below.added)
    if below.removed:
        _put(out.removed, element, below.removed)


def _put(trie: Trie, element: str, node: Trie) -> None:
    known = trie.get(element)
    trie[element] = node if known is None else union(known, node)


def _lists(shape: Shape, old: list[Any], new: list[Any], out: Comparison) -> None:
    child = shape.item
    assert child is not None
    before, after = _by_element(shape, old), _by_element(shape, new)
    for element, items in before.items():
        theirs = after.get(element)
        if theirs is None:
            _put(out.removed, element, LEAF if len(items) > 1 else everything(child, items[0]))
        elif len(items) == 1 and len(theirs) == 1:
            if items[0] is not theirs[0]:
                _place(child, element, items[0], theirs[0], out)
        elif len(items) > 1 and len(theirs) > 1:
            if not equal(items, theirs):
                _put(out.modified, element, LEAF)
        elif len(items) > 1:  # repeated before, no longer so
            _put(out.added, element, everything(child, theirs[0]))
            _put(out.removed, element, LEAF)
        else:  # repeated now
            _put(out.removed, element, everything(child, items[0]))
            _put(out.added, element, LEAF)
    for element, theirs in after.items():
        if element not in before:
            _put(out.added, element, LEAF if len(theirs) > 1 else everything(child, theirs[0]))


def _by_element(shape: Shape, items: list[Any]) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {}
    for item in items:
        element = element_of(shape, item)
        known = out.get(element)
        if known is None:
            out[element] = [item]
        else:
            known.append(item)
    return out
