"""`Node`: one compiled part of a schema.

Built-in kinds (from the table in `builtin.json`) and custom resources (from their openAPIV3Schema) compile into the
same nodes. Typed merge, ownership, pruning, defaulting and validation walk an object along its nodes. Nodes do not
change after they are compiled, and all servers of a process share them.
"""

from typing import Any, Final, Literal

MISSING: Final[Any] = object()  # The marker for "no default", because None is a value.

MapType = Literal["granular", "atomic"]
ListType = Literal["atomic", "set", "map"]


class Node:
    """The schema of one value: its type, its children, and how field managers share it.

    type: "object", "array", "string", "integer", "number", "boolean", or "" for anything (int-or-string, RawExtension).
    """

    __slots__ = (
        "constraints",
        "default",
        "embedded",
        "fields",
        "format",
        "go",
        "int_or_string",
        "items",
        "keys",
        "list_type",
        "map_type",
        "merge_schemas",
        "nullable",
        "preserve",
        "type",
        "values",
    )

    def __init__(
        self,
        type: str = "",  # noqa: A002 - the schema's own word
        *,
        fields: "dict[str, Node] | None" = None,
        values: "Node | None" = None,
        items: "Node | None" = None,
        map_type: MapType = "granular",
        list_type: ListType = "atomic",
        keys: tuple[str, ...] = (),
        preserve: bool = False,
        int_or_string: bool = False,
        embedded: bool = False,
        nullable: bool = False,
        format: str = "",  # noqa: A002 - the schema's own word
        default: Any = MISSING,
        constraints: Any = None,
        go: Any = None,
    ) -> None:
        self.type = type
        self.fields: dict[str, Node] = fields if fields is not None else {}  # The declared properties of an object.
        self.values = values  # The schema of every other key (additionalProperties), or None.
        self.items = items  # The schema of the items of a list.
        self.map_type: MapType = map_type
        self.list_type: ListType = list_type
        self.keys = keys  # The fields that identify an item, in a list of type map.
        self.preserve = preserve  # x-kubernetes-preserve-unknown-fields
        self.int_or_string = int_or_string
        self.embedded = embedded  # x-kubernetes-embedded-resource
        self.nullable = nullable
        self.format = format  # A typed merge accepts any scalar for a string with a format.
        self.default = default
        self.constraints = constraints  # A custom resource's structural.Constraints, or None.
        self.merge_schemas: Any = None  # The cache of ownership/merge_schema.py.
        self.go = go  # The builtin.Go of a built-in field, or None.

    def child(self, key: str) -> "Node | None":
        """Return the schema of the value at a key, or None if the schema does not declare the key."""
        return self.fields.get(key) or self.values
