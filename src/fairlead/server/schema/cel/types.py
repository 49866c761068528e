"""The types that a schema gives to CEL's values, with how large a value may be at most and is at least."""

from functools import lru_cache
from typing import Final, NamedTuple

from fairlead.server.schema.cel.values import spelled
from fairlead.server.schema.nodes import MISSING, Node
from fairlead.server.schema.structural import ANYTHING

REQUEST: Final = 3 * 1024 * 1024  # bytes of the largest request
_TIMES: Final = {"duration": ("duration", 32, 3), "date": ("timestamp", 12, 12), "date-time": ("timestamp", 32, 21)}


class Type(NamedTuple):
    """A type of CEL: `object` is one with declared fields, `dyn` may be anything."""

    kind: str
    most: int = 0  # characters, bytes, items or entries; of anything else nothing is said
    least: int = 0  # bytes of JSON
    element: "Type | None" = None  # of a list, of a map's values, of an optional
    fields: "dict[str, Type] | None" = None


DYN: Final = Type("dyn")
BOOL: Final = Type("bool", least=4)
INT: Final = Type("int", least=1)
DOUBLE: Final = Type("double", least=1)
STRING: Final = Type("string", REQUEST - 2, 2)
_METADATA: Final = Type("object", least=2, fields={"name": STRING, "generateName": STRING})


@lru_cache(maxsize=64)
def ruled(node: Node) -> Type | None:
    """The type of what a schema describes, where a rule stands. Each of its rules asks."""
    return declared(node)


def declared(node: Node) -> Type | None:
    """The type of what a schema describes, or None where rules cannot speak of it."""
    rules = node.constraints
    if node.int_or_string:
        return Type("dyn", _longest(rules.max_length, 4), 1)
    if node.type == "array":
        return _list(node)
    if node.type == "object":
        if node.values is not None and node.values is not ANYTHING:
            return _map(node)
        return _object(node)
    if node.type == "string":
        return _string(node)
    return {"boolean": BOOL, "integer": INT, "number": DOUBLE}.get(node.type)


def _list(node: Node) -> Type | None:
    element = declared(node.items) if node.items is not None else None
    if element is None:
        return None
    given = node.constraints.max_items
    return Type("list", (REQUEST - 2) // (element.least + 1) if given is None else max(0, given), 2, element)


def _map(node: Node) -> Type | None:
    element = declared(node.values) if node.values is not None else None
    if element is None:
        return None
    given = node.constraints.max_properties
    return Type("map", (REQUEST - 2) // (element.least + 6) if given is None else max(0, given), 2, element)


def _object(node: Node) -> Type:
    fields: dict[str, Type] = {}
    least = 2
    typed = {key: declared(child) for key, child in node.constraints.properties.items()}
    if node.embedded and not _said(typed):
        typed |= {"kind": STRING, "apiVersion": STRING, "metadata": _METADATA}
    for key, inner in typed.items():
        if inner is None:
            continue
        fields |= dict.fromkeys(spelled(key), inner)
        child = node.constraints.properties.get(key)
        if key in node.constraints.required and (child is None or child.default is MISSING):
            least += len(key.encode()) + inner.least + 4
    return Type("object", least=least, fields=fields)


def _said(typed: dict[str, Type | None]) -> bool:
    """Whether an embedded resource's schema says all of what identifies one."""
    metadata = typed.get("metadata")
    inner = (metadata.fields or {}) if metadata is not None else {}
    wanted = [typed.get("kind"), typed.get("apiVersion"), inner.get("name"), inner.get("generateName")]
    return all(one is not None and one.kind == "string" for one in wanted)


def _string(node: Node) -> Type:
    rules = node.constraints
    if node.format in _TIMES:
        return Type(*_TIMES[node.format])
    if node.format == "byte":
        return Type("bytes", _longest(rules.max_length, 1), 2)
    if rules.max_length is None and rules.enum:
        return Type("string", max(len(one.encode()) if isinstance(one, str) else 0 for one in rules.enum), 2)
    return Type("string", _longest(rules.max_length, 4), 2)


def _longest(given: int | None, each: int) -> int:
    """Of a text: as many characters as it may have, each of so many bytes, or as many as fit into a request."""
    return REQUEST - 2 if given is None else max(0, given) * each
