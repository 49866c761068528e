"""How a refused patch shows the document that it made."""

from collections.abc import Iterator
from typing import Any

from fairlead.api import gojson
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema.nodes import Node


def format_document(resource: Resource, made: Any, live: Object | None) -> str:
    """The document as a real server's patch library leaves it.

    A built-in object is encoded field by field in the order of its Go type, and each part of it stays so wherever a
    patch moves it; what a patch changed was taken apart and is put together by name. A custom object is by name
    throughout.
    """
    if resource.custom:
        return gojson.dumps(made).decode()
    return _format_changed(made, dict(_containers(resource.schema, live)))


def _containers(node: Node | None, live: Any) -> Iterator[tuple[int, Node | None]]:
    """Every map and list of an object by its identity, with its schema."""
    if isinstance(live, dict):
        yield id(live), node
        for key, inner in live.items():
            yield from _containers(_child(node, key), inner)
    elif isinstance(live, list):
        yield id(live), node
        for item in live:
            yield from _containers(node.items if node is not None else None, item)


def _format_changed(made: Any, parts: dict[int, Node | None]) -> str:
    if id(made) in parts:
        return _format_unchanged(parts[id(made)], made)
    if isinstance(made, list):
        return f"[{','.join(_format_changed(item, parts) for item in made)}]"
    if not isinstance(made, dict):
        return gojson.dumps(made).decode()
    return _join_members([(key, _format_changed(made[key], parts)) for key in sorted(made)])


def _format_unchanged(node: Node | None, value: Any) -> str:
    if isinstance(value, list):
        items = node.items if node is not None else None
        return f"[{','.join(_format_unchanged(items, item) for item in value)}]"
    if not isinstance(value, dict):
        return gojson.dumps(value).decode()
    fields = [key for key in node.fields if key in value] if node is not None and node.fields else []
    order = fields + sorted(value.keys() - set(fields))
    return _join_members([(key, _format_unchanged(_child(node, key), value[key])) for key in order])


def _join_members(members: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{gojson.dumps(key).decode()}:{shown}" for key, shown in members) + "}"


def _child(node: Node | None, key: str) -> Node | None:
    return node.child(key) if node is not None else None
