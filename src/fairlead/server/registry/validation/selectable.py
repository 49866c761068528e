"""selectableFields of a definition: simple paths to scalars of the schema, few and each once."""

import re
from typing import Any

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.schema import structural
from fairlead.server.schema.paths import find_node

MOST = 8
_SCALAR = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)


def fields(given: list[dict[str, Any]], schema: dict[str, Any] | None, path: str) -> list[FieldError]:
    """What is wrong with the selectable fields of a version."""
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, one in enumerate(given):
        here, text = f"{path}[{index}].jsonPath", one.get("jsonPath") or ""
        if not text:
            found.append(field_errors.required(here))
        elif text in seen:
            found.append(field_errors.duplicate(here, text))
        elif told := _problem(text, schema):
            found.append(field_errors.invalid(here, text, told))
        seen.add(text)
    if len(given) > MOST:
        found.append(FieldError("FieldValueTooMany", path, f"Too many: {len(given)}: must have at most {MOST} items"))
    return found


def _problem(text: str, schema: dict[str, Any] | None) -> str:
    if not text.startswith((".", "[")):
        return f"is an invalid path: expected [ or . but got: {re.split(r'[.[]', text)[0]}"
    if re.search(r"\[\d+\]", text):
        return "is an invalid path: array notation is not allowed"
    place = (
        find_node(structural.compile_schema(schema), text)
        if schema is not None and not text.startswith(".metadata")
        else None
    )
    if place is None:
        return "is an invalid path: does not refer to a valid field"
    return "" if place.type in ("string", "boolean", "integer") else _SCALAR
