"""Validation of the selectableFields of a CRD: simple JSON paths to scalar fields of the schema."""

import re
from typing import Any, Final

from fairlead.server.registry.validation.rules import Errors, Scope
from fairlead.server.schema import structural
from fairlead.server.schema.paths import find_node

_MAX: Final = 8
_NOT_FOUND: Final = "is an invalid path: does not refer to a valid field"
_SCALAR: Final = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)


def check_selectable_fields(owner: Scope, schema: dict[str, Any] | None) -> Errors:
    """Check the selectableFields of one version. `owner` is the scope that errors name."""
    seen_paths: set[str] = set()
    for field in owner.each("selectableFields"):
        path = field.text("jsonPath")
        if not path:
            yield field.required("jsonPath")
        elif path in seen_paths:
            yield field.duplicate("jsonPath")
        elif problem := _find_problem(path, schema):
            yield field.invalid("jsonPath", problem)
        seen_paths.add(path)
    count = len(owner.items("selectableFields"))
    if count > _MAX:
        yield owner.too_many("selectableFields", count, _MAX)


def _find_problem(path: str, schema: dict[str, Any] | None) -> str:
    """Return why a JSON path does not select a scalar field of the schema, or "" if it does."""
    if not path.startswith((".", "[")):
        return f"is an invalid path: expected [ or . but got: {re.split(r'[.[]', path)[0]}"
    if re.search(r"\[\d+\]", path):
        return "is an invalid path: array notation is not allowed"
    if schema is None or path.startswith(".metadata"):
        return _NOT_FOUND
    node = find_node(structural.compile_schema(schema), path)
    if node is None:
        return _NOT_FOUND
    return "" if node.type in ("string", "boolean", "integer") else _SCALAR
