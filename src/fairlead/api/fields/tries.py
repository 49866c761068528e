"""Set operations on tries of path elements, in the form of FieldsV1: nested dicts.

A trie maps path elements to the tries below them. Below the root, an empty trie is a member of the set without
children. A trie with children is a member only if it contains `.`. The root is never a member: an empty root is the
empty set.

Tries are immutable by convention. No function changes its arguments, and results share the unchanged parts.
Functions for tries below the root return None for an empty set.
"""

from collections.abc import Iterator
from typing import Any, cast

from fairlead.api.fields.path_elements import LargeNumberElement, Path, canonicalize, sort_key

Trie = dict[str, Any]  # element -> Trie

LEAF: Trie = {}
DOT = {".": LEAF}  # {**DOT, ...} is a member that has children


def as_member(node: Trie) -> Trie:
    """Return `node` with the mark `.`, which makes its path a member of the set. A leaf needs no mark."""
    return node if not node or "." in node else {**DOT, **node}


def union(a: Trie, b: Trie) -> Trie:
    """Return the union of two tries below the root."""
    if a is b:
        return a
    if not a:
        return as_member(b)
    if not b:
        return as_member(a)
    return union_of_roots(a, b)


def union_of_roots(a: Trie, b: Trie) -> Trie:
    """Return the union of two tries at their roots, where an empty trie is the empty set."""
    if len(a) < len(b):
        a, b = b, a
    result: Trie | None = None
    for element, b_node in b.items():
        a_node = a.get(element)
        if a_node is None:
            merged_node = b_node
        elif a_node is b_node or (merged_node := union(a_node, b_node)) is a_node:
            continue
        if result is None:
            result = dict(a)
        result[element] = merged_node
    return a if result is None else result


def intersection(a: Trie, b: Trie) -> Trie | None:
    """Return the intersection of two tries below the root, or None if it is empty."""
    if a is b:
        return a
    if not a:
        return LEAF if not b or "." in b else None
    if not b:
        return LEAF if "." in a else None
    result = intersection_of_roots(a, b)
    if not result:
        return None
    return LEAF if len(result) == 1 and "." in result else result


def intersection_of_roots(a: Trie, b: Trie) -> Trie:
    """Return the intersection of two tries at their roots, where an empty trie is the empty set."""
    if len(b) < len(a):
        a, b = b, a
    result: Trie = {}
    for element, a_node in a.items():
        b_node = b.get(element)
        if b_node is not None:
            common_node = intersection(a_node, b_node)
            if common_node is not None:
                result[element] = common_node
    return result


def difference(a: Trie, b: Trie) -> Trie | None:
    """Return the paths of `a` that are not in `b`, or None if none are left. Both are tries below the root."""
    if a is b:
        return None
    if not a:
        return None if not b or "." in b else a
    if not b:
        if "." not in a:
            return a
        return {element: node for element, node in a.items() if element != "."}
    result = difference_of_roots(a, b)
    if not result:
        return None
    return LEAF if len(result) == 1 and "." in result else result


def difference_of_roots(a: Trie, b: Trie) -> Trie:
    """Return the paths of `a` that are not in `b`. An empty trie is the empty set. Paths below a path in `b` stay."""
    result: Trie | None = None
    small, large = (b, a) if len(b) < len(a) else (a, b)
    for element in small:
        if element not in large:
            continue
        a_node = a[element]
        remaining = difference(a_node, b[element])
        if remaining is a_node:
            continue
        if result is None:
            result = dict(a)
        if remaining is None:
            del result[element]
        else:
            result[element] = remaining
    return a if result is None else result


def recursive_difference(a: Trie, b: Trie) -> Trie:
    """Return the paths of `a` that are neither in `b` nor below a path of `b`."""
    result: Trie | None = None
    for element, b_node in b.items():
        a_node = a.get(element)
        if a_node is None or element == ".":
            continue
        is_member = not b_node or "." in b_node
        remaining = LEAF if is_member else recursive_difference(a_node, b_node)
        if not is_member and remaining is a_node:
            continue
        if result is None:
            result = dict(a)
        if not remaining:
            del result[element]
        else:
            result[element] = LEAF if len(remaining) == 1 and "." in remaining else remaining
    return a if result is None else result


