"""Schemas of the built-in kinds, compiled on first use from `builtin.json`, which scripts/schemas generates.

A process reads the table once. Each Go type compiles once, and all kinds share its fields.
"""

from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from fairlead.server.schema.nodes import MISSING, Node

ANY: Final = ("Raw", "FieldsV1", "JSON", "SchemaOrBool", "SchemaOrArray", "SchemaOrStrings")
_SCALARS: Final = {
    "string": "string",
    "bool": "boolean",
    "int": "integer",
    "int32": "integer",
    "int64": "integer",
    "uint8": "integer",
    "float64": "number",
    "bytes": "string",
    "Time": "string",
    "MicroTime": "string",
    "Duration": "string",
    "Quantity": "",  # a string or a number
    "IntOrString": "",
}
_GO_NAMES: Final = {
    "bytes": "[]uint8",
    "Time": "v1.Time",
    "MicroTime": "v1.MicroTime",
    "Duration": "v1.Duration",
    "Quantity": "resource.Quantity",
    "IntOrString": "intstr.IntOrString",
    "FieldsV1": "v1.FieldsV1",
    "Raw": "runtime.RawExtension",
    "JSON": "v1.JSON",
    "SchemaOrBool": "v1.JSONSchemaPropsOrBool",
    "SchemaOrArray": "v1.JSONSchemaPropsOrArray",
    "SchemaOrStrings": "v1.JSONSchemaPropsOrStringArray",
}


class Go:
    """The Go type of one field of a built-in object, which decoding, encoding and strategic merge need."""

    __slots__ = (
        "fill", "inlined", "is_pointer", "kind", "merge_key", "name", "omits_empty", "omits_zero", "proto", "strategy",
        "struct", "type",
    )  # fmt: skip

    def __init__(self, kind: str, type: str) -> None:  # noqa: A002 - Go's word
        self.kind = kind  # struct, list, map, bytes, string, bool, int32, int64, float64, Quantity, Time, ...
        self.type = type  # As Go prints it: v1.PullPolicy, []v1.Container, *int32.
        self.struct = ""  # A struct's name without its package.
        self.name = ""  # A struct's key in the table.
        self.fill: tuple[tuple[str, Any], ...] | None = None  # A struct's fields that Go always writes (codec.py).
        self.inlined = ""  # The inlined struct that the field comes from. Error messages name it.
        self.is_pointer = False
        self.omits_empty = False
        self.omits_zero = False
        self.strategy: tuple[str, ...] = ()  # patchStrategy: merge, replace, retainKeys
        self.merge_key = ""
        self.proto: tuple[str, int] | None = None  # Wire type and field number.


@cache
def table() -> dict[str, Any]:
    """Return the content of `builtin.json`: `kinds` (discovery by group/version), `groups`, `roots` and `types`."""
    decoded: dict[str, Any] = msgspec.json.decode((files("fairlead.server.schema") / "builtin.json").read_bytes())
    return decoded


@cache
def schema_of_kind(group: str, version: str, kind: str) -> Node:
    """Return the schema of a built-in kind. Raises KeyError if there is no such kind."""
    api_version = f"{group}/{version}" if group else version
    return _compile(table()["roots"][f"{api_version}/{kind}"])


@cache
def schema_of_type(name: str) -> Node:
    """Return the schema of a Go type by its name in `builtin.json`, such as meta.v1.DeleteOptions or []string."""
    return _compile(name)


_structs: dict[str, dict[str, Node]] = {}


class _Struct(Node):
    """A struct that compiles its fields on first access, because a process uses few of the many types."""

    __slots__ = ()

    @property
    def fields(self) -> dict[str, Node]:
        fields = _build_fields(self.go.name)
        self.__class__ = Node  # type: ignore[assignment]  # Further accesses read the attribute.
        self.fields = fields
        return fields

    @fields.setter
    def fields(self, value: dict[str, Node]) -> None:
        pass


def _build_fields(name: str) -> dict[str, Node]:
    """Return the schemas of a struct's fields, including those of its inlined structs."""
    fields = _structs.get(name)
    if fields is None:
        fields = _structs[name] = {}
        _add_fields(name, "", fields)
    return fields


def _add_fields(name: str, inlined: str, fields: dict[str, Node]) -> None:
    for row in table()["types"][name]["f"]:
        if "n" in row:
            fields[row["n"]] = _build_field(row, inlined)
        else:
            _add_fields(row["t"], f"{inlined}{row['t'].split('.')[-1]}.", fields)


def _build_field(row: dict[str, Any], inlined: str) -> Node:
    """Return the schema of a field from its row in `builtin.json`. scripts/schemas/main.go documents the short keys."""
    field = _compile(row["t"])
    go_type: Go = field.go
    go_type.inlined = inlined
    omit = row.get("o", "")
    go_type.omits_empty, go_type.omits_zero = "e" in omit, "z" in omit
    go_type.strategy = tuple(row["ps"].split(",")) if "ps" in row else ()
    go_type.merge_key = row.get("mk", "")
    if "p" in row:
        wire_type, _, number = row["p"].partition(",")
        go_type.proto = wire_type, int(number)
    field.list_type = row.get("l", "atomic")
    field.keys = tuple(row.get("k", ()))
    if "a" in row:
        field.map_type = "atomic" if row["a"] else "granular"
    field.default = row.get("d", MISSING)
    return field


def _compile(name: str) -> Node:
    """Return a new node for a type name. Nodes of the same struct share only the nodes of the fields."""
    if name.startswith("*"):
        target = _compile(name[1:])
        target.go.is_pointer = True
        target.go.type = "*" + target.go.type
        return target
    name, _, alias = name.partition("=")
    if name.startswith("[]"):
        items = _compile(name[2:])
        return Node("array", items=items, go=Go("list", alias or "[]" + items.go.type))
    if name.startswith("{"):
        key, _, value = name[1:].partition("}")
        values = _compile(value)
        return Node("object", values=values, go=Go("map", alias or f"map[{key or 'string'}]{values.go.type}"))
    scalar, _, alias = name.partition(":")
    if scalar in _SCALARS:
        go_type = Go(scalar, alias or _GO_NAMES.get(scalar, scalar))
        return Node(_SCALARS[scalar], int_or_string=scalar == "IntOrString", go=go_type)
    if scalar in ANY:
        is_object = scalar in ("Raw", "FieldsV1")
        return Node("object" if is_object else "", preserve=True, go=Go(scalar, _GO_NAMES[scalar]))
    words = name.split(".")
    go_type = Go("struct", ".".join(words[-2:]))
    go_type.struct, go_type.name = words[-1], name
    row = table()["types"][name]
    return _Struct("object", map_type="atomic" if row.get("a") else "granular", go=go_type)
