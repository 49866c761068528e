"""Extract the fields of a value as a trie.

`extract_applied_fields` returns the fields that an applier owns: leaves, items and keys. `extract_all_fields` returns
the fields that any other writer owns, which include all maps and lists.
"""

from typing import Any

from fairlead.api.fields.tries import DOT, LEAF, Trie, as_member
from fairlead.server.ownership.merge_schema import ATOMIC, ItemError, MergeSchema


def extract_applied_fields(schema: MergeSchema, value: Any) -> Trie | None:
    """Return the fields that an applier of `value` owns: LEAF if it owns the value as a whole, None for no field."""
    kind = type(value)
    if kind is dict and schema.is_map:
        if schema.is_atomic:
            return LEAF
        if not value:
            return None
        schema = schema if schema.is_expanded else schema.expand()
        result: Trie = {}
        fields = schema.fields
        for name, child_value in value.items():
            child_schema = fields.get(name)
            if child_schema is not None:
                element, child = child_schema
                if child.scalar and type(child_value) is str:
                    result[element] = LEAF
                    continue
                node = extract_applied_fields(child, child_value)
                if child_value is None or child_value == {}:
                    node = LEAF if node is None else as_member(node)
                if node is not None:
                    result[element] = node
            elif type(child_value) is str or schema.values is None:
                result["f:" + name] = LEAF
            else:
                node = extract_applied_fields(schema.values, child_value)
                result["f:" + name] = LEAF if node is None else as_member(node)
        return result or None
    if kind is list and schema.is_list:
        return LEAF if schema.list_type == ATOMIC else _extract_applied_items(schema.expand(), value)
    if value is not None:
        return LEAF if schema.scalar else None
    return LEAF if (schema.is_atomic if schema.is_map else schema.scalar or schema.list_type == ATOMIC) else None


def _extract_applied_items(schema: MergeSchema, items: list[Any]) -> Trie | None:
    result: Trie = {}
    duplicates: set[str] = set()
    child = schema.item
    assert child is not None
    for item in items:
        element = path_element(schema, item)
        if element in result:
            duplicates.add(element)
        node = extract_applied_fields(child, item)
        result[element] = LEAF if node is None else as_member(node)
    for element in duplicates:
        result[element] = LEAF
    return result or None


def extract_all_fields(schema: MergeSchema, value: Any) -> Trie:
    """Return the fields that a writer owns who adds `value` without apply: all fields, with maps and lists."""
    kind = type(value)
    if kind is dict and value and schema.is_map and not schema.is_atomic:
        schema = schema if schema.is_expanded else schema.expand()
        result: Trie = dict(DOT)
        fields = schema.fields
        for name, child_value in value.items():
            child_schema = fields.get(name)
            if child_schema is not None:
                result[child_schema[0]] = (
                    LEAF if type(child_value) is str else extract_all_fields(child_schema[1], child_value)
                )
            elif type(child_value) is str or schema.values is None:
                result["f:" + name] = LEAF
            else:
                result["f:" + name] = extract_all_fields(schema.values, child_value)
        return result
    if kind is list and value and schema.is_list and schema.list_type != ATOMIC:
        schema = schema if schema.is_expanded else schema.expand()
        result = dict(DOT)
        duplicates: set[str] = set()
        child = schema.item
        assert child is not None
        for item in value:
            element = path_element(schema, item)
            if element in result:
                duplicates.add(element)
            result[element] = extract_all_fields(child, item)
        for element in duplicates:
            result[element] = LEAF
        return result
    return LEAF


def path_element(schema: MergeSchema, item: Any) -> str:
    """Return the path element of a list item, such as `k:{"name":"web"}`. The list conforms to its schema."""
    try:
        return schema.path_element(item)
    except ItemError:
        return "k:{}"  # a common element for all items without an identity
