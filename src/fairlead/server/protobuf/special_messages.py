"""Messages whose JSON is not an object with the same fields: times, quantities, unions and raw JSON.

FIELDS lists their fields in the format of `builtin.json`, and those of the envelope. SPECIAL_MESSAGES has the functions
that convert them to JSON.
"""

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fairlead.server.golang import encoding
from fairlead.server.protobuf.wire import ProtoError
from fairlead.server.schema import quantity, times

Object = dict[str, Any]
_SCHEMA = "*apiextensions.v1.JSONSchemaProps"


def _build_number_fields(*fields: tuple[str, str, str]) -> list[dict[str, str]]:
    """Return rows of FIELDS for (JSON name, Go name, type) tuples in the order of their field numbers."""
    return [{"n": key, "g": go_name, "t": type_, "p": f",{at}"} for at, (key, go_name, type_) in enumerate(fields, 1)]


FIELDS: Final[dict[str, list[dict[str, str]]]] = {
    "runtime.TypeMeta": _build_number_fields(("apiVersion", "APIVersion", "string"), ("kind", "Kind", "string")),
    "runtime.Unknown": _build_number_fields(
        ("typeMeta", "TypeMeta", "runtime.TypeMeta"), ("raw", "Raw", "bytes"),
        ("contentEncoding", "ContentEncoding", "string"), ("contentType", "ContentType", "string"),
    ),
    "resource.Quantity": _build_number_fields(("string", "String_", "string")),
    "meta.v1.Timestamp": _build_number_fields(("seconds", "Seconds", "int64"), ("nanos", "Nanos", "int32")),
    "meta.v1.Duration": _build_number_fields(("duration", "Duration", "int64")),
    "meta.v1.FieldsV1": _build_number_fields(("raw", "Raw", "bytes")),
    "runtime.RawExtension": _build_number_fields(("raw", "Raw", "bytes")),
    "intstr.IntOrString": _build_number_fields(
        ("type", "Type", "int64"), ("intVal", "IntVal", "int32"), ("strVal", "StrVal", "string")
    ),
    "v1.JSONSchemaPropsOrBool": _build_number_fields(("allows", "Allows", "bool"), ("schema", "Schema", _SCHEMA)),
    "v1.JSONSchemaPropsOrArray": _build_number_fields(
        ("schema", "Schema", _SCHEMA), ("schemas", "JSONSchemas", f"[]{_SCHEMA[1:]}")
    ),
    "v1.JSONSchemaPropsOrStringArray": _build_number_fields(
        ("schema", "Schema", _SCHEMA), ("property", "Property", "[]string")
    ),
    "v1.ExtraValue": _build_number_fields(("items", "Items", "[]string")),
}  # fmt: skip


def _convert_time(message: Object) -> str | None:
    return _format_time(message.get("seconds", 0) * 10**6, "seconds")


def _convert_micro_time(message: Object) -> str | None:
    nanos = message.get("nanos", 0)
    microseconds = -(-nanos // 1000) if nanos < 0 else nanos // 1000
    return _format_time(message.get("seconds", 0) * 10**6 + microseconds, "microseconds")


def _format_time(microseconds: int, precision: str) -> str | None:
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    except OverflowError:
        raise ProtoError("a time is out of range: only years 1 to 9999 are supported") from None
    if time == _ZERO:
        return None
    return time.isoformat(timespec=precision).replace("+00:00", "Z")


_ZERO = datetime(1, 1, 1, tzinfo=UTC)


def _convert_quantity(message: Object) -> str:
    if "string" not in message:
        return "0"
    quantity_text: str = message["string"]
    try:
        quantity.parse(quantity_text)
    except quantity.QuantityError as error:
        raise ProtoError(str(error)) from None
    return quantity_text


def _convert_int_or_string(message: Object) -> int | str:
    union_type = message.get("type", 0)
    if union_type not in (0, 1):
        raise ProtoError("impossible IntOrString.Type")
    value: int | str = message.get("strVal", "") if union_type else message.get("intVal", 0)
    return value


def _convert_json(message: Object) -> Any:
    raw = base64.b64decode(message.get("raw", ""))
    if not raw:
        return None
    try:
        return encoding.decode(raw)[0]
    except encoding.BadJSON as error:
        raise ProtoError(str(error)) from None


def _convert_fields_v1(message: Object) -> Any:
    try:
        return _convert_json(message)
    except ProtoError:  # A real server does not decode managedFields here either.
        return None


def _convert_schema_or_bool(message: Object) -> Any:
    return message.get("schema", message.get("allows", False))


def _convert_schema_or_array(message: Object) -> Any:
    return message.get("schemas") or message.get("schema")


def _convert_schema_or_strings(message: Object) -> Any:
    return message.get("property") or message.get("schema")


# For each kind of `builtin.json`: the type of its message, and the function that converts the message to JSON.
SPECIAL_MESSAGES: Final[dict[str, tuple[str, Callable[[Object], Any]]]] = {
    "Quantity": ("resource.Quantity", _convert_quantity),
    "Time": ("meta.v1.Timestamp", _convert_time),
    "MicroTime": ("meta.v1.Timestamp", _convert_micro_time),
    "Duration": ("meta.v1.Duration", lambda message: times.format_duration(message.get("duration", 0))),
    "IntOrString": ("intstr.IntOrString", _convert_int_or_string),
    "Raw": ("runtime.RawExtension", _convert_json),
    "FieldsV1": ("meta.v1.FieldsV1", _convert_fields_v1),
    "SchemaOrBool": ("v1.JSONSchemaPropsOrBool", _convert_schema_or_bool),
    "SchemaOrArray": ("v1.JSONSchemaPropsOrArray", _convert_schema_or_array),
    "SchemaOrStrings": ("v1.JSONSchemaPropsOrStringArray", _convert_schema_or_strings),
    "list": ("v1.ExtraValue", lambda message: message.get("items", [])),  # A list can be the value of a map.
}
