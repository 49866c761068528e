"""The columns that a definition adds to the Table of its objects."""

import json
import re
from typing import Any

from fairlead.server.ages import age
from fairlead.server.cells import at
from fairlead.server.registry.resource import Object

_QUOTED = re.compile(r"\['([^',]*)'\]")
_STEP = re.compile(
    r"\.((?:[^.\[\\]|\\.)+)|\[(-?\d+)\]|\[(-?\d*):(-?\d*)\]"
    r"|\[\?\(@\.([\w.-]+)\s*==\s*(['\"])(.*?)\6\)\]|\[\*\]"
)


def json_path(obj: Any, text: str) -> Any:
    """The first value at a JSONPath of the kind that printer columns use; None where there is none."""
    text = _QUOTED.sub(r".\1", text)  # ['a.b'] are two steps, ['a\.b'] is one
    found, position = [obj], 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            return None
        position = match.end()
        name, index, start, end, key, _, wanted = match.groups()
        following: list[Any] = []
        for value in found:
            if name == "*":
                following += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            elif name is not None:
                field = re.sub(r"\\(.)", r"\1", name)
                if isinstance(value, dict) and field in value:
                    following.append(value[field])
            elif isinstance(value, list):
                if index is not None:
                    following += value[int(index) :][:1]
                elif start is not None:
                    following += value[int(start) if start else None : int(end) if end else None]
                elif key is not None:
                    following += [item for item in value if str(at(item, *key.split("."))) == wanted]
                else:
                    following += value
        found = following
    return found[0] if found else None


def custom_cell(column: Object, obj: Object, now: float) -> Any:
    """The cell of an additionalPrinterColumn; None where the object has no such value or one of another type."""
    value = json_path(obj, column["jsonPath"])
    kind = column["type"]
    if value is None:
        return None
    if kind == "date":
        try:
            return age(value, now) if isinstance(value, str) else None
        except ValueError:
            return "<invalid>"
    if kind == "string":
        return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if kind == "integer" else value
