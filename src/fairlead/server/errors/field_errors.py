"""Field errors: why one field of an object is invalid, in the wording of a real kube-apiserver.

The functions from `required` to `too_many` build one error each. Their messages match `field.Error` in
k8s.io/apimachinery.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from fairlead.api import gojson
from fairlead.api.gojson import quote_go


class FieldError(NamedTuple):
    """An error in one field of an object. `message` is the text that follows the field's path in a Status message."""

    reason: str
    field: str
    message: str


def required(field: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", field, f"Required value: {detail}" if detail else "Required value")


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", field, f"Invalid value: {format_value(value)}: {detail}")


def type_invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueTypeInvalid", field, f"Invalid value: {format_value(value)}: {detail}")


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", field, f"Forbidden: {detail}")


def not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    values = ", ".join(map(quote_go, supported))
    detail = f": supported values: {values}" if values else ""
    return FieldError("FieldValueNotSupported", field, f"Unsupported value: {format_value(value)}{detail}")


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", field, f"Duplicate value: {format_value(value)}")


def too_long(field: str, limit: int) -> FieldError:
    detail = f"may not be more than {limit} bytes" if limit >= 0 else "value is too long"
    return FieldError("FieldValueTooLong", field, f"Too long: {detail}")


def too_many(field: str, actual: int, limit: int) -> FieldError:
    return FieldError("FieldValueTooMany", field, f"Too many: {actual}: must have at most {limit} items")


def validate_manager_name(field: str, manager: str) -> list[FieldError]:
    """Return the errors of a fieldManager value: it may have at most 128 bytes, and only printable characters."""
    errors = [too_long(field, 128)] if len(manager.encode()) > 128 else []
    if not manager.isprintable():
        position = next(index for index, char in enumerate(manager) if not char.isprintable())
        detail = f"invalid character U+{ord(manager[position]):04X} (at position {position})"
        errors.append(invalid(field, manager, detail))
    return errors


def format_value(value: Any) -> str:
    """Format a value for a field error: strings quoted, numbers as Go prints them, maps and lists as JSON."""
    if isinstance(value, str):
        return quote_go(value)
    if isinstance(value, float):
        return gojson.format_percent_v(value)
    return gojson.dumps(value).decode()


def format_go(value: Any) -> str:
    """Format a JSON value as Go's %v does, for example map[a:1] for {"a": 1}."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{format_go(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(format_go, value))}]"
    if value is None:
        return "<nil>"
    if isinstance(value, float):
        return gojson.format_percent_v(value)
    return value if isinstance(value, str) else gojson.dumps(value).decode()
