"""Comparison of two typed values: the fields that were added, modified and removed."""

from typing import Any

from fairlead.api.fields.tries import LEAF, Trie, union, union_of_roots
from fairlead.server.ownership.equality import equal
from fairlead.server.ownership.field_extraction import extract_all_fields, path_element
from fairlead.server.ownership.merge_schema import ATOMIC, MergeSchema


class Comparison:
    """The added, modified and removed fields between two values. No field is in two of the three tries."""

    __slots__ = ("added", "modified", "removed")

    def __init__(self, added: Trie, modified: Trie, removed: Trie) -> None:
        self.added = added
        self.modified = modified
        self.removed = removed

    def __bool__(self) -> bool:
        return bool(self.added or self.modified or self.removed)


def compare(schema: MergeSchema, old: Any, new: Any) -> Comparison:
    """Return the difference of `new` from `old`, ignoring the order of list items.

    Parts that are the same Python object in both are skipped.
    """
    changes = Comparison({}, {}, {})
    if old is not new:
        _compare_values(schema, old, new, changes)
    return changes


def compare_with_empty(schema: MergeSchema, empty_object: dict[str, Any], new: dict[str, Any]) -> Trie:
    """Return the fields that a create adds or modifies, compared with the `empty_object` object of its kind."""
    schema = schema if schema.is_expanded else schema.expand()
    fields = schema.fields
    out: Trie = {}
    for name, after in new.items():
        child_schema = fields.get(name)
        if child_schema is None:
            if schema.values is None:
                continue
            element, child = "f:" + name, schema.values
        else:
            element, child = child_schema
        if name not in empty_object:
            out[element] = extract_all_fields(child, after)
        elif empty_object[name] != after:
            if empty_object[name] or not after or type(after) is not dict or not child.is_map or child.is_atomic:
                changes = compare(schema, empty_object, new)
                return union_of_roots(changes.added, changes.modified)
            out[element] = inner_trie = extract_all_fields(child, after)
            del inner_trie["."]
    return out


def _compare_values(schema: MergeSchema, old: Any, new: Any, differences: Comparison) -> bool:
    """Add the differences of two values to `differences`.

    Return whether the value itself, not only a part of it, is modified.
    """
    old_kind, new_kind = _get_container_kind(schema, old), _get_container_kind(schema, new)
    modified = _compare_as(schema, old_kind, old, new, differences)
    if old_kind != new_kind:  # The value changed its kind, for example from a map to a list: compare it as both.
        modified = _compare_as(schema, new_kind, old, new, differences) or modified
    return modified


def _get_container_kind(schema: MergeSchema, value: Any) -> str:
    """Return "map", "list" or "scalar": how a value is compared under its schema."""
    if type(value) is dict and schema.is_map:
        return "map"
    if type(value) is list and schema.is_list:
        return "list"
    if value is not None and schema.scalar:
        return "scalar"
    return "map" if schema.is_map else "scalar" if schema.scalar else "list"


def _compare_as(schema: MergeSchema, kind: str, old: Any, new: Any, differences: Comparison) -> bool:
    if kind == "map":
        old_map = old if type(old) is dict else {}
        new_map = new if type(new) is dict else {}
        if not schema.is_atomic and (old_map or new_map):
            _compare_maps(schema if schema.is_expanded else schema.expand(), old_map, new_map, differences)
            return False
    elif kind == "list":
        old_list = old if type(old) is list else []
        new_list = new if type(new) is list else []
        if schema.list_type != ATOMIC and (old_list or new_list):
            _compare_lists(schema if schema.is_expanded else schema.expand(), old_list, new_list, differences)
            return False
    return not equal(old, new)


def _compare_maps(schema: MergeSchema, old: dict[str, Any], new: dict[str, Any], differences: Comparison) -> None:
    fields = schema.fields
    for name, before in old.items():
        if name in new:
            after = new[name]
            if before is after:
                continue
            if type(before) is str and type(after) is str:
                if before != after:
                    differences.modified["f:" + name] = LEAF
                continue
        child_schema = fields.get(name)
        if child_schema is not None:
            element, child = child_schema
        else:
            element = "f:" + name
            if schema.values is None:
                continue
            child = schema.values
        if name in new:
            _compare_children(child, element, before, new[name], differences)
        else:
            _add_node(differences.removed, element, extract_all_fields(child, before))
    if len(new) == len(old) and not differences.removed:
        return
    for name, after in new.items():
        if name in old:
            continue
        child_schema = fields.get(name)
        if child_schema is not None:
            _add_node(differences.added, child_schema[0], extract_all_fields(child_schema[1], after))
        elif schema.values is not None:
            _add_node(differences.added, "f:" + name, extract_all_fields(schema.values, after))


def _compare_children(child: MergeSchema, element: str, before: Any, after: Any, differences: Comparison) -> None:
    """Add the differences of the values `before` and `after` at a path element to `differences`."""
    inner_comparison = Comparison({}, {}, {})
    if _compare_values(child, before, after, inner_comparison):
        inner_comparison.modified = {".": LEAF, **inner_comparison.modified} if inner_comparison.modified else LEAF
        _add_node(differences.modified, element, inner_comparison.modified)
    elif inner_comparison.modified:
        _add_node(differences.modified, element, inner_comparison.modified)
    if inner_comparison.added:
        _add_node(differences.added, element, inner_comparison.added)
    if inner_comparison.removed:
        _add_node(differences.removed, element, inner_comparison.removed)


def _add_node(trie: Trie, element: str, node: Trie) -> None:
    existing_node = trie.get(element)
    trie[element] = node if existing_node is None else union(existing_node, node)


def _compare_lists(schema: MergeSchema, old: list[Any], new: list[Any], differences: Comparison) -> None:
    child = schema.item
    assert child is not None
    before, after = _group_by_element(schema, old), _group_by_element(schema, new)
    for element, items in before.items():
        new_items = after.get(element)
        if new_items is None:
            _add_node(differences.removed, element, LEAF if len(items) > 1 else extract_all_fields(child, items[0]))
        elif len(items) == 1 and len(new_items) == 1:
            if items[0] is not new_items[0]:
                _compare_children(child, element, items[0], new_items[0], differences)
        elif len(items) > 1 and len(new_items) > 1:
            if not equal(items, new_items):
                _add_node(differences.modified, element, LEAF)
        elif len(items) > 1:  # a duplicate before, now unique
            _add_node(differences.added, element, extract_all_fields(child, new_items[0]))
            _add_node(differences.removed, element, LEAF)
        else:  # unique before, now a duplicate
            _add_node(differences.removed, element, extract_all_fields(child, items[0]))
            _add_node(differences.added, element, LEAF)
    for element, new_items in after.items():
        if element not in before:
            _add_node(
                differences.added, element, LEAF if len(new_items) > 1 else extract_all_fields(child, new_items[0])
            )


def _group_by_element(schema: MergeSchema, items: list[Any]) -> dict[str, list[Any]]:
    items_by_element: dict[str, list[Any]] = {}
    for item in items:
        element = path_element(schema, item)
        existing_items = items_by_element.get(element)
        if existing_items is None:
            items_by_element[element] = [item]
        else:
            existing_items.append(item)
    return items_by_element
