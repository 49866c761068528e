"""Decode built-in objects as Go does when it decodes JSON into a struct and encodes the struct again.

A real server keeps built-in objects as Go structs. So unknown fields disappear, nulls and empty values become absent,
absent structs become empty structs, and quantities and times get their canonical form. A wrong type is a 400. One walk
does all of that. It runs on every write, so it computes field paths only when there is something to report.
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
    """A decoded object and the paths of its unknown fields, in document order."""

    object: dict[str, Any]
    unknown: list[str]


class DecodeError(Exception):
    """Raised if an object does not fit its Go type. The message is that of Go's JSON decoder.

    `from_map` is Go's message if it converts a map instead of JSON, as strategic merge patch does. `continues` says
    that Go's decoder continues after this error. It then reports a later error that stops it instead.
    """

    def __init__(self, message: str, from_map: str = "", *, continues: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.from_map = from_map or message
        self.continues = continues


class _WrongType(DecodeError):
    """Raised for a value of the wrong JSON type. The structs around the value add the field path with `add_field`."""

    def __init__(self, value: Any, go_type: str, kind: str = "", *, shows_literal: bool = False) -> None:
        super().__init__("", continues=bool(kind))
        self.value, self.go_type, self.kind, self.struct, self.path = value, go_type, kind, "", ""
        self.source = _describe_value(value) if shows_literal else _get_json_type_name(value)

    def add_field(self, struct: str, field: str) -> None:
        self.struct = self.struct or struct
        self.path = f"{field}.{self.path}" if self.path else field

    def to_decode_error(self) -> DecodeError:
        target = f"Go struct field {self.struct}.{self.path}" if self.struct else "Go value"
        message = f"json: cannot unmarshal {self.source} into {target} of type {self.go_type}"
        return DecodeError(message, self._format_from_map_message())

    def _format_from_map_message(self) -> str:
        source = _GO_TYPES.get(type(self.value), "invalid")
        if not self.kind:  # A type with its own UnmarshalJSON.
            return f"json: cannot unmarshal {self.source} into Go value of type {self.go_type}"
        if self.kind in ("slice", "map"):
            return f"cannot restore {self.kind} from {source}"
        if self.kind == "struct":
            return f"cannot restore struct from: {source}"
        if (source, self.kind) in (("int64", "string"), ("float64", "int32"), ("float64", "int64")):
            return f"cannot convert {source} to {self.go_type}"
        return f"unrecognized type: {self.kind}"


def decode(node: Node, value: Any) -> Decoded:
    """Decode a JSON value as the Go struct that `node` describes.

    Return the object and the paths of its unknown fields. The input is not changed. Raises DecodeError if the value
    does not fit the struct.
    """
    unknown: list[str] = []
    try:
        if value is None:
            return Decoded(_decode_struct(node, {}, unknown), [])
        obj = _decode_struct(node, value, unknown)
    except DecodeError as error:
        raise _combine_errors(_find_final_error(node, value, error), error) from None
    if unknown:  # Unknown fields and empty values are rare, so a second walk finds their paths.
        return Decoded(empty_values.keep_in_atomic_lists(node, value, obj), list(_find_unknown(node, value, "")))
    return Decoded(obj, unknown)


def _combine_errors(final: DecodeError, first: DecodeError) -> DecodeError:
    """Return an error with the JSON message of `final` and the map message of `first`."""
    final = final.to_decode_error() if isinstance(final, _WrongType) else final
    first = first.to_decode_error() if isinstance(first, _WrongType) else first
    return DecodeError(final.message, first.from_map)


def _find_final_error(node: Node, value: Any, first: DecodeError) -> DecodeError:
    """Return the error that Go reports.

    Go's decoder continues after a wrong type, but an error of UnmarshalJSON stops it.
    """
    if not first.continues:
        return first
    try:
        _raise_unmarshal_error(node, value)
    except DecodeError as error:
        return error
    return first


def _raise_unmarshal_error(node: Node, value: Any) -> None:
    """Raise the first error, in document order, of a value whose Go type has its own UnmarshalJSON."""
    kind = node.go.kind
    if kind in _WITH_UNMARSHAL_JSON:
        _decode_with_unmarshal_json(node, value)
    elif kind == "struct" and type(value) is dict:
        for key, inner in value.items():
            field = node.fields.get(key)
            if field is None or inner is None:
                continue
            try:
                _raise_unmarshal_error(field, inner)
            except _WrongType as error:
                error.add_field(node.go.struct, field.go.inlined + key)
                raise
    elif (kind == "list" and type(value) is list) or (kind == "map" and type(value) is dict):
        child = node.items if kind == "list" else node.values
        for inner in value.values() if type(value) is dict else value:
            if child is not None and inner is not None:
                _raise_unmarshal_error(child, inner)


def _decode_with_unmarshal_json(node: Node, value: Any) -> None:
    try:
        _DECODERS[node.go.kind](node, value, [])
    except DecodeError as error:
        props = builtin.schema_of_type("apiextensions.v1.JSONSchemaProps")
        raise _find_final_error(props, value, error) if type(value) is dict else error from None


def _decode_struct(node: Node, value: Any, unknown: list[str]) -> dict[str, Any]:
    go_type = node.go
    if type(value) is not dict:
        raise _WrongType(value, go_type.type.lstrip("*"), "struct")
    fields = node.fields
    result: dict[str, Any] = {}
    for key, inner in value.items():
        field = fields.get(key)
        if field is None:
            unknown.append(key)
            continue
        if inner is None:
            continue
        field_go = field.go
        kind = field_go.kind
        if kind == "string" and type(inner) is str:
            if inner or not field_go.omits_empty or field_go.is_pointer:
                result[key] = inner
            continue
        try:
            inner = _DECODERS[kind](field, inner, unknown)
        except _WrongType as error:
            error.add_field(go_type.struct, field_go.inlined + key)
            raise
        if field_go.is_pointer:
            result[key] = inner
        elif kind == "struct" or kind in _NEVER_EMPTY:
            if not (field_go.omits_zero and inner == zero_value(field)):
                result[key] = inner
        elif inner or not field_go.omits_empty:
            result[key] = inner
        elif kind == "list" or kind == "map":
            unknown.append("")  # The field is known, but `decode` must look at its empty value.
    for key, empty in go_type.fill if go_type.fill is not None else _compute_fill(node):
        if key not in result:
            result[key] = empty
    return result


def zero_value(node: Node) -> Any:
    """Return the JSON that Go writes for the zero value of this type."""
    go_type = node.go
    if go_type.is_pointer:
        return None
    if go_type.kind == "struct":
        return dict(go_type.fill if go_type.fill is not None else _compute_fill(node))
    return _ZEROS.get(go_type.kind)


def _compute_fill(node: Node) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a struct that Go writes even if they are not set, with their values."""
    fields: list[tuple[str, Any]] = []
    for key, field in node.fields.items():
        go_type = field.go
        can_be_empty = go_type.is_pointer or not (go_type.kind == "struct" or go_type.kind in _NEVER_EMPTY)
        if not (go_type.omits_zero or (go_type.omits_empty and can_be_empty)):
            fields.append((key, zero_value(field)))
    fill = node.go.fill = tuple(fields)
    return fill


