"""Bring a field set in line with a schema that changed since the set was written, or ready it for pruning."""

from fairlead.api.fields.tries import LEAF, Trie, owned
from fairlead.server.ownership.shapes import ATOMIC, UNTYPED, Shape


def reconciled(shape: Shape, fields: Trie) -> Trie:
    """`fields` with what is now atomic owned whole. What became granular stays as it was. The same where it fits."""
    shape = shape if shape.opened else shape.open()
    if _deduced(shape) or (shape.scalar and not shape.is_map):
        return fields
    out: Trie | None = None
    for element, node in fields.items():
        if not node:
            continue  # a leaf, or the dot
        child = _below(shape, element)
        if child is None:
            continue
        whole = child.atomic if child.is_map else not child.scalar and child.listing == ATOMIC
        changed = LEAF if whole and not _deduced(child) else reconciled(child, node)
        if changed is not node:
            if out is None:
                out = dict(fields)
            out[element] = changed
    return fields if out is None else out


def _deduced(shape: Shape) -> bool:
    """Whether a map takes unknown fields and nothing else: its relation is not the schema's to say."""
    values = (shape if shape.opened else shape.open()).values
    return not shape.fields and values is not None and values is not UNTYPED and values.scalar == "untyped"


def _below(shape: Shape, element: str) -> Shape | None:
    if shape.is_map:
        declared = shape.fields.get(element[2:]) if element[0] == "f" else None
        return declared[1] if declared is not None else shape.values
    return shape.item


def with_named_fields(shape: Shape | None, fields: Trie) -> Trie:
    """`fields` and every declared field above them: an applier owns `spec` as soon as it owns `spec.replicas`."""
    if shape is None:
        return fields
    out: Trie | None = None
    for element, node in fields.items():
        if not node:
            continue
        below = with_named_fields(shape.child(element), node)
        if element[0] == "f" and shape.is_map and element[2:] in shape.fields:
            below = owned(below)
        if below is not node:
            if out is None:
                out = dict(fields)
            out[element] = below
    return fields if out is None else out
