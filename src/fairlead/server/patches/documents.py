"""How a refused patch shows the document that it made."""

from typing import Any

from fairlead.api import gojson
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema.nodes import Node


def text(resource: Resource, made: Any, live: Object | None) -> str:
    """The document as a real server's patch library leaves it.

    A built-in object is encoded field by field in the order of its Go type; what a patch changed was taken apart and
    is put together by name. A custom object is by name throughout.
    """
    if resource.custom:
        return gojson.dumps(made).decode()
    return _changed(resource.schema, made, live)


def _changed(node: Node | None, made: Any, live: Any) -> str:
    if made is live:
        return _kept(node, made)
    if not isinstance(made, dict):
        return gojson.dumps(made).decode()
    before = live if isinstance(live, dict) else {}
    return _object([(key, _changed(_child(node, key), made[key], before.get(key))) for key in sorted(made)])


def _kept(node: Node | None, value: Any) -> str:
    if isinstance(value, list):
        items = node.items if node is not None else None
        return f"[{','.join(_kept(items, item) for item in value)}]"
    if not isinstance(value, dict):
        return gojson.dumps(value).decode()
    fields = [key for key in node.fields if key in value] if node is not None and node.fields else []
    order = fields + sorted(value.keys() - set(fields))
    return _object([(key, _kept(_child(node, key), value[key])) for key in order])


def _object(members: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{gojson.dumps(key).decode()}:{shown}" for key, shown in members) + "}"


def _child(node: Node | None, key: str) -> Node | None:
    return node.child(key) if node is not None else None
