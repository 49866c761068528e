"""Messages that JSON does not show as messages: times, quantities, unions, embedded JSON. And the envelope's own.

Each has its fields, as `builtin.json` writes those of the other types, and most a way to become what JSON shows.
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


def _facts(*fields: tuple[str, str, str]) -> list[dict[str, str]]:
    """Fields in the order of their numbers: JSON name, Go name, type."""
    return [{"n": key, "g": go, "t": type_, "p": f",{at}"} for at, (key, go, type_) in enumerate(fields, 1)]


FIELDS: Final[dict[str, list[dict[str, str]]]] = {
    "runtime.TypeMeta": _facts(("apiVersion", "APIVersion", "string"), ("kind", "Kind", "string")),
    "runtime.Unknown": _facts(
        ("typeMeta", "TypeMeta", "runtime.TypeMeta"), ("raw", "Raw", "bytes"),
        ("contentEncoding", "ContentEncoding", "string"), ("contentType", "ContentType", "string"),
    ),
    "resource.Quantity": _facts(("string", "String_", "string")),
    "meta.v1.Timestamp": _facts(("seconds", "Seconds", "int64"), ("nanos", "Nanos", "int32")),
    "meta.v1.Duration": _facts(("duration", "Duration", "int64")),
    "meta.v1.FieldsV1": _facts(("raw", "Raw", "bytes")),
    "runtime.RawExtension": _facts(("raw", "Raw", "bytes")),
    "intstr.IntOrString": _facts(
        ("type", "Type", "int64"), ("intVal", "IntVal", "int32"), ("strVal", "StrVal", "string")
    ),
    "v1.JSONSchemaPropsOrBool": _facts(("allows", "Allows", "bool"), ("schema", "Schema", _SCHEMA)),
    "v1.JSONSchemaPropsOrArray": _facts(("schema", "Schema", _SCHEMA), ("schemas", "JSONSchemas", f"[]{_SCHEMA[1:]}")),
    "v1.JSONSchemaPropsOrStringArray": _facts(("schema", "Schema", _SCHEMA), ("property", "Property", "[]string")),
    "v1.ExtraValue": _facts(("items", "Items", "[]string")),
}  # fmt: skip


def _time(made: Object) -> str | None:
    return _moment(made.get("seconds", 0) * 10**6, "seconds")


def _micro_time(made: Object) -> str | None:
    nanos = made.get("nanos", 0)
    micros = -(-nanos // 1000) if nanos < 0 else nanos // 1000
    return _moment(made.get("seconds", 0) * 10**6 + micros, "microseconds")


def _moment(micros: int, precision: str) -> str | None:
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    except OverflowError:
        raise ProtoError("a time is out of range: years 1 to 9999 can be told") from None
    if moment == _ZERO:
        return None
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


_ZERO = datetime(1, 1, 1, tzinfo=UTC)


def _quantity(made: Object) -> str:
    if "string" not in made:
        return "0"
    text: str = made["string"]
    try:
        quantity.parse(text)
    except quantity.QuantityError as error:
        raise ProtoError(str(error)) from None
    return text


def _int_or_string(made: Object) -> int | str:
    chosen = made.get("type", 0)
    if chosen not in (0, 1):
        raise ProtoError("impossible IntOrString.Type")
    found: int | str = made.get("strVal", "") if chosen else made.get("intVal", 0)
    return found


def _json(made: Object) -> Any:
    raw = base64.b64decode(made.get("raw", ""))
    if not raw:
        return None
    try:
        return encoding.decode(raw)[0]
    except encoding.BadJSON as error:
        raise ProtoError(str(error)) from None


def _fields_v1(made: Object) -> Any:
    try:
        return _json(made)
    except ProtoError:  # what a client says of ownership is not looked at before it is used
        return None


def _or_bool(made: Object) -> Any:
    return made.get("schema", made.get("allows", False))


def _or_array(made: Object) -> Any:
    return made.get("schemas") or made.get("schema")


def _or_strings(made: Object) -> Any:
    return made.get("property") or made.get("schema")


# Kind in the table -> its message, and what JSON shows of it.
LEAVES: Final[dict[str, tuple[str, Callable[[Object], Any]]]] = {
    "Quantity": ("resource.Quantity", _quantity),
    "Time": ("meta.v1.Timestamp", _time),
    "MicroTime": ("meta.v1.Timestamp", _micro_time),
    "Duration": ("meta.v1.Duration", lambda made: times.format_duration(made.get("duration", 0))),
    "IntOrString": ("intstr.IntOrString", _int_or_string),
    "Raw": ("runtime.RawExtension", _json),
    "FieldsV1": ("meta.v1.FieldsV1", _fields_v1),
    "SchemaOrBool": ("v1.JSONSchemaPropsOrBool", _or_bool),
    "SchemaOrArray": ("v1.JSONSchemaPropsOrArray", _or_array),
    "SchemaOrStrings": ("v1.JSONSchemaPropsOrStringArray", _or_strings),
    "list": ("v1.ExtraValue", lambda made: made.get("items", [])),  # a list as the value of a map
}