def leaves(a: Trie) -> Trie:
    """Return the paths of `a` that have no other path below them."""
    return {element: leaves(node) if node else LEAF for element, node in a.items() if element != "."}


def restrict_to(a: Trie, path: Path) -> Trie:
    """Return the paths of `a` that are `path` itself or below `path`."""
    node = find_node(a, path)
    if node is None:
        return LEAF
    for element in reversed(path):
        node = {element: node}
    return node


def find_node(a: Trie, path: Path) -> Trie | None:
    """Return the part of the trie at `path`, or None if the trie has no such path."""
    node: Trie | None = a
    for element in path:
        node = node.get(element) if node else None
    return node


def is_superset(a: Trie, b: Trie) -> bool:
    """Return whether `a` contains every path of `b`, for tries below the root."""
    if a is b:
        return True
    if not b:
        return not a or "." in a
    if not a:
        return len(b) == 1 and "." in b
    return is_superset_of_root(a, b)


def is_superset_of_root(a: Trie, b: Trie) -> bool:
    """Return whether `a` contains every path of `b`, for two whole tries."""
    for element, b_node in b.items():
        a_node = a.get(element)
        if a_node is None or (a_node is not b_node and not is_superset(a_node, b_node)):
            return False
    return True


def paths(a: Trie, prefix: Path = ()) -> Iterator[Path]:
    """Yield all paths in the order of an API server: the paths of one level first, then the paths below them."""
    elements = sorted([element for element in a if element != "."], key=sort_key)
    for element in elements:
        node = a[element]
        if not node or "." in node:
            yield (*prefix, element)
    for element in elements:
        if a[element]:
            yield from paths(a[element], (*prefix, element))


def from_paths(members: list[Path]) -> Trie:
    """Return the trie that contains exactly the paths `members`. An empty path is ignored."""
    root: Trie = {}
    for path in members:
        node = root
        for element in path[:-1]:
            child = node.get(element)
            if child is None or child is LEAF:
                child = node[element] = {} if child is None else dict(DOT)
            node = child
        if path:
            existing = node.get(path[-1])
            if existing is None:
                node[path[-1]] = LEAF
            elif existing:
                existing["."] = LEAF
    return root


def decode(fields: Any) -> Trie:
    """Return the trie of a FieldsV1. A canonical argument is returned unchanged, without a copy.

    Elements with an unknown prefix are ignored, as by an API server. Raises ValueError if `fields` is not a FieldsV1.
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
    is_changed = False
    result: Trie = {}
    for element, child in fields.items():
        if element == ".":
            result["."] = LEAF
            continue
        canonical = element if element[:2] == "f:" else canonicalize(element)
        if canonical is None:
            is_changed = True
            continue
        node = _decode(child) if type(child) is not dict or child else child
        is_changed = is_changed or node is not child or canonical != element
        result[canonical] = union(result[canonical], node) if canonical in result else node
    return result if is_changed else cast("Trie", fields)


def encode(a: Trie) -> Trie:
    """Return the trie as FieldsV1: in the order of an API server, with exact numbers."""
    if len(a) > 1:
        elements = sorted([element for element in a if element != "."], key=sort_key)
        result: Trie = dict(DOT) if "." in a else {}
        for element in elements:
            node = a[element]
            result[element if type(element) is str else _restore_exact_element(element)] = (
                encode(node) if node else LEAF
            )
        return result
    return {
        element if type(element) is str else _restore_exact_element(element): encode(node) if node else LEAF
        for element, node in a.items()
    }


def _restore_exact_element(element: str) -> str:
    return element.exact if isinstance(element, LargeNumberElement) else element


def has_large_numbers(a: Trie) -> bool:
    """Return whether the trie contains an integer that `decode` would round to a float."""
    for element, node in a.items():  # noqa: SIM110 - faster, and called for every write
        if type(element) is not str or (node and has_large_numbers(node)):
            return True
    return False
