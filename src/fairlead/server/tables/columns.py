"""The columns that a definition adds to the Table of its objects."""

from typing import Any

from fairlead.api import gojson
from fairlead.server.registry.resource import Object
from fairlead.server.tables import jsonpath
from fairlead.server.tables.ages import age


def json_path(obj: Any, path: str) -> Any:
    """The first value at the JSONPath of a column; None where there is none."""
    try:
        return next(iter(jsonpath.values(obj, path)), None)
    except jsonpath.PathError:
        return None


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
        if isinstance(value, float):
            return gojson.format_percent_v(value)
        return value if isinstance(value, str) else gojson.dumps(value).decode()
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if kind == "integer":
        return int(value) if -(2**63) <= value < 2**63 else -(2**63)  # as Go cuts a float
    return value
