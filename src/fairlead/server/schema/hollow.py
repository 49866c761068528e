"""Empty lists and maps that Go holds in memory, though it neither writes nor stores them where they may be left out.

Two objects that are written alike may differ in them: a list that is owned whole is compared as it is held.
"""

from functools import cache
from typing import Any, Final

from fairlead.server.schema import builtin
from fairlead.server.schema.nodes import Node

_UNIONS: Final = ("SchemaOrBool", "SchemaOrArray", "SchemaOrStrings")
_HOLLOW: Final = ("list", "map", *_UNIONS)


def held(node: Node, given: Any, made: Any, *, inside: bool = False) -> Any:
    """`made`, decoded from `given`, with what is empty inside of lists that are owned whole; itself if nothing is."""
    kind = node.go.kind
    if kind in _UNIONS:
        return held(builtin.named("apiextensions.v1.JSONSchemaProps"), given, made, inside=inside)
    if type(given) is dict and type(made) is dict:
        out: dict[str, Any] = {}
        for key, inner in given.items():
            field = node.fields.get(key) if kind == "struct" else node.values
            if field is None or (type(inner) is not dict and type(inner) is not list):
                continue
            if key in made:
                if (kept := held(field, inner, made[key], inside=inside)) is not made[key]:
                    out[key] = kept
            elif inside and is_empty(field, inner):
                out[key] = inner
        return {**made, **out} if out else made
    if type(given) is list and type(made) is list and node.items is not None:
        inside = inside or node.list_type == "atomic"
        items = [held(node.items, *pair, inside=inside) for pair in zip(given, made, strict=True)]
        return items if any(new is not old for new, old in zip(items, made, strict=True)) else made
    return made


def anywhere(node: Node, given: Any) -> bool:
    """Whether a value that was sent holds anything empty so."""
    if type(given) is dict:
        fields = [
            (node.fields.get(key) if node.go.kind == "struct" else node.values, one) for key, one in given.items()
        ]
        return any(field is not None and (is_empty(field, one) or anywhere(field, one)) for field, one in fields)
    if type(given) is list and node.items is not None:
        return any(anywhere(node.items, one) for one in given)
    return False


def is_empty(field: Node, value: Any) -> bool:
    """Whether a field was given an empty list or map that is not written."""
    go = field.go
    plain = (go.kind == "list" and value == []) or (go.kind == "map" and value == {})
    return plain and bool(go.omit_empty) and not go.pointer


def written(made: Any, given: Any) -> Any:
    """What was `made` to be stored as it is written before that: an empty list where a stored one would be null."""
    if made is None:
        return given if given in ([], {}) else None
    if type(made) is dict and type(given) is dict:
        return {key: written(one, given.get(key)) for key, one in made.items()}
    if type(made) is list and type(given) is list and len(made) == len(given):
        return [written(*pair) for pair in zip(made, given, strict=True)]
    return made


def stored(node: Node, value: dict[str, Any]) -> dict[str, Any]:
    """A struct as it comes back from storage: without what is empty, or null for it where Go always writes it.

    Until then the two differ: whoever writes an empty list owns it. The very value where nothing is empty so.
    """
    made: dict[str, Any] | None = None
    for key, inner in value.items():
        if type(inner) is not dict and type(inner) is not list:
            continue
        field = node.fields.get(key)
        if field is None:
            continue
        kept = _stored_value(field, inner)
        if kept is not inner:
            if made is None:
                made = dict(value)
            if kept is None and field.go.omit_empty:
                del made[key]
            else:
                made[key] = kept
    return value if made is None else made


def _stored_value(field: Node, value: Any) -> Any:
    kind = field.go.kind
    if kind == "struct":
        return stored(field, value)
    if kind == "list" or kind == "map":
        return _stored_parts(field, value) if value or field.go.pointer else None
    if kind in _UNIONS and type(value) is dict:
        return stored(builtin.named("apiextensions.v1.JSONSchemaProps"), value)
    return value


def _stored_parts(node: Node, value: Any) -> Any:
    below = node.items if node.go.kind == "list" else node.values
    if below is None or below.go.kind != "struct" or _is_solid(below.go.name):
        return value
    if node.go.kind == "list":
        items = [stored(below, item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    parts = {key: stored(below, inner) for key, inner in value.items()}
    return parts if any(parts[key] is not inner for key, inner in value.items()) else value


@cache
def _is_solid(name: str) -> bool:
    """Whether nothing in a struct of this Go type can be empty so."""
    kinds = [(field.go.kind, field.go.name) for field in builtin.named(name).fields.values()]
    return not any(kind in _HOLLOW or (kind == "struct" and not _is_solid(below)) for kind, below in kinds)
