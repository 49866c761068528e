"""Custom columns: the additionalPrinterColumns of a CustomResourceDefinition."""

from typing import Any

from fairlead.api import gojson
from fairlead.server.registry.resource import Object
from fairlead.server.tables import jsonpath
from fairlead.server.tables.ages import format_age


def first_value(obj: Any, path: str) -> Any:
    """Return the first value at the JSONPath of a column, or None if there is no value."""
    try:
        return next(iter(jsonpath.values(obj, path)), None)
    except jsonpath.PathError:
        return None


def custom_cell(column: Object, obj: Object, now: float) -> Any:
    """Return the cell of an additionalPrinterColumn, or None if the value is missing or has another type."""
    value = first_value(obj, column["jsonPath"])
    kind = column["type"]
    if value is None:
        return None
    if kind == "date":
        try:
            return format_age(value, now) if isinstance(value, str) else None
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
        return int(value) if -(2**63) <= value < 2**63 else -(2**63)  # as Go converts a float that is out of range
    return value
