"""Schemas of the built-in kinds, compiled from `builtin.json` (made by scripts/schemas) when first asked for.

The table is read once a process; each Go type is compiled once and shared by every kind that holds it.
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
    """Facts of the Go type behind one place of a built-in object, for decoding, encoding and strategic merge."""

    __slots__ = (
        "fill", "inlined", "kind", "merge_key", "name", "omit_empty", "omit_zero", "pointer", "proto", "strategy",
        "struct", "type",
    )  # fmt: skip

    def __init__(self, kind: str, type: str) -> None:  # noqa: A002 - Go's own word
        self.kind = kind  # struct, list, map, bytes, string, bool, int32, int64, float64, Quantity, Time, ...
        self.type = type  # as Go prints it: v1.PullPolicy, []v1.Container, *int32
        self.struct = ""  # of a struct: its bare name
        self.name = ""  # of a struct: its key in the table
        self.fill: tuple[tuple[str, Any], ...] | None = None  # of a struct: what encoding adds to it (codec.py)
        self.inlined = ""  # the embedded struct that brought a field in: errors name it
        self.pointer = False
        self.omit_empty = False
        self.omit_zero = False
        self.strategy: tuple[str, ...] = ()  # patchStrategy: merge, replace, retainKeys
        self.merge_key = ""
        self.proto: tuple[str, int] | None = None  # wire type and field number


@cache
def table() -> dict[str, Any]:
    """The table of facts, whole: `kinds` (discovery by group/version), `groups`, `roots` and `types`."""
    made: dict[str, Any] = msgspec.json.decode((files("fairlead.server.schema") / "builtin.json").read_bytes())
    return made


@cache
def schema_of_kind(group: str, version: str, kind: str) -> Node:
    """The schema of a built-in kind. KeyError where there is none."""
    api_version = f"{group}/{version}" if group else version
    return _compile(table()["roots"][f"{api_version}/{kind}"])


@cache
def schema_of_type(name: str) -> Node:
    """The schema of a Go type as the table names it: meta.v1.DeleteOptions, []string."""
    return _compile(name)


_structs: dict[str, dict[str, Node]] = {}


class _Struct(Node):
    """A struct whose fields are compiled when first looked at: few of the many types are ever used."""

    __slots__ = ()

    @property
    def fields(self) -> dict[str, Node]:
        made = _fields(self.go.name)
        self.__class__ = Node  # type: ignore[assignment]  # from now on an ordinary node
        self.fields = made
        return made

    @fields.setter
    def fields(self, value: dict[str, Node]) -> None:
        pass


def _fields(name: str) -> dict[str, Node]:
    """The fields of a struct, those of the structs it embeds among them."""
    made = _structs.get(name)
    if made is None:
        made = _structs[name] = {}
        _collect(name, "", made)
    return made


def _collect(name: str, inlined: str, made: dict[str, Node]) -> None:
    for fact in table()["types"][name]["f"]:
        if "n" in fact:
            made[fact["n"]] = _field(fact, inlined)
        else:
            _collect(fact["t"], f"{inlined}{fact['t'].split('.')[-1]}.", made)


def _field(fact: dict[str, Any], inlined: str) -> Node:
    made = _compile(fact["t"])
    go: Go = made.go
    go.inlined = inlined
    omit = fact.get("o", "")
    go.omit_empty, go.omit_zero = "e" in omit, "z" in omit
    go.strategy = tuple(fact["ps"].split(",")) if "ps" in fact else ()
    go.merge_key = fact.get("mk", "")
    if "p" in fact:
        wire, _, number = fact["p"].partition(",")
        go.proto = wire, int(number)
    made.list_type = fact.get("l", "atomic")
    made.keys = tuple(fact.get("k", ()))
    if "a" in fact:
        made.map_type = "atomic" if fact["a"] else "granular"
    made.default = fact.get("d", MISSING)
    return made


def _compile(name: str) -> Node:
    """A fresh node for a type name; only the fields of structs are shared."""
    if name.startswith("*"):
        made = _compile(name[1:])
        made.go.pointer = True
        made.go.type = "*" + made.go.type
        return made
    name, _, own = name.partition("=")
    if name.startswith("[]"):
        items = _compile(name[2:])
        return Node("array", items=items, go=Go("list", own or "[]" + items.go.type))
    if name.startswith("{"):
        key, _, value = name[1:].partition("}")
        values = _compile(value)
        return Node("object", values=values, go=Go("map", own or f"map[{key or 'string'}]{values.go.type}"))
    scalar, _, alias = name.partition(":")
    if scalar in _SCALARS:
        go = Go(scalar, alias or _GO_NAMES.get(scalar, scalar))
        return Node(_SCALARS[scalar], int_or_string=scalar == "IntOrString", go=go)
    if scalar in ANY:
        whole = scalar in ("Raw", "FieldsV1")
        return Node("object" if whole else "", preserve=True, go=Go(scalar, _GO_NAMES[scalar]))
    words = name.split(".")
    go = Go("struct", ".".join(words[-2:]))
    go.struct, go.name = words[-1], name
    facts = table()["types"][name]
    return _Struct("object", map_type="atomic" if facts.get("a") else "granular", go=go)
