"""Validation of a whole CRD schema: keywords, structure, default values and CEL rules."""

from collections.abc import Iterator

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.schema import cel, structural
from fairlead.server.schema.crd_schema.defaults import validate_defaults
from fairlead.server.schema.crd_schema.keywords import UNSUPPORTED, validate_keywords
from fairlead.server.schema.crd_schema.structure import validate_completeness, validate_structure
from fairlead.server.schema.crd_schema.subschemas import Schema


def validate_crd_schema(schema: Schema, path: str, *, checks_costs: bool = True) -> list[FieldError]:
    """Return the errors in the schema of a custom resource. CEL rules are compiled only if the rest is valid.

    Without `checks_costs`, the cost of a single rule is not limited, as for a rule that is already stored.
    """
    keyword_errors = list(validate_keywords(schema, path, is_root=True, allows_defaults=True))
    errors: list[FieldError] = []
    if not any(cause.reason == "FieldValueForbidden" and _prevents_structural(cause.field) for cause in keyword_errors):
        errors = sorted(
            [*validate_structure(schema, path, "root"), *validate_completeness(schema, path)],
            key=lambda c: (c.field, c.message),
        )
        if not errors:
            embedded = {**schema, "x-kubernetes-embedded-resource": True}
            errors = list(validate_defaults(embedded, path)) or list(
                _validate_cel_rules(schema, path, [cause.field for cause in keyword_errors], checks_costs)
            )
    if schema.get("nullable"):
        errors.append(field_errors.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    return errors + keyword_errors


def _validate_cel_rules(
    schema: Schema, path: str, invalid_fields: list[str], checks_costs: bool
) -> Iterator[FieldError]:
    """Yield the errors of the CEL rules. A rule is not compiled if its schema has an invalid field."""
    node = structural.compile_schema(schema)
    if not cel.has_rules(node):
        return
    if cel.is_available():
        yield from cel.validate_rules(node, path, invalid_fields, checks_costs=checks_costs)
    else:
        yield field_errors.forbidden(path, cel.MISSING_EXTRA)


def _prevents_structural(field: str) -> bool:
    """Return whether an error in this field means that the schema cannot be read as structural."""
    return field.endswith((*(f".{key}" for key in UNSUPPORTED), ".items"))
