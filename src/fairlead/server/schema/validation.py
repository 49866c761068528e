"""Validation of custom resources by their schemas, with the real server's error messages.

The visible quirks of the real server's validator are imitated. Errors of anyOf, oneOf and allOf have the field `<nil>`,
followed by the errors of the alternative that passed the most checks. Bounds are compared as integers if the value is
an integer. A list passes as a string with a format. Values that equal the old ones are not validated (ratcheting).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from fairlead.api import gojson
from fairlead.api.gojson import quote_go
from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.schema import cel, formats
from fairlead.server.schema.embedded_resources import validate_embedded_resources
from fairlead.server.schema.list_types import validate_list_types
from fairlead.server.schema.nodes import MISSING, Node
from fairlead.server.schema.patterns import compile_pattern
from fairlead.server.schema.ratcheting import is_unchanged, match_old_items
from fairlead.server.schema.structural import ANYTHING, Constraints

_NIL = "<nil>"
_BLOCKS_CEL_RULES = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)
_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)


class _Error(NamedTuple):
    """A validation error with its path inside the validated value. Equal errors are reported once."""

    text: str
    reason: str
    path: str | None
    message: str


def validate(
    node: Node,
    obj: dict[str, Any],
    old: dict[str, Any] | None = None,
    *,
    checks_status_only: bool = False,
    checks_schema: bool = True,
    warn: Callable[[str], None] | None = None,
) -> list[FieldError]:
    """Return the validation errors of a custom resource: its schema, embedded resources, list types and CEL rules.

    With `checks_status_only` the schema validates only the status, for a write of /status. If a CEL rule fails on an
    unchanged value, `warn` is called and no error is returned. Without `checks_schema` the schema is not checked, as
    for an object that names another kind.
    """
    if not checks_schema:
        errors = []
    elif not checks_status_only:
        errors = validate_by_schema(node, obj, old)
    else:
        status, old_status = obj.get("status"), (old or {}).get("status")
        became_null = "status" in obj and status is None and old_status is not None
        if "status" in node.constraints.properties and (status is not None or became_null):
            errors = validate_by_schema(node.constraints.properties["status"], status, old_status, under="status")
        else:
            errors = []
    if not checks_status_only:
        errors += validate_embedded_resources(node, obj)
    duplicates = validate_list_types(node, obj)
    if duplicates and (old is None or not validate_list_types(node, old)):
        errors += duplicates
    if cel.has_rules(node):
        if any(cause.reason in _BLOCKS_CEL_RULES for cause in errors):
            errors.append(field_errors.invalid(_NIL, None, _NOT_CHECKED))
        else:
            rule_errors = cel.evaluate_rules(node, obj, old)
            errors += [failure.error for failure in rule_errors if not failure.is_ratcheted]
            if warn is not None:
                forgiven = [failure.error for failure in rule_errors if failure.is_ratcheted]
                for warning in sorted(f"{error.field}: {error.message}" for error in forgiven):
                    warn(warning)
    return errors


def validate_by_schema(node: Node, obj: Any, old: Any = None, under: str = "") -> list[FieldError]:
    """Return the errors by the schema alone. `under` is the path of `obj` if it is a part of an object."""
    errors: list[_Error] = []
    _check(node, obj, "", errors, MISSING if old is None else old, is_root=True)
    result = []
    for error in dict.fromkeys(errors) if len(errors) > 1 else errors:
        field = under or _NIL
        if error.path:
            name = error.path.removeprefix(".")
            field = f"{under}.{name}" if under else name
        result.append(FieldError(error.reason, field, error.message))
    return result


def _check(node: Node, value: Any, path: str, errors: list[_Error], old: Any, *, is_root: bool = False) -> int:
    """Append the errors of a value to `errors` unless the value is unchanged. Return how many checks passed."""
    start = len(errors)
    matched = _run_checks(node, value, path, errors, old, is_root)
    if len(errors) > start and old is not MISSING and not is_root and is_unchanged(node, old, value):
        del errors[start:]
    return matched


def _run_checks(node: Node, value: Any, path: str, errors: list[_Error], old: Any, is_root: bool) -> int:
    constraints: Constraints = node.constraints
    if value is None:
        matched = 1
        if constraints.types and not node.nullable:
            errors.append(_build_type_error(path, ",".join(constraints.types), "null"))
            matched = 0
        if constraints.enum:
            errors.append(_build_enum_error(constraints, path, value))
        return matched
    matched = 2  # The enum and this schema itself count as passed checks.
    if constraints.types or constraints.format:
        matched += 1 + _check_type(constraints, value, path, errors)
    matched += 2 + (0 if constraints.only_type else _check_combinators(constraints, value, path, errors, old))
    kind = type(value)
    if kind is str:
        matched += 1
        if not constraints.only_type:
            _check_string(constraints, value, path, errors)
            if constraints.format and formats.is_known(constraints.format):
                matched += 1
                if not formats.is_valid(constraints.format, value):
                    errors.append(_build_type_error(path, constraints.format, value))
    elif kind is int or kind is float:
        matched += 2
        _check_number(constraints, value, path, errors)
    elif kind is list:
        matched += 2 + _check_list(node, constraints, value, path, errors, old)
    if constraints.enum and not any(_equals_enum_value(value, allowed) for allowed in constraints.enum):
        errors.append(_build_enum_error(constraints, path, value))
    if kind is dict:
        matched += 1 + _check_object(node, constraints, value, path, errors, old, is_root)
    return matched


def _check_type(constraints: Constraints, value: Any, path: str, errors: list[_Error]) -> int:
    is_too_large = type(value) is int and not -(2**63) <= value < 2**63
    kind, format_name = _KINDS[float if is_too_large else type(value)]
    is_whole_number = kind == "number" and "integer" in constraints.types and _is_json_integer(value)
    fits = kind in constraints.types or is_whole_number or (kind == "integer" and "number" in constraints.types)
    is_stringlike = kind in ("string", "array")
    if not is_stringlike and constraints.format and not fits and format_name != constraints.format:
        errors.append(_build_type_error(path, constraints.format, format_name))
        return 0
    if constraints.format and is_stringlike and not ("number" in constraints.types or "integer" in constraints.types):
        return 1
    if not fits:
        errors.append(_build_type_error(path, ",".join(constraints.types), kind))
        return 0
    return 1


def _check_combinators(constraints: Constraints, value: Any, path: str, errors: list[_Error], old: Any) -> int:
    matched = 0
    if constraints.any_of:
        best: tuple[int, list[_Error]] | None = None
        for alternative in constraints.any_of:
            inner: list[_Error] = []
            count = _run_checks(alternative, value, path, inner, old, False)
            if not inner:
                matched += count
                break
            if best is None or count > best[0]:
                best = count, inner
        else:
            assert best is not None
            errors.append(_build_error_without_path(f'"{path}" must validate at least one schema (anyOf)'))
            errors.extend(best[1])
            matched += best[0]
    if constraints.one_of:
        best, first, valid = None, 0, 0
        for alternative in constraints.one_of:
            inner = []
            count = _run_checks(alternative, value, path, inner, old, False)
            if not inner:
                valid += 1
                best, first = None, first or count
            elif not valid and (best is None or count > best[0]):
                best = count, inner
        if valid != 1:
            count_text = f"Found {valid} valid alternatives" if valid else "Found none valid"
            errors.append(
                _build_error_without_path(f'"{path}" must validate one and only one schema (oneOf). {count_text}')
            )
            if best is not None:
                errors.extend(best[1])
                matched += best[0]
        else:
            matched += first
    if constraints.all_of:
        valid = 0
        for alternative in constraints.all_of:
            inner = []
            matched += _run_checks(alternative, value, path, inner, old, False)
            valid += not inner
            errors.extend(inner)
        if valid != len(constraints.all_of):
            suffix = "" if valid else ". None validated"
            errors.append(_build_error_without_path(f'"{path}" must validate all the schemas (allOf){suffix}'))
    if constraints.not_ is not None:
        inner = []
        _run_checks(constraints.not_, value, path, inner, old, False)
        if not inner:
            errors.append(_build_error_without_path(f'"{path}" must not validate the schema (not)'))
    return matched


def _check_string(constraints: Constraints, value: str, path: str, errors: list[_Error]) -> None:
    if constraints.max_length is not None and len(value) > constraints.max_length:
        message = f"{path} in body should be at most {constraints.max_length} chars long"
        errors.append(_Error(message, *_move_to_path(field_errors.too_long("", constraints.max_length), path)))
    elif constraints.min_length is not None and len(value) < constraints.min_length:
        errors.append(_build_invalid_error(path, value, f"should be at least {constraints.min_length} chars long"))
    elif constraints.pattern and not compile_pattern(constraints.pattern).search(value):
        errors.append(_build_invalid_error(path, value, f"should match '{constraints.pattern}'"))


def _check_number(constraints: Constraints, value: float, path: str, errors: list[_Error]) -> None:
    single = constraints.types[0] if len(constraints.types) == 1 else ""
    format_name = constraints.format if single in ("integer", "number") else ""
    _is_in_range(value, single, format_name, "Checked", path, errors)
    if constraints.only_type:
        return
    is_integer = type(value) is int
    if constraints.multiple_of is not None:
        exact = _is_in_range(constraints.multiple_of, single, format_name, "MultipleOf", path, errors)
        factor = int(constraints.multiple_of) if is_integer and exact else float(constraints.multiple_of)
        if factor <= 0:
            message = f"factor MultipleOf declared for {path} must be positive: {field_errors.format_go(factor)}"
            errors.append(_Error(message, *_move_to_path(field_errors.invalid("", factor, message), path)))
        elif value % factor if is_integer and exact else not _is_json_integer(value / factor):
            errors.append(
                _build_invalid_error(path, value, f"should be a multiple of {field_errors.format_go(factor)}")
            )
    if constraints.minimum is not None:
        exact = _is_in_range(constraints.minimum, single, format_name, "Minimum boundary", path, errors)
        bound = int(constraints.minimum) if is_integer and exact else float(constraints.minimum)
        if value < bound or (constraints.exclusive_minimum and value == bound):
            relation = "greater than" if constraints.exclusive_minimum else "greater than or equal to"
            errors.append(_build_invalid_error(path, value, f"should be {relation} {field_errors.format_go(bound)}"))
    if constraints.maximum is not None:
        exact = _is_in_range(constraints.maximum, single, format_name, "Maximum boundary", path, errors)
        bound = int(constraints.maximum) if is_integer and exact else float(constraints.maximum)
        if value > bound or (constraints.exclusive_maximum and value == bound):
            relation = "less than" if constraints.exclusive_maximum else "less than or equal to"
            errors.append(_build_invalid_error(path, value, f"should be {relation} {field_errors.format_go(bound)}"))


def _is_in_range(value: float, kind: str, format_name: str, number_kind: str, path: str, errors: list[_Error]) -> bool:
    """Return whether a number fits the type and format. Append an error if it does not."""
    if kind == "integer":
        limit = 2**31 if format_name == "int32" else 2**63
        is_within_limits = float(value).is_integer() and -limit <= value < limit
        is_within_limits = is_within_limits and not (type(value) is float and value == -(2**63))
    elif format_name == "float":
        is_within_limits = abs(value) <= 3.4028235677973366e38
    else:
        is_within_limits = True
    if not is_within_limits:
        format_text = f"with format {format_name}" if format_name else "(default format)"
        errors.append(_build_error_without_path(f"{number_kind} value must be of type {kind} {format_text} in {path}"))
    return is_within_limits


def _check_list(
    node: Node, constraints: Constraints, value: list[Any], path: str, errors: list[_Error], old: Any
) -> int:
    matched = 0
    if node.items is not None:
        find_old = match_old_items(node, old)
        for index, item in enumerate(value):
            matched += _check(node.items, item, f"{path}[{index}]", errors, find_old(item))
    size = len(value)
    if constraints.min_items is not None and size < constraints.min_items:
        errors.append(_build_invalid_error(path, size, f"should have at least {constraints.min_items} items"))
    if constraints.max_items is not None and size > constraints.max_items:
        message = f"{path} in body should have at most {constraints.max_items} items"
        errors.append(_Error(message, *_move_to_path(field_errors.too_many("", size, constraints.max_items), path)))
    return matched


def _check_object(
    node: Node,
    constraints: Constraints,
    value: dict[str, Any],
    path: str,
    errors: list[_Error],
    old: Any,
    is_root: bool,
) -> int:
    matched, size = 0, len(value)
    if constraints.min_properties is not None and size < constraints.min_properties:
        errors.append(_build_invalid_error(path, size, f"should have at least {constraints.min_properties} properties"))
    if constraints.max_properties is not None and size > constraints.max_properties:
        full_message = f"{path} in body should have at most {constraints.max_properties} properties"
        errors.append(
            _Error(full_message, *_move_to_path(field_errors.too_many("", size, constraints.max_properties), path))
        )
    properties = constraints.properties
    old_values: dict[str, Any] = old if type(old) is dict else {}
    if constraints.additional is False:
        texts = (f"{path}.{key} in body is a forbidden property" for key in value if key not in properties)
        errors.extend(_build_error_at(path, full_message) for full_message in texts)
    elif node.values is not None and node.values is not ANYTHING:
        for key, inner in value.items():
            if key not in properties:
                matched += _check(node.values, inner, f"{path}.{key}", errors, old_values.get(key, MISSING))
    for key, child in properties.items():
        if key in value:
            old_value = MISSING if is_root and key in ("kind", "apiVersion") else old_values.get(key, MISSING)
            matched += _check(child, value[key], f"{path}.{key}" if path else key, errors, old_value)
    for key in constraints.required:
        if key not in value:
            full_message = f"{path}.{key} in body is required"
            errors.append(_Error(full_message, "FieldValueRequired", f"{path}.{key}", "Required value"))
    return matched


def _equals_enum_value(value: Any, allowed: Any) -> bool:
    """Return whether Go finds a value equal to an enum value: a float is truncated to compare with an integer."""
    if type(value) is float and type(allowed) is int:
        value = int(value)
    return bool(value == allowed) and isinstance(value, bool) == isinstance(allowed, bool)


def _is_json_integer(value: float) -> bool:
    """Return whether a float counts as an integer: it is below 2^53, and its fraction is zero or tiny."""
    if not abs(value) < 2**53:
        return False
    integer = int(value)
    return value == integer or (integer > 0 and (value - integer) / (value + integer) < 1e-9)


def _build_enum_error(constraints: Constraints, path: str, value: Any) -> _Error:
    supported = [item if isinstance(item, str) else gojson.dumps(item).decode() for item in constraints.enum]
    return _Error(
        f"{path} in body should be one of", *_move_to_path(field_errors.not_supported("", value, supported), path)
    )


def _build_type_error(path: str, expected: str, value: str) -> _Error:
    full_message = f"{path} in body must be of type {expected}: {quote_go(value)}"
    return _Error(full_message, *_move_to_path(field_errors.type_invalid("", value, full_message), path))


def _build_invalid_error(path: str, value: Any, message: str) -> _Error:
    full_message = f"{path} in body {message}"
    return _Error(full_message, *_move_to_path(field_errors.invalid("", value, full_message), path))


def _build_error_without_path(message: str) -> _Error:
    return _Error(message, "FieldValueInvalid", None, f'Invalid value: "": {message}')


def _build_error_at(path: str, message: str) -> _Error:
    return _Error(message, "FieldValueInvalid", path, f'Invalid value: "": {message}')


def _move_to_path(cause: FieldError, path: str) -> tuple[str, str, str]:
    return cause.reason, path, cause.message


_KINDS: dict[type, tuple[str, str]] = {
    bool: ("boolean", ""), str: ("string", ""), int: ("integer", "int64"), float: ("number", "float64"),
    list: ("array", ""), dict: ("object", ""),
}  # fmt: skip
