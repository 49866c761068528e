"""The JSON text of a patched object in the error message of a rejected patch."""

from collections.abc import Iterator
from typing import Any

from fairlead.api import gojson
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema.nodes import Node


def format_document(resource: Resource, patched: Any, live: Object | None) -> str:
    """Return the patched document as a real server's patch library writes it.

    The fields of a built-in object are in the order of its Go type. A container that the patch did not change keeps
    that order, also where the patch moved it. A container that the patch changed is sorted by name. A custom object is
    sorted by name everywhere.
    """
    if resource.custom:
        return gojson.dumps(patched).decode()
    return _format_changed(patched, dict(_list_containers(resource.schema, live)))


def _list_containers(node: Node | None, live: Any) -> Iterator[tuple[int, Node | None]]:
    """Yield the id and the schema node of each map and list of the live object."""
    if isinstance(live, dict):
        yield id(live), node
        for key, inner in live.items():
            yield from _list_containers(_get_child(node, key), inner)
    elif isinstance(live, list):
        yield id(live), node
        for item in live:
            yield from _list_containers(node.items if node is not None else None, item)


def _format_changed(value: Any, containers: dict[int, Node | None]) -> str:
    if id(value) in containers:
        return _format_unchanged(containers[id(value)], value)
    if isinstance(value, list):
        return f"[{','.join(_format_changed(item, containers) for item in value)}]"
    if not isinstance(value, dict):
        return gojson.dumps(value).decode()
    return _join_members([(key, _format_changed(value[key], containers)) for key in sorted(value)])


def _format_unchanged(node: Node | None, value: Any) -> str:
    if isinstance(value, list):
        items = node.items if node is not None else None
        return f"[{','.join(_format_unchanged(items, item) for item in value)}]"
    if not isinstance(value, dict):
        return gojson.dumps(value).decode()
    fields = [key for key in node.fields if key in value] if node is not None and node.fields else []
    order = fields + sorted(value.keys() - set(fields))
    return _join_members([(key, _format_unchanged(_get_child(node, key), value[key])) for key in order])


def _join_members(members: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{gojson.dumps(key).decode()}:{member_text}" for key, member_text in members) + "}"


def _get_child(node: Node | None, key: str) -> Node | None:
    return node.child(key) if node is not None else None
