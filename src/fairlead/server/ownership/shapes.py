"""Shapes: a schema node as a typed merge sees it.

A merge knows less than a schema and something of its own: a place may take a map, a list or a scalar, sometimes any of
them; what is below a place that preserves unknown fields is deduced from the values; some scalars take any scalar.
"""

from typing import Any, Final

from fairlead.api.fields import elements
from fairlead.server.schema.nodes import MISSING, Node

ATOMIC, SET, KEYED = range(3)
_SCALARS: Final = {"string": "string", "integer": "numeric", "number": "numeric", "boolean": "boolean"}
_ANY_SCALAR: Final = ("Time", "MicroTime", "Quantity")  # Go types that the published schemas give a format


class ItemError(Exception):
    """A list's item that cannot be told apart from the others: the message of a real server."""


class Shape:
    """What one place may hold, and who shares it how.

    `scalar` is "" where no scalar may stand, else string, numeric, boolean or untyped (any of them).
    """

    __slots__ = (
        "atomic",
        "defaults",
        "fields",
        "is_list",
        "is_map",
        "item",
        "key",
        "keys",
        "listing",
        "node",
        "opened",
        "preserving",
        "scalar",
        "values",
    )  # fmt: skip

    def __init__(self) -> None:
        self.scalar = ""
        self.is_map = False
        self.atomic = False  # of a map: owned whole
        self.fields: dict[str, tuple[str, Shape]] = {}  # declared fields: name -> (element, shape)
        self.values: Shape | None = None  # of every other key
        self.is_list = False
        self.listing = ATOMIC  # ATOMIC, SET or KEYED
        self.item: Shape | None = None
        self.keys: tuple[str, ...] = ()
        self.key = ""  # the only key, where there is only one
        self.defaults: dict[str, Any] = {}  # of keys that have one
        self.opened = True  # whether the places below are known already
        self.node: Node | None = None
        self.preserving = False

    def open(self) -> "Shape":
        """Make the shapes below; done when first needed, because schemas are large and recur."""
        if self.opened:
            return self
        node, preserving = self.node, self.preserving
        assert node is not None
        self.opened = True
        if self.is_map:
            self.fields = {name: ("f:" + name, _below(child, preserving)) for name, child in node.fields.items()}
            if node.values is not None:
                self.values = _below(node.values, preserving)
            elif preserving or not node.fields:
                self.values = DEDUCED
        if self.is_list:
            self.item = UNTYPED if node.items is None else _below(node.items, preserving)
            if self.listing == KEYED and node.items is not None:
                declared = node.items.fields
                for key in self.keys:
                    default = declared[key].default if key in declared else None
                    if default is not MISSING and default is not None:
                        self.defaults[key] = default
        return self

    def element(self, item: Any) -> str:
        """The path element of an item of this list. ItemError where it has none."""
        if self.listing == KEYED:
            if type(item) is dict:
                if self.key:
                    text = item.get(self.key)
                    if type(text) is str:
                        return elements.named(self.key, text)
                found = {key: item[key] if key in item else self.defaults[key] for key in self.keys
                         if key in item or key in self.defaults}  # fmt: skip
                if found:
                    return elements.key(found)
                names = "[" + " ".join([elements.quoted(key) for key in self.keys]) + "]"
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
        return elements.value(item)

    def child(self, element: str) -> "Shape | None":
        """The shape below, by path element; None where the schema does not say."""
        shape = self if self.opened else self.open()
        if element[0] == "f":
            if not shape.is_map:
                return None
            declared = shape.fields.get(element[2:])
            return declared[1] if declared is not None else shape.values
        return shape.item if element[0] == "k" and shape.is_list else None


def _untyped(atomic: bool) -> Shape:
    shape = Shape()
    shape.scalar = "untyped"
    shape.is_map = shape.is_list = True
    shape.atomic = atomic
    return shape


UNTYPED: Final = _untyped(atomic=True)
UNTYPED.values = UNTYPED.item = UNTYPED
DEDUCED: Final = _untyped(atomic=False)
DEDUCED.values, DEDUCED.item = DEDUCED, UNTYPED


def shape_of(node: Node) -> Shape:
    """The shape of a kind's node, made once a node."""
    return _below(node, False)


def _below(node: Node, preserving: bool) -> Shape:
    if node.go is not None:
        preserving = False  # a type of its own, even inside a custom resource (its metadata)
    preserving = preserving or (node.preserve and node.go is None)
    if node.shapes is None:
        node.shapes = [None, None]
    known: Shape | None = node.shapes[preserving]
    if known is None:
        known = node.shapes[preserving] = _made(node, preserving)
    return known


def _made(node: Node, preserving: bool) -> Shape:
    if node.go is not None and node.go.kind == "Raw":
        return UNTYPED
    shape = Shape()
    shape.node, shape.preserving = node, preserving
    if node.type in _SCALARS:
        free = node.format not in ("", "byte") or (node.go is not None and node.go.kind in _ANY_SCALAR)
        shape.scalar = "untyped" if node.type == "string" and free else _SCALARS[node.type]
        return shape
    shape.opened = False
    if node.type in ("object", ""):
        shape.is_map = True
        shape.atomic = node.map_type == "atomic"
    if node.type in ("array", ""):
        shape.is_list = True
        if node.list_type == "map":
            shape.listing, shape.keys = KEYED, node.keys
            shape.key = node.keys[0] if len(node.keys) == 1 else ""
        elif node.list_type == "set":
            shape.listing = SET
    if node.type == "":
        shape.scalar = "untyped"
    if node.go is not None and node.go.kind == "Quantity":
        shape.is_map = shape.is_list = False
    return shape
