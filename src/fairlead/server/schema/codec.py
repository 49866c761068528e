"""What Go's JSON decoding into a built-in type and encoding back makes of an object.

A real server keeps built-in objects as Go structs: unknown fields vanish, nulls and empty values become absent,
absent structs become empty ones, quantities and times take their canonical form, a wrong type is a 400. One walk does
all of that; it runs on every write, so the common case takes the straight path and paths are only worked out when
there is something to report.
"""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairlead.server.golang import base64 as gobase64
from fairlead.server.schema import builtin, empty_values, quantity, times
from fairlead.server.schema.nodes import Node

_INT_RANGES = {"int32": 2**31, "int64": 2**63, "int": 2**63}


@dataclass(frozen=True, slots=True)
class Decoded:
    object: dict[str, Any]
    unknown: list[str]  # paths of fields that the type does not have, in document order


class DecodeError(Exception):
    """The object does not fit its Go type; the message is that of Go's JSON decoder.

    `restored` is the message where no JSON is decoded but a map made into an object, as strategic merge does.
    `passing` says that the decoder goes on after it, and tells of it where nothing stops it later.
    """

    def __init__(self, message: str, restored: str = "", *, passing: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.restored = restored or message
        self.passing = passing


class _WrongType(DecodeError):
    """A value of the wrong JSON type; the structs around it add where on the way up."""

    def __init__(self, value: Any, go_type: str, kind: str = "", *, literal: bool = False) -> None:
        super().__init__("", passing=bool(kind))
        self.value, self.go_type, self.kind, self.struct, self.path = value, go_type, kind, "", ""
        self.shown = _literal(value) if literal else _word(value)

    def under(self, struct: str, field: str) -> None:
        self.struct = self.struct or struct
        self.path = f"{field}.{self.path}" if self.path else field

    def told(self) -> DecodeError:
        place = f"Go struct field {self.struct}.{self.path}" if self.struct else "Go value"
        return DecodeError(f"json: cannot unmarshal {self.shown} into {place} of type {self.go_type}", self._restored())

    def _restored(self) -> str:
        source = _SOURCES.get(type(self.value), "invalid")
        if not self.kind:  # a type that decodes itself
            return f"json: cannot unmarshal {self.shown} into Go value of type {self.go_type}"
        if self.kind in ("slice", "map"):
            return f"cannot restore {self.kind} from {source}"
        if self.kind == "struct":
            return f"cannot restore struct from: {source}"
        if (source, self.kind) in (("int64", "string"), ("float64", "int32"), ("float64", "int64")):
            return f"cannot convert {source} to {self.go_type}"
        return f"unrecognized type: {self.kind}"


def decode(node: Node, value: Any) -> Decoded:
    """Decode a JSON value as the struct of `node`. Raises DecodeError. The input is not changed."""
    unknown: list[str] = []
    try:
        if value is None:
            return Decoded(_struct(node, {}, unknown), [])
        made = _struct(node, value, unknown)
    except DecodeError as error:
        raise _told(_overtaking(node, value, error), error) from None
    if unknown:  # what is odd is looked for anew, as it is rarely there
        return Decoded(empty_values.keep_in_atomic_lists(node, value, made), list(_unknown(node, value, "")))
    return Decoded(made, unknown)


def _told(error: DecodeError, first: DecodeError) -> DecodeError:
    told = error.told() if isinstance(error, _WrongType) else error
    before = first.told() if isinstance(first, _WrongType) else first
    return DecodeError(told.message, before.restored)


def _overtaking(node: Node, value: Any, first: DecodeError) -> DecodeError:
    """What Go's decoder ends with: it goes on after a wrong type, but stops where a type that decodes itself fails."""
    if not first.passing:
        return first
    try:
        _stop(node, value)
    except DecodeError as error:
        return error
    return first


def _stop(node: Node, value: Any) -> None:
    """Raise what is wrong with the first value, in document order, whose type decodes itself."""
    kind = node.go.kind
    if kind in _BY_THEMSELVES:
        _alone(node, value)
    elif kind == "struct" and type(value) is dict:
        for key, inner in value.items():
            field = node.fields.get(key)
            if field is None or inner is None:
                continue
            try:
                _stop(field, inner)
            except _WrongType as error:
                error.under(node.go.struct, field.go.inlined + key)
                raise
    elif (kind == "list" and type(value) is list) or (kind == "map" and type(value) is dict):
        below = node.items if kind == "list" else node.values
        for inner in value.values() if type(value) is dict else value:
            if below is not None and inner is not None:
                _stop(below, inner)


def _alone(node: Node, value: Any) -> None:
    try:
        _DECODERS[node.go.kind](node, value, [])
    except DecodeError as error:
        props = builtin.schema_of_type("apiextensions.v1.JSONSchemaProps")
        raise _overtaking(props, value, error) if type(value) is dict else error from None


def _struct(node: Node, value: Any, unknown: list[str]) -> dict[str, Any]:
    go = node.go
    if type(value) is not dict:
        raise _WrongType(value, go.type.lstrip("*"), "struct")
    fields = node.fields
    made: dict[str, Any] = {}
    for key, inner in value.items():
        field = fields.get(key)
        if field is None:
            unknown.append(key)
            continue
        if inner is None:
            continue
        facts = field.go
        kind = facts.kind
        if kind == "string" and type(inner) is str:
            if inner or not facts.omit_empty or facts.pointer:
                made[key] = inner
            continue
        try:
            inner = _DECODERS[kind](field, inner, unknown)
        except _WrongType as error:
            error.under(go.struct, facts.inlined + key)
            raise
        if facts.pointer:
            made[key] = inner
        elif kind == "struct" or kind in _WHOLE:
            if not (facts.omit_zero and inner == zero_value(field)):
                made[key] = inner
        elif inner or not facts.omit_empty:
            made[key] = inner
        elif kind == "list" or kind == "map":
            unknown.append("")  # not unknown, but odd
    for key, empty in go.fill if go.fill is not None else _fill(node):
        if key not in made:
            made[key] = empty
    return made


def zero_value(node: Node) -> Any:
    """What Go writes for the zero value of this type."""
    go = node.go
    if go.pointer:
        return None
    if go.kind == "struct":
        return dict(go.fill if go.fill is not None else _fill(node))
    return _ZEROS.get(go.kind)


def _fill(node: Node) -> tuple[tuple[str, Any], ...]:
    """The fields of a struct that Go writes although nothing was given."""
    made: list[tuple[str, Any]] = []
    for key, field in node.fields.items():
        go = field.go
        plain = go.pointer or not (go.kind == "struct" or go.kind in _WHOLE)
        if not (go.omit_zero or (go.omit_empty and plain)):
            made.append((key, zero_value(field)))
    fill = node.go.fill = tuple(made)
    return fill


def _list(node: Node, value: Any, unknown: list[str]) -> Any:
    if type(value) is not list:
        raise _WrongType(value, node.go.type.lstrip("*"), "slice")
    items = node.items
    assert items is not None
    kind = items.go.kind
    if kind == "string":
        for item in value:
            if type(item) is not str:
                return ["" if item is None else _string(items, item, unknown) for item in value]
        return value
    one = _DECODERS[kind]
    return [zero_value(items) if item is None else one(items, item, unknown) for item in value]


def _map(node: Node, value: Any, unknown: list[str]) -> Any:
    if type(value) is not dict:
        raise _WrongType(value, node.go.type.lstrip("*"), "map")
    values = node.values
    assert values is not None
    kind = values.go.kind
    if kind == "string":
        for inner in value.values():
            if type(inner) is not str:
                return {k: "" if v is None else _string(values, v, unknown) for k, v in value.items()}
        return value
    one = _DECODERS[kind]
    if node.go.type == "v1.ResourceList":
        return {key: "0" if inner is None else _resource(inner) for key, inner in value.items()}
    nothing = "" if kind == "bytes" else zero_value(values)  # stored nil, bytes come back empty
    return {key: nothing if inner is None else one(values, inner, unknown) for key, inner in value.items()}


def _string(node: Node, value: Any, unknown: list[str]) -> str:
    if type(value) is not str:
        raise _WrongType(value, node.go.type.lstrip("*"), "string")
    return value


def expect_string(value: Any) -> None:
    """Hold a value to be a string. Raises DecodeError."""
    if type(value) is not str:
        raise _WrongType(value, "string", "string").told()


def _bool(node: Node, value: Any, unknown: list[str]) -> bool:
    if type(value) is not bool:
        raise _WrongType(value, node.go.type.lstrip("*"), "bool")
    return value


def _int(node: Node, value: Any, unknown: list[str]) -> int:
    if type(value) is not int:
        raise _WrongType(value, node.go.type.lstrip("*"), node.go.kind, literal=True)
    limit = _INT_RANGES.get(node.go.kind, 2**63)
    if not -limit <= value < limit:
        raise _WrongType(value, node.go.type.lstrip("*"), node.go.kind, literal=True)
    return value


def _float(node: Node, value: Any, unknown: list[str]) -> float:
    if type(value) is not float and type(value) is not int:
        raise _WrongType(value, node.go.type.lstrip("*"), "float64")
    return int(value) if type(value) is float and value.is_integer() and abs(value) < 2**53 else value


def _bytes(node: Node, value: Any, unknown: list[str]) -> Any:
    if type(value) is list:
        for one in value:
            if type(one) is not int or not 0 <= one < 256:
                raise _WrongType(one, "uint8", "uint8", literal=True)
        return base64.b64encode(bytes(value)).decode()
    if type(value) is not str:
        raise _WrongType(value, "[]uint8", "slice")
    try:
        return gobase64.canonicalize(value)
    except ValueError as error:
        told = str(error)
        raise DecodeError(told, f"error decoding from json: {told}", passing=True) from None


def _quantity(node: Node, value: Any, unknown: list[str], milli: bool = False) -> str:
    text = value.strip() if type(value) is str else _json(value)
    try:
        return quantity.canonicalize(text, milli=milli)
    except quantity.QuantityError as error:
        raise DecodeError(str(error)) from None


def _resource(value: Any) -> str:
    """A quantity of a resource list: defaulting rounds it up to thousandths."""
    return _quantity(_NO_NODE, value, [], True)


_NO_NODE = Node()


def _time(node: Node, value: Any, unknown: list[str]) -> Any:
    if type(value) is not str:
        raise _WrongType(value, "string")
    try:
        return times.normalize_time(value, micro=node.go.kind == "MicroTime")
    except ValueError as error:
        raise DecodeError(str(error)) from None


def _duration(node: Node, value: Any, unknown: list[str]) -> str:
    if type(value) is not str:
        raise _WrongType(value, "string")
    try:
        return times.normalize_duration(value)
    except ValueError as error:
        raise DecodeError(str(error)) from None


def _int_or_string(node: Node, value: Any, unknown: list[str]) -> int | str:
    if type(value) is str:
        return value
    if type(value) is not int or not -(2**31) <= value < 2**31:
        raise _WrongType(value, "int32", literal=True)
    return value


def _raw(node: Node, value: Any, unknown: list[str]) -> Any:
    return value


def _schema_or(node: Node, value: Any, unknown: list[str]) -> Any:
    """The three unions of the CRD types. They decode what is inside leniently."""
    kind = node.go.kind
    props = builtin.schema_of_type("apiextensions.v1.JSONSchemaProps")
    if type(value) is dict:
        return _struct(props, value, unknown)
    if kind == "SchemaOrArray":
        return [_struct(props, item or {}, unknown) for item in value] if type(value) is list and value else None
    if kind == "SchemaOrStrings":
        return [_string(props.fields["type"], item, []) for item in value] if type(value) is list else None
    if type(value) is bool:
        return value
    raise DecodeError("boolean or JSON schema expected")


def _unknown(node: Node, value: Any, path: str) -> Any:
    """Yield the paths of unknown fields, in document order. Only walked when there are some."""
    kind = node.go.kind
    if type(value) is dict and kind == "struct":
        for key, inner in value.items():
            field = node.fields.get(key)
            here = f"{path}.{key}" if path else key
            if field is None:
                yield here
            else:
                yield from _unknown(field, inner, here)
    elif type(value) is dict and kind == "map" and node.values is not None:
        for key, inner in value.items():
            yield from _unknown(node.values, inner, f"{path}.{key}" if path else key)
    elif type(value) is list and node.items is not None:
        for index, inner in enumerate(value):
            yield from _unknown(node.items, inner, f"{path}[{index}]")


def _word(value: Any) -> str:
    """What Go's decoder calls a JSON value."""
    return _WORDS.get(type(value), "null")


def _literal(value: Any) -> str:
    return f"number {_json(value)}" if type(value) in (int, float) else _word(value)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


_SOURCES: dict[type, str] = {
    bool: "bool", int: "int64", float: "float64", str: "string", list: "slice", dict: "map",
}  # fmt: skip
_WORDS: dict[type, str] = {
    bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object",
}  # fmt: skip
# Go structs that encode themselves: never empty, so omitempty does not leave them out.
_WHOLE = frozenset({"Time", "MicroTime", "Duration", "Quantity", "IntOrString", "Raw", "FieldsV1"})
_BY_THEMSELVES = _WHOLE | {"SchemaOrBool", "SchemaOrArray", "SchemaOrStrings"}
_ZEROS: dict[str, Any] = {
    "string": "", "bool": False, "int": 0, "int32": 0, "int64": 0, "uint8": 0, "float64": 0,
    "Quantity": "0", "IntOrString": 0, "Duration": "0s", "SchemaOrBool": False,
}  # fmt: skip
_DECODERS: dict[str, Callable[[Node, Any, list[str]], Any]] = {
    "struct": _struct, "list": _list, "map": _map, "string": _string, "bool": _bool, "bytes": _bytes,
    "int": _int, "int32": _int, "int64": _int, "uint8": _int, "float64": _float,
    "Quantity": _quantity, "Time": _time, "MicroTime": _time, "Duration": _duration, "IntOrString": _int_or_string,
    "Raw": _raw, "FieldsV1": _raw, "JSON": _raw,
    "SchemaOrBool": _schema_or, "SchemaOrArray": _schema_or, "SchemaOrStrings": _schema_or,
}  # fmt: skip