def _decode_list(node: Node, value: Any, unknown: list[str]) -> Any:
    if type(value) is not list:
        raise _WrongType(value, node.go.type.lstrip("*"), "slice")
    items = node.items
    assert items is not None
    kind = items.go.kind
    if kind == "string":
        for item in value:
            if type(item) is not str:
                return ["" if item is None else _decode_string(items, item, unknown) for item in value]
        return value
    decode_item = _DECODERS[kind]
    return [zero_value(items) if item is None else decode_item(items, item, unknown) for item in value]


def _decode_map(node: Node, value: Any, unknown: list[str]) -> Any:
    if type(value) is not dict:
        raise _WrongType(value, node.go.type.lstrip("*"), "map")
    values = node.values
    assert values is not None
    kind = values.go.kind
    if kind == "string":
        for inner in value.values():
            if type(inner) is not str:
                return {k: "" if v is None else _decode_string(values, v, unknown) for k, v in value.items()}
        return value
    decode_value = _DECODERS[kind]
    if node.go.type == "v1.ResourceList":
        return {key: "0" if inner is None else _decode_resource_quantity(inner) for key, inner in value.items()}
    null = "" if kind == "bytes" else zero_value(values)  # Nil bytes are empty after storage.
    return {key: null if inner is None else decode_value(values, inner, unknown) for key, inner in value.items()}


