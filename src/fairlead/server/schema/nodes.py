"""The node: one compiled piece of schema.

Built-in kinds (from the table in `builtin.json`) and custom resources (from their openAPIV3Schema) compile into the
same nodes. Whoever walks an object (typed merge, ownership, pruning, defaulting, validation) walks it along these.
Nodes are immutable once compiled and shared between servers.
"""

from typing import Any, Final, Literal

MISSING: Final[Any] = object()  # "no default given", where None is a value

MapType = Literal["granular", "atomic"]
ListType = Literal["atomic", "set", "map"]


class Node:
    """What one place in an object may hold and how writers share it.

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
        self.fields: dict[str, Node] = fields if fields is not None else {}  # declared properties
        self.values = values  # what every other key holds (additionalProperties), or None
        self.items = items  # what a list holds
        self.map_type: MapType = map_type
        self.list_type: ListType = list_type
        self.keys = keys  # of a map list: the fields that identify an item
        self.preserve = preserve  # x-kubernetes-preserve-unknown-fields
        self.int_or_string = int_or_string
        self.embedded = embedded  # x-kubernetes-embedded-resource
        self.nullable = nullable
        self.format = format  # of a string: a typed merge takes any scalar where one is given
        self.default = default
        self.constraints = constraints  # compiled validations of a custom resource (validation.py), or None
        self.merge_schemas: Any = None  # a cache of ownership/merge_schema.py
        self.go = go  # facts of a built-in field's Go type (builtin.py): omitempty, pointer, patch strategy, ...

    def child(self, key: str) -> "Node | None":
        """The node under a key of a map, or None where the schema does not know it."""
        return self.fields.get(key) or self.values
