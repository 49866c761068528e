"""Set algebra on field tries: FieldsV1 itself, as nested dicts.

The trie of a place maps each child's element to the child's trie. An empty trie is a member with nothing below; a
trie with children is a member only if it holds `.`. At the root there is no member, so an empty root is the empty set.

Tries are immutable by convention: nothing here changes its arguments, and results share whatever did not change.
`None` stands for "nothing here" below the root.
"""

from collections.abc import Iterator
from typing import Any, cast

from fairlead.api.fields.elements import Great, Path, canonical, order

Trie = dict[str, Any]  # element -> Trie

LEAF: Trie = {}
DOT = {".": LEAF}  # for {**DOT, ...}: a member that has children too


def owned(node: Trie) -> Trie:
    """`node`, as a member."""
    return node if not node or "." in node else {**DOT, **node}


def union(a: Trie, b: Trie) -> Trie:
    """Paths of either, for two tries at one place below the root."""
    if a is b:
        return a
    if not a:
        return owned(b)
    if not b:
        return owned(a)
    return union_of_roots(a, b)


def union_of_roots(a: Trie, b: Trie) -> Trie:
    """Paths of either."""
    if len(a) < len(b):
        a, b = b, a
    out: Trie | None = None
    for element, theirs in b.items():
        ours = a.get(element)
        if ours is None:
            both = theirs
        elif ours is theirs or (both := union(ours, theirs)) is ours:
            continue
        if out is None:
            out = dict(a)
        out[element] = both
    return a if out is None else out


def intersection(a: Trie, b: Trie) -> Trie | None:
    """Paths of both, for two tries at one place below the root; None if there is none."""
    if a is b:
        return a
    if not a:
        return LEAF if not b or "." in b else None
    if not b:
        return LEAF if "." in a else None
    out = intersection_of_roots(a, b)
    if not out:
        return None
    return LEAF if len(out) == 1 and "." in out else out


def intersection_of_roots(a: Trie, b: Trie) -> Trie:
    """Paths of both."""
    if len(b) < len(a):
        a, b = b, a
    out: Trie = {}
    for element, ours in a.items():
        theirs = b.get(element)
        if theirs is not None:
            both = intersection(ours, theirs)
            if both is not None:
                out[element] = both
    return out


def difference(a: Trie, b: Trie) -> Trie | None:
    """Paths of `a` that are not in `b`, for two tries at one place below the root; None if there is none."""
    if a is b:
        return None
    if not a:
        return None if not b or "." in b else a
    if not b:
        if "." not in a:
            return a
        return {element: node for element, node in a.items() if element != "."}
    out = difference_of_roots(a, b)
    if not out:
        return None
    return LEAF if len(out) == 1 and "." in out else out


def difference_of_roots(a: Trie, b: Trie) -> Trie:
    """Paths of `a` that are not in `b`; a path's own presence in `b` says nothing of what is below it."""
    out: Trie | None = None
    small, large = (b, a) if len(b) < len(a) else (a, b)
    for element in small:
        if element not in large:
            continue
        ours = a[element]
        left = difference(ours, b[element])
        if left is ours:
            continue
        if out is None:
            out = dict(a)
        if left is None:
            del out[element]
        else:
            out[element] = left
    return a if out is None else out


def without(a: Trie, b: Trie) -> Trie:
    """Paths of `a` that are neither in `b` nor below a path of `b`."""
    out: Trie | None = None
    for element, theirs in b.items():
        ours = a.get(element)
        if ours is None or element == ".":
            continue
        whole = not theirs or "." in theirs
        left = LEAF if whole else without(ours, theirs)
        if not whole and left is ours:
            continue
        if out is None:
            out = dict(a)
        if not left:
            del out[element]
        else:
            out[element] = LEAF if len(left) == 1 and "." in left else left
    return a if out is None else out


def leaves(a: Trie) -> Trie:
    """Members that have nothing below them."""
    return {element: leaves(node) if node else LEAF for element, node in a.items() if element != "."}


def only_below(a: Trie, path: Path) -> Trie:
    """What is at and below `path`, with `path` still in front; the empty trie if that is nothing."""
    node = at(a, path)
    if node is None:
        return LEAF
    for element in reversed(path):
        node = {element: node}
    return node


def at(a: Trie, path: Path) -> Trie | None:
    """The trie at `path`, or None."""
    node: Trie | None = a
    for element in path:
        node = node.get(element) if node else None
    return node


def holds(a: Trie, b: Trie) -> bool:
    """Whether every path of `b` is in `a`, for two tries at one place below the root."""
    if a is b:
        return True
    if not b:
        return not a or "." in a
    if not a:
        return len(b) == 1 and "." in b
    return holds_root(a, b)


def holds_root(a: Trie, b: Trie) -> bool:
    """Whether every path of `b` is in `a`."""
    for element, theirs in b.items():
        ours = a.get(element)
        if ours is None or (ours is not theirs and not holds(ours, theirs)):
            return False
    return True


def paths(a: Trie, prefix: Path = ()) -> Iterator[Path]:
    """Every path, in a server's order: a place's members first, then what is below each."""
    elements = sorted([element for element in a if element != "."], key=order)
    for element in elements:
        node = a[element]
        if not node or "." in node:
            yield (*prefix, element)
    for element in elements:
        if a[element]:
            yield from paths(a[element], (*prefix, element))


def from_paths(each: list[Path]) -> Trie:
    """The trie of these paths; the empty path is no one's and is left out."""
    root: Trie = {}
    for path in each:
        node = root
        for element in path[:-1]:
            child = node.get(element)
            if child is None or child is LEAF:
                child = node[element] = {} if child is None else dict(DOT)
            node = child
        if path:
            known = node.get(path[-1])
            if known is None:
                node[path[-1]] = LEAF
            elif known:
                known["."] = LEAF
    return root


def decode(fields: Any) -> Trie:
    """The root of a FieldsV1 as read; shares it where it is canonical already.

    Kinds of elements that are not known are left out, as a server does. Raises ValueError for what is no FieldsV1.
    """
    root = _decode(fields)
    return {element: node for element, node in root.items() if element != "."} if "." in root else root


def _decode(fields: Any) -> Trie:
    if fields is None:
        return LEAF
    if type(fields) is not dict:
        raise ValueError(f"FieldsV1 is an object of objects, not {type(fields).__name__}")
    if len(fields) == 1 and "." in fields:
        return LEAF
    changed = False
    out: Trie = {}
    for element, below in fields.items():
        if element == ".":
            out["."] = LEAF
            continue
        known = element if element[:2] == "f:" else canonical(element)
        if known is None:
            changed = True
            continue
        node = _decode(below) if type(below) is not dict or below else below
        changed = changed or node is not below or known != element
        out[known] = union(out[known], node) if known in out else node
    return out if changed else cast("Trie", fields)


def encode(a: Trie) -> Trie:
    """The trie in a server's order, and as it is written."""
    if len(a) > 1:
        elements = sorted([element for element in a if element != "."], key=order)
        out: Trie = dict(DOT) if "." in a else {}
        for element in elements:
            node = a[element]
            out[element if type(element) is str else _written(element)] = encode(node) if node else LEAF
        return out
    return {
        element if type(element) is str else _written(element): encode(node) if node else LEAF
        for element, node in a.items()
    }


def _written(element: str) -> str:
    return element.written if isinstance(element, Great) else element


def exact(a: Trie) -> bool:
    """Whether it is written otherwise than it will be read."""
    for element, node in a.items():  # noqa: SIM110 - asked of every write
        if type(element) is not str or (node and exact(node)):
            return True
    return False