def _decode_string(node: Node, value: Any, unknown: list[str]) -> str:
    if type(value) is not str:
        raise _WrongType(value, node.go.type.lstrip("*"), "string")
    return value


def expect_string(value: Any) -> None:
    """Raise DecodeError if the value is not a string."""
    if type(value) is not str:
        raise _WrongType(value, "string", "string").to_decode_error()


def _decode_bool(node: Node, value: Any, unknown: list[str]) -> bool:
    if type(value) is not bool:
        raise _WrongType(value, node.go.type.lstrip("*"), "bool")
    return value


def _decode_int(node: Node, value: Any, unknown: list[str]) -> int:
    if type(value) is not int:
        raise _WrongType(value, node.go.type.lstrip("*"), node.go.kind, shows_literal=True)
    limit = _INT_RANGES.get(node.go.kind, 2**63)
    if not -limit <= value < limit:
        raise _WrongType(value, node.go.type.lstrip("*"), node.go.kind, shows_literal=True)
    return value


def _decode_float(node: Node, value: Any, unknown: list[str]) -> float:
    if type(value) is not float and type(value) is not int:
        raise _WrongType(value, node.go.type.lstrip("*"), "float64")
    return int(value) if type(value) is float and value.is_integer() and abs(value) < 2**53 else value


def _decode_bytes(node: Node, value: Any, unknown: list[str]) -> Any:
    if type(value) is list:
        for byte in value:
            if type(byte) is not int or not 0 <= byte < 256:
                raise _WrongType(byte, "uint8", "uint8", shows_literal=True)
        return base64.b64encode(bytes(value)).decode()
    if type(value) is not str:
        raise _WrongType(value, "[]uint8", "slice")
    try:
        return gobase64.canonicalize(value)
    except ValueError as error:
        raise DecodeError(str(error), f"error decoding from json: {error}", continues=True) from None


def _decode_quantity(node: Node, value: Any, unknown: list[str], is_milli: bool = False) -> str:
    quantity_text = value.strip() if type(value) is str else _format_json(value)
    try:
        return quantity.canonicalize(quantity_text, is_milli=is_milli)
    except quantity.QuantityError as error:
        raise DecodeError(str(error)) from None


def _decode_resource_quantity(value: Any) -> str:
    """Decode a quantity of a resource list, which Go's defaulting rounds up to thousandths."""
    return _decode_quantity(_NO_NODE, value, [], True)


_NO_NODE = Node()


def _decode_time(node: Node, value: Any, unknown: list[str]) -> Any:
    if type(value) is not str:
        raise _WrongType(value, "string")
    try:
        return times.normalize_time(value, is_micro=node.go.kind == "MicroTime")
    except ValueError as error:
        raise DecodeError(str(error)) from None


def _decode_duration(node: Node, value: Any, unknown: list[str]) -> str:
    if type(value) is not str:
        raise _WrongType(value, "string")
    try:
        return times.normalize_duration(value)
    except ValueError as error:
        raise DecodeError(str(error)) from None


def _decode_int_or_string(node: Node, value: Any, unknown: list[str]) -> int | str:
    if type(value) is str:
        return value
    if type(value) is not int or not -(2**31) <= value < 2**31:
        raise _WrongType(value, "int32", shows_literal=True)
    return value


