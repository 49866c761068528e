"""Adapt field sets to a schema that changed since the set was written, and to the needs of pruning."""

from fairlead.api.fields.tries import LEAF, Trie, as_member
from fairlead.server.ownership.merge_schema import ATOMIC, UNTYPED, MergeSchema


def reconcile_field_set(schema: MergeSchema, fields: Trie) -> Trie:
    """Return `fields` with one leaf for each part that the schema now declares atomic.

    Parts that became granular stay. The result is `fields` itself if nothing changes.
    """
    schema = schema if schema.is_expanded else schema.expand()
    if _is_deduced(schema) or (schema.scalar and not schema.is_map):
        return fields
    out: Trie | None = None
    for element, node in fields.items():
        if not node:
            continue  # a leaf
        child = _get_child_schema(schema, element)
        if child is None:
            continue
        is_atomic = child.is_atomic if child.is_map else not child.scalar and child.list_type == ATOMIC
        reconciled_node = LEAF if is_atomic and not _is_deduced(child) else reconcile_field_set(child, node)
        if reconciled_node is not node:
            if out is None:
                out = dict(fields)
            out[element] = reconciled_node
    return fields if out is None else out


def _is_deduced(schema: MergeSchema) -> bool:
    """Return whether a map declares no fields, so that the schema does not say who owns its parts."""
    values = (schema if schema.is_expanded else schema.expand()).values
    return not schema.fields and values is not None and values is not UNTYPED and values.scalar == "untyped"


def _get_child_schema(schema: MergeSchema, element: str) -> MergeSchema | None:
    if schema.is_map:
        child_schema = schema.fields.get(element[2:]) if element[0] == "f" else None
        return child_schema[1] if child_schema is not None else schema.values
    return schema.item


def ensure_named_fields_are_members(schema: MergeSchema | None, fields: Trie) -> Trie:
    """Return `fields` with all declared parents added: the owner of `spec.replicas` then also owns `spec`."""
    if schema is None:
        return fields
    out: Trie | None = None
    for element, node in fields.items():
        if not node:
            continue
        inner_trie = ensure_named_fields_are_members(schema.child(element), node)
        if element[0] == "f" and schema.is_map and element[2:] in schema.fields:
            inner_trie = as_member(inner_trie)
        if inner_trie is not node:
            if out is None:
                out = dict(fields)
            out[element] = inner_trie
    return fields if out is None else out
