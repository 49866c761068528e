"""Values as the engine of CEL rules takes them, and what of them does not fit its schema."""

import base64
import datetime
import math
from typing import Any, Final

from fairlead.server.schema import formats
from fairlead.server.schema.cel.invalid_values import misfit
from fairlead.server.schema.nodes import Node
from fairlead.server.schema.structural import ANYTHING

TIMES: Final = {"date-time": "TIMESTAMP", "date": "TIMESTAMP", "duration": "DURATION"}
_KEYWORDS: Final = frozenset(("true", "false", "null", "in"))
_RESERVED: Final = frozenset(  # which a field may be called all the same
    (
        "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
        "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip
_FITTING: Final[dict[str, tuple[str, tuple[type, ...]]]] = {  # the word, the types
    "integer": ("int", (int,)),
    "number": ("float", (int, float)),
    "string": ("string", (str,)),
    "boolean": ("bool", (bool,)),
    "array": ("an array for the provided schema with type=array", (list,)),
    "object": ("a map for the provided schema with type=object", (dict,)),
}
_GO: Final = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}
_NEITHER: Final = "invalid data, expected XIntOrString value to be either a string or integer"
_NULL: Final = "invalid data, got null for schema with nullable=false"


class Misfits:
    """Notes what does not fit its schema: 1.0 for an integer, what stood there before the schema changed.

    With `spoil`, each is what equals nothing, for a rule that cannot be guarded.
    """

    def __init__(self, *, spoil: bool = False) -> None:
        self.told: list[str] = []
        self._spoil = spoil

    def noted(self, told: str, *, in_set: bool = False) -> Any:
        self.told.append(told)
        return math.nan if self._spoil else misfit(told, in_set=in_set)


def engine_value(node: Node | None, value: Any, misfits: Misfits, *, in_set: bool = False) -> Any:
    """A value as the engine takes it: names escaped, numbers, times and bytes of the declared type."""
    if node is None or node.constraints is None:
        return value
    if value is None:
        return None if node.nullable else misfits.noted(_NULL, in_set=in_set)
    if node.int_or_string and type(value) not in (int, str):
        return misfits.noted(_NEITHER, in_set=in_set)
    wanted, types = _FITTING.get(node.type, ("", ()))
    if wanted and type(value) not in types:
        got = "" if node.type in ("array", "object") else f", got {_GO[type(value)]}"
        return misfits.noted(f"invalid data, expected {wanted}{got}", in_set=in_set)
    if type(value) is dict:
        return _map(node, value, misfits)
    if type(value) is list:
        is_set = node.list_type == "set"
        return [engine_value(node.items, item, misfits, in_set=is_set) for item in value]
    if node.type == "number":
        return float(value)
    if type(value) is str:
        return _text(node.constraints.format, value, misfits)
    return value


def _text(form: str, value: str, misfits: Misfits) -> Any:
    try:
        if form in TIMES:
            return handed_over(as_time(value, TIMES[form]))
        return base64.b64decode(value) if form == "byte" else value
    except ValueError as error:
        called = form if form == "duration" else f"{form} formatted string"
        return misfits.noted(f"Invalid {called} {value}: {error}")


def _map(node: Node, value: dict[str, Any], misfits: Misfits) -> Any:
    if node.values is not None and node.values is not ANYTHING:
        return {key: engine_value(node.values, inner, misfits) for key, inner in value.items()}
    fields, held = declared(node), [one for one in value.items() if one[1] is not None]  # null is as absent
    made: dict[str, Any] = {}
    for key, inner in held:
        if key in fields:
            made |= dict.fromkeys(spelled(key), engine_value(fields[key], inner, misfits))
    return made


def declared(node: Node) -> dict[str, Node | None]:
    """The fields of an object that rules may name."""
    made: dict[str, Node | None] = dict(node.constraints.properties)
    if node.embedded:
        made |= dict.fromkeys(("apiVersion", "kind", "metadata"))
    return made


def spelled(key: str) -> tuple[str, ...]:
    """A property's name as identifiers of CEL: each that a rule may say."""
    if key in _RESERVED:
        return key, f"__{key}__"
    if key in _KEYWORDS:
        return (f"__{key}__",)
    made = key.replace("__", "__underscores__")
    for mark, word in ((".", "dot"), ("-", "dash"), ("/", "slash")):
        made = made.replace(mark, f"__{word}__")
    return (made,)


def as_time(text: str, kind: str) -> Any:
    """A text as a TIMESTAMP or a DURATION. Raises ValueError."""
    if kind == "DURATION":
        return datetime.timedelta(microseconds=formats.parse_duration(text) / 1000)
    made = datetime.datetime.fromisoformat(text.upper())
    return made if made.tzinfo is not None else made.replace(tzinfo=datetime.UTC)


def handed_over(value: Any) -> Any:
    """What the engine takes anywhere: times are messages there."""
    from google.protobuf import duration_pb2, timestamp_pb2

    if isinstance(value, list):
        return [handed_over(item) for item in value]
    if isinstance(value, datetime.datetime):
        at = timestamp_pb2.Timestamp()
        at.FromDatetime(value)
        return at
    if isinstance(value, datetime.timedelta):
        time = duration_pb2.Duration()
        time.FromTimedelta(value)
        return time
    return value