def _keep_raw_value(node: Node, value: Any, unknown: list[str]) -> Any:
    return value


def _decode_schema_union(node: Node, value: Any, unknown: list[str]) -> Any:
    """Decode a union type of CustomResourceDefinition schemas, such as JSONSchemaPropsOrBool.

    The content of the union is decoded leniently.
    """
    kind = node.go.kind
    props = builtin.schema_of_type("apiextensions.v1.JSONSchemaProps")
    if type(value) is dict:
        return _decode_struct(props, value, unknown)
    if kind == "SchemaOrArray":
        return [_decode_struct(props, item or {}, unknown) for item in value] if type(value) is list and value else None
    if kind == "SchemaOrStrings":
        return [_decode_string(props.fields["type"], item, []) for item in value] if type(value) is list else None
    if type(value) is bool:
        return value
    raise DecodeError("boolean or JSON schema expected")


def _find_unknown(node: Node, value: Any, path: str) -> Any:
    """Yield the paths of unknown fields, in document order. Slow: called only if there may be unknown fields."""
    kind = node.go.kind
    if type(value) is dict and kind == "struct":
        for key, inner in value.items():
            field = node.fields.get(key)
            field_path = f"{path}.{key}" if path else key
            if field is None:
                yield field_path
            else:
                yield from _find_unknown(field, inner, field_path)
    elif type(value) is dict and kind == "map" and node.values is not None:
        for key, inner in value.items():
            yield from _find_unknown(node.values, inner, f"{path}.{key}" if path else key)
    elif type(value) is list and node.items is not None:
        for index, inner in enumerate(value):
            yield from _find_unknown(node.items, inner, f"{path}[{index}]")


def _get_json_type_name(value: Any) -> str:
    """Return the name of a value's JSON type in the messages of Go's decoder."""
    return _TYPE_NAMES.get(type(value), "null")


def _describe_value(value: Any) -> str:
    return f"number {_format_json(value)}" if type(value) in (int, float) else _get_json_type_name(value)


def _format_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


_GO_TYPES: dict[type, str] = {
    bool: "bool", int: "int64", float: "float64", str: "string", list: "slice", dict: "map",
}  # fmt: skip
_TYPE_NAMES: dict[type, str] = {
    bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object",
}  # fmt: skip
# Go structs with their own MarshalJSON. A struct is never empty, so omitempty does not omit them.
_NEVER_EMPTY = frozenset({"Time", "MicroTime", "Duration", "Quantity", "IntOrString", "Raw", "FieldsV1"})
_WITH_UNMARSHAL_JSON = _NEVER_EMPTY | {"SchemaOrBool", "SchemaOrArray", "SchemaOrStrings"}
_ZEROS: dict[str, Any] = {
    "string": "", "bool": False, "int": 0, "int32": 0, "int64": 0, "uint8": 0, "float64": 0,
    "Quantity": "0", "IntOrString": 0, "Duration": "0s", "SchemaOrBool": False,
}  # fmt: skip
_DECODERS: dict[str, Callable[[Node, Any, list[str]], Any]] = {
    "struct": _decode_struct, "list": _decode_list, "map": _decode_map,
    "string": _decode_string, "bool": _decode_bool, "bytes": _decode_bytes,
    "int": _decode_int, "int32": _decode_int, "int64": _decode_int, "uint8": _decode_int, "float64": _decode_float,
    "Quantity": _decode_quantity, "IntOrString": _decode_int_or_string,
    "Time": _decode_time, "MicroTime": _decode_time, "Duration": _decode_duration,
    "Raw": _keep_raw_value, "FieldsV1": _keep_raw_value, "JSON": _keep_raw_value,
    "SchemaOrBool": _decode_schema_union,
    "SchemaOrArray": _decode_schema_union,
    "SchemaOrStrings": _decode_schema_union,
}  # fmt: skip
