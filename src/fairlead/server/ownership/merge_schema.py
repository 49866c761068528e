"""Merge schemas: the part of a schema that a typed merge needs (structured-merge-diff's Atom).

A field may allow a map, a list or a scalar, and sometimes any of them. The type of an unknown field is deduced from its
value. Some scalar types accept any scalar.
"""

from typing import Any, Final

from fairlead.api import gojson
from fairlead.api.fields import path_elements
from fairlead.server.schema.nodes import MISSING, Node

ATOMIC, SET, KEYED = range(3)
_SCALARS: Final = {"string": "string", "integer": "numeric", "number": "numeric", "boolean": "boolean"}
_ANY_SCALAR: Final = ("Time", "MicroTime", "Quantity")  # Go types that have a format in the published schemas


class ItemError(Exception):
    """Raised for a list item without an identity, such as a missing key. The message is a real server's."""


class MergeSchema:
    """The values that a field or item may have, and whether managers own it as a whole or in parts.

    `scalar` is "" if the value may not be a scalar, otherwise string, numeric, boolean or untyped (any of them).
    """

    __slots__ = (
        "defaults",
        "fields",
        "is_atomic",
        "is_expanded",
        "is_list",
        "is_map",
        "item",
        "key",
        "keys",
        "list_type",
        "node",
        "preserves_unknown",
        "scalar",
        "values",
    )  # fmt: skip

    def __init__(self) -> None:
        self.scalar = ""
        self.is_map = False
        self.is_atomic = False  # a map that is owned as a whole
        self.fields: dict[str, tuple[str, MergeSchema]] = {}  # declared fields: name -> (path element, schema)
        self.values: MergeSchema | None = None  # the schema of all other keys
        self.is_list = False
        self.list_type = ATOMIC  # ATOMIC, SET or KEYED
        self.item: MergeSchema | None = None
        self.keys: tuple[str, ...] = ()
        self.key = ""  # the key, if there is exactly one
        self.defaults: dict[str, Any] = {}  # the default values of keys
        self.is_expanded = True  # whether `fields`, `values` and `item` are set
        self.node: Node | None = None
        self.preserves_unknown = False

    def expand(self) -> "MergeSchema":
        """Build the schemas of the fields and items, on first use: schemas are large and recursive."""
        if self.is_expanded:
            return self
        node, preserves_unknown = self.node, self.preserves_unknown
        assert node is not None
        self.is_expanded = True
        if self.is_map:
            for name, child in node.fields.items():
                self.fields[name] = ("f:" + name, _get_schema_below(child, preserves_unknown))
            if node.values is not None:
                self.values = _get_schema_below(node.values, preserves_unknown)
            elif preserves_unknown or not node.fields:
                self.values = DEDUCED
        if self.is_list:
            self.item = UNTYPED if node.items is None else _get_schema_below(node.items, preserves_unknown)
            if self.list_type == KEYED and node.items is not None:
                item_fields = node.items.fields
                for key in self.keys:
                    default = item_fields[key].default if key in item_fields else None
                    if default is not MISSING and default is not None:
                        self.defaults[key] = default
        return self

    def path_element(self, item: Any) -> str:
        """Return the path element of an item of this list. Raises ItemError if the item has none."""
        if self.list_type == KEYED:
            if type(item) is dict:
                if self.key:
                    key_value = item.get(self.key)
                    if type(key_value) is str:
                        return path_elements.key_of_text(self.key, key_value)
                key_values = {key: item[key] if key in item else self.defaults[key] for key in self.keys
                           if key in item or key in self.defaults}  # fmt: skip
                if key_values:
                    return path_elements.key(key_values)
                names = "[" + " ".join([gojson.quote_go(key) for key in self.keys]) + "]"
                raise ItemError(
                    f"associative list with keys has an element that omits all key fields {names} "
                    "(and doesn't have default values for any key fields)"
                )
            if item is None:
                raise ItemError("associative list with keys may not have a null element")
            raise ItemError("associative list with keys may not have non-map elements")
        if type(item) is dict:
            raise ItemError("associative list without keys has an element that's a map type")
        if type(item) is list:
            raise ItemError("not supported: associative list with lists as elements")
        if item is None:
            raise ItemError("associative list without keys has an element that's an explicit null")
        return path_elements.value(item)

    def child(self, element: str) -> "MergeSchema | None":
        """Return the schema of the field or item at a path element, or None if the schema does not declare it."""
        schema = self if self.is_expanded else self.expand()
        if element[0] == "f":
            if not schema.is_map:
                return None
            child_schema = schema.fields.get(element[2:])
            return child_schema[1] if child_schema is not None else schema.values
        return schema.item if element[0] == "k" and schema.is_list else None


def _build_untyped(is_atomic: bool) -> MergeSchema:
    schema = MergeSchema()
    schema.scalar = "untyped"
    schema.is_map = schema.is_list = True
    schema.is_atomic = is_atomic
    return schema


UNTYPED: Final = _build_untyped(is_atomic=True)
UNTYPED.values = UNTYPED.item = UNTYPED
DEDUCED: Final = _build_untyped(is_atomic=False)
DEDUCED.values, DEDUCED.item = DEDUCED, UNTYPED


def merge_schema_of(node: Node) -> MergeSchema:
    """Return the merge schema of a schema node. The result is cached with the node."""
    return _get_schema_below(node, False)


def _get_schema_below(node: Node, preserves_unknown: bool) -> MergeSchema:
    if node.go is not None:
        preserves_unknown = False  # a Go type, even inside a custom resource (its metadata)
    preserves_unknown = preserves_unknown or (node.preserve and node.go is None)
    if node.merge_schemas is None:
        node.merge_schemas = [None, None]
    schema: MergeSchema | None = node.merge_schemas[preserves_unknown]
    if schema is None:
        schema = node.merge_schemas[preserves_unknown] = _build_schema(node, preserves_unknown)
    return schema


def _build_schema(node: Node, preserves_unknown: bool) -> MergeSchema:
    if node.go is not None and node.go.kind == "Raw":
        return UNTYPED
    schema = MergeSchema()
    schema.node, schema.preserves_unknown = node, preserves_unknown
    if node.type in _SCALARS:
        is_free_form = node.format not in ("", "byte") or (node.go is not None and node.go.kind in _ANY_SCALAR)
        schema.scalar = "untyped" if node.type == "string" and is_free_form else _SCALARS[node.type]
        return schema
    schema.is_expanded = False
    if node.type in ("object", ""):
        schema.is_map = True
        schema.is_atomic = node.map_type == "atomic"
    if node.type in ("array", ""):
        schema.is_list = True
        if node.list_type == "map":
            schema.list_type, schema.keys = KEYED, node.keys
            schema.key = node.keys[0] if len(node.keys) == 1 else ""
        elif node.list_type == "set":
            schema.list_type = SET
    if node.type == "":
        schema.scalar = "untyped"
    if node.go is not None and node.go.kind == "Quantity":
        schema.is_map = schema.is_list = False
    return schema
