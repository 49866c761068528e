"""Convert the values of an object to CEL values, and find the values that do not fit their schema."""

import base64
import datetime
import math
from typing import Any, Final

from fairlead.server.schema import formats
from fairlead.server.schema.cel.invalid_values import mark_invalid
from fairlead.server.schema.nodes import Node
from fairlead.server.schema.structural import ANYTHING

TIMES: Final = {"date-time": "TIMESTAMP", "date": "TIMESTAMP", "duration": "DURATION"}
_KEYWORDS: Final = frozenset(("true", "false", "null", "in"))
_RESERVED: Final = frozenset(  # Reserved words that are still allowed as field names.
    (
        "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
        "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip
_TYPES: Final[
    dict[str, tuple[str, tuple[type, ...]]]
] = {  # For each schema type: its name in errors, its Python types.
    "integer": ("int", (int,)),
    "number": ("float", (int, float)),
    "string": ("string", (str,)),
    "boolean": ("bool", (bool,)),
    "array": ("an array for the provided schema with type=array", (list,)),
    "object": ("a map for the provided schema with type=object", (dict,)),
}
_GO_TYPES: Final = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}
_NOT_INT_OR_STRING: Final = "invalid data, expected XIntOrString value to be either a string or integer"
_NOT_NULLABLE: Final = "invalid data, got null for schema with nullable=false"


class InvalidValues:
    """Collects the errors of values that do not fit their schema, such as 1.0 for an integer.

    `replace_by_nan` is for rules that cannot be guarded. NaN equals no value, so such a rule is not true by accident.
    """

    def __init__(self, *, replace_by_nan: bool = False) -> None:
        self.messages: list[str] = []
        self._replace_by_nan = replace_by_nan

    def add(self, message: str, *, is_in_set: bool = False) -> Any:
        """Record the error of an invalid value. Return the value that replaces it."""
        self.messages.append(message)
        return math.nan if self._replace_by_nan else mark_invalid(message, is_in_set=is_in_set)


def to_cel(node: Node | None, value: Any, invalid: InvalidValues, *, is_in_set: bool = False) -> Any:
    """Return a value with escaped field names, and with numbers, times and bytes in their declared CEL type."""
    if node is None or node.constraints is None:
        return value
    if value is None:
        return None if node.nullable else invalid.add(_NOT_NULLABLE, is_in_set=is_in_set)
    if node.int_or_string and type(value) not in (int, str):
        return invalid.add(_NOT_INT_OR_STRING, is_in_set=is_in_set)
    expected, types = _TYPES.get(node.type, ("", ()))
    if expected and type(value) not in types:
        got = "" if node.type in ("array", "object") else f", got {_GO_TYPES[type(value)]}"
        return invalid.add(f"invalid data, expected {expected}{got}", is_in_set=is_in_set)
    if type(value) is dict:
        return _convert_map(node, value, invalid)
    if type(value) is list:
        is_set = node.list_type == "set"
        return [to_cel(node.items, item, invalid, is_in_set=is_set) for item in value]
    if node.type == "number":
        return float(value)
    if type(value) is str:
        return _convert_text(node.constraints.format, value, invalid)
    return value


def _convert_text(format_name: str, value: str, invalid: InvalidValues) -> Any:
    try:
        if format_name in TIMES:
            return to_engine(parse_time(value, TIMES[format_name]))
        return base64.b64decode(value) if format_name == "byte" else value
    except ValueError as error:
        description = format_name if format_name == "duration" else f"{format_name} formatted string"
        return invalid.add(f"Invalid {description} {value}: {error}")


def _convert_map(node: Node, value: dict[str, Any], invalid: InvalidValues) -> Any:
    if node.values is not None and node.values is not ANYTHING:
        return {key: to_cel(node.values, inner, invalid) for key, inner in value.items()}
    fields = _get_selectable_fields(node)
    result: dict[str, Any] = {}
    for key, inner in value.items():
        if inner is not None and key in fields:  # A null field is absent for CEL.
            result |= dict.fromkeys(cel_names(key), to_cel(fields[key], inner, invalid))
    return result


def _get_selectable_fields(node: Node) -> dict[str, Node | None]:
    """Return the fields of an object that rules can select, by name."""
    fields: dict[str, Node | None] = dict(node.constraints.properties)
    if node.embedded:
        fields |= dict.fromkeys(("apiVersion", "kind", "metadata"))
    return fields


def cel_names(key: str) -> tuple[str, ...]:
    """Return the CEL identifiers by which rules can select a property."""
    if key in _RESERVED:
        return key, f"__{key}__"
    if key in _KEYWORDS:
        return (f"__{key}__",)
    escaped = key.replace("__", "__underscores__")
    for character, word in ((".", "dot"), ("-", "dash"), ("/", "slash")):
        escaped = escaped.replace(character, f"__{word}__")
    return (escaped,)


def parse_time(text: str, kind: str) -> Any:
    """Return the time or duration in a text. `kind` is TIMESTAMP or DURATION. Raises ValueError."""
    if kind == "DURATION":
        return datetime.timedelta(microseconds=formats.parse_duration(text) / 1000)
    time = datetime.datetime.fromisoformat(text.upper())
    return time if time.tzinfo is not None else time.replace(tzinfo=datetime.UTC)


def to_engine(value: Any) -> Any:
    """Return a value with its times as protobuf messages, because the engine does not accept Python's everywhere."""
    from google.protobuf import duration_pb2, timestamp_pb2

    if isinstance(value, list):
        return [to_engine(item) for item in value]
    if isinstance(value, datetime.datetime):
        timestamp = timestamp_pb2.Timestamp()
        timestamp.FromDatetime(value)
        return timestamp
    if isinstance(value, datetime.timedelta):
        duration = duration_pb2.Duration()
        duration.FromTimedelta(value)
        return duration
    return value
