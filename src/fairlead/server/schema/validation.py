"""Validation of custom resources by their schemas, with the real server's causes.

The real server's validator has corners that show: combinators report at `<nil>` and add the failures of the alternative
that matched best (by counting checks), number bounds are compared as integers when the value is one, a list passes for
a string with a format. They are kept. Values that did not change since `old` are not held to the schema (ratcheting).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from fairlead.api import gojson
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
_BLOCKING = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)
_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)


class _Error(NamedTuple):
    text: str  # the whole error; the same text is reported once
    reason: str
    path: str | None
    message: str


def validate(
    node: Node,
    obj: dict[str, Any],
    old: dict[str, Any] | None = None,
    *,
    status_only: bool = False,
    by_schema: bool = True,
    warn: Callable[[str], None] | None = None,
) -> list[FieldError]:
    """What is wrong with a custom resource by its schema, embedded resources, list types and rules included.

    A write of /status holds only the status to the schema, and tells of it as of a thing by itself. Rules that an
    unchanged value fails are not wrong: `warn` is told. An object that calls itself another kind is held to all but
    the schema (`by_schema`).
    """
    if not by_schema:
        found = []
    elif not status_only:
        found = validate_by_schema(node, obj, old)
    else:
        status, before = obj.get("status"), (old or {}).get("status")
        null = "status" in obj and status is None and before is not None  # where there was none, null changes nothing
        if "status" in node.constraints.properties and (status is not None or null):
            found = validate_by_schema(node.constraints.properties["status"], status, before, under="status")
        else:
            found = []
    if not status_only:
        found += validate_embedded_resources(node, obj)
    repeated = validate_list_types(node, obj)
    if repeated and (old is None or not validate_list_types(node, old)):
        found += repeated
    if cel.has_rules(node):
        if any(cause.reason in _BLOCKING for cause in found):
            found.append(field_errors.invalid(_NIL, None, _NOT_CHECKED))
        else:
            failed = cel.failures(node, obj, old)
            found += [one.cause for one in failed if not one.same]
            if warn is not None:
                for text in sorted(f"{one.cause.field}: {one.cause.message}" for one in failed if one.same):
                    warn(text)
    return found


def validate_by_schema(node: Node, obj: Any, old: Any = None, under: str = "") -> list[FieldError]:
    """What is wrong by the schema alone. `under` is where `obj` stands in its object: a status is checked alone."""
    errors: list[_Error] = []
    _check(node, obj, "", errors, MISSING if old is None else old, root=True)
    made = []
    for error in dict.fromkeys(errors) if len(errors) > 1 else errors:
        field = under or _NIL
        if error.path:
            name = error.path.removeprefix(".")
            field = f"{under}.{name}" if under else name
        made.append(FieldError(error.reason, field, error.message))
    return made


def _check(node: Node, value: Any, path: str, errors: list[_Error], old: Any, *, root: bool = False) -> int:
    """Append what is wrong and answer how many checks held. Errors of an unchanged value are forgiven."""
    start = len(errors)
    matched = _checks(node, value, path, errors, old, root)
    if len(errors) > start and old is not MISSING and not root and is_unchanged(node, old, value):
        del errors[start:]
    return matched


def _checks(node: Node, value: Any, path: str, errors: list[_Error], old: Any, root: bool) -> int:
    constraints: Constraints = node.constraints
    if value is None:
        matched = 1
        if constraints.types and not node.nullable:
            errors.append(_wrong_type(path, ",".join(constraints.types), "null"))
            matched = 0
        if constraints.enum:
            errors.append(_not_in(constraints, path, value))
        return matched
    matched = 2  # the enum and this schema itself
    if constraints.types or constraints.format:
        matched += 1 + _type(constraints, value, path, errors)
    matched += 2 + (0 if constraints.only_type else _combined(constraints, value, path, errors, old))
    kind = type(value)
    if kind is str:
        matched += 1
        if not constraints.only_type:
            _string(constraints, value, path, errors)
            if constraints.format and formats.is_known(constraints.format):
                matched += 1
                if not formats.is_valid(constraints.format, value):
                    errors.append(_wrong_type(path, constraints.format, value))
    elif kind is int or kind is float:
        matched += 2
        _number(constraints, value, path, errors)
    elif kind is list:
        matched += 2 + _list(node, constraints, value, path, errors, old)
    if constraints.enum and not any(_same(value, one) for one in constraints.enum):
        errors.append(_not_in(constraints, path, value))
    if kind is dict:
        matched += 1 + _object(node, constraints, value, path, errors, old, root)
    return matched


def _type(constraints: Constraints, value: Any, path: str, errors: list[_Error]) -> int:
    great = type(value) is int and not -(2**63) <= value < 2**63
    kind, form = _KINDS[float if great else type(value)]
    whole = kind == "number" and "integer" in constraints.types and _json_integer(value)
    fits = kind in constraints.types or whole or (kind == "integer" and "number" in constraints.types)
    stringlike = kind in ("string", "array")
    if not stringlike and constraints.format and not fits and form != constraints.format:
        errors.append(_wrong_type(path, constraints.format, form))
        return 0
    if constraints.format and stringlike and not ("number" in constraints.types or "integer" in constraints.types):
        return 1
    if not fits:
        errors.append(_wrong_type(path, ",".join(constraints.types), kind))
        return 0
    return 1


def _combined(constraints: Constraints, value: Any, path: str, errors: list[_Error], old: Any) -> int:
    matched = 0
    if constraints.any_of:
        best: tuple[int, list[_Error]] | None = None
        for one in constraints.any_of:
            inner: list[_Error] = []
            count = _checks(one, value, path, inner, old, False)
            if not inner:
                matched += count
                break
            if best is None or count > best[0]:
                best = count, inner
        else:
            assert best is not None
            errors.append(_plain(f'"{path}" must validate at least one schema (anyOf)'))
            errors.extend(best[1])
            matched += best[0]
    if constraints.one_of:
        best, first, valid = None, 0, 0
        for one in constraints.one_of:
            inner = []
            count = _checks(one, value, path, inner, old, False)
            if not inner:
                valid += 1
                best, first = None, first or count
            elif not valid and (best is None or count > best[0]):
                best = count, inner
        if valid != 1:
            told = f"Found {valid} valid alternatives" if valid else "Found none valid"
            errors.append(_plain(f'"{path}" must validate one and only one schema (oneOf). {told}'))
            if best is not None:
                errors.extend(best[1])
                matched += best[0]
        else:
            matched += first
    if constraints.all_of:
        valid = 0
        for one in constraints.all_of:
            inner = []
            matched += _checks(one, value, path, inner, old, False)
            valid += not inner
            errors.extend(inner)
        if valid != len(constraints.all_of):
            told = "" if valid else ". None validated"
            errors.append(_plain(f'"{path}" must validate all the schemas (allOf){told}'))
    if constraints.not_ is not None:
        inner = []
        _checks(constraints.not_, value, path, inner, old, False)
        if not inner:
            errors.append(_plain(f'"{path}" must not validate the schema (not)'))
    return matched


def _string(constraints: Constraints, value: str, path: str, errors: list[_Error]) -> None:
    if constraints.max_length is not None and len(value) > constraints.max_length:
        text = f"{path} in body should be at most {constraints.max_length} chars long"
        errors.append(_Error(text, *_named(field_errors.too_long("", constraints.max_length), path)))
    elif constraints.min_length is not None and len(value) < constraints.min_length:
        errors.append(_invalid(path, value, f"should be at least {constraints.min_length} chars long"))
    elif constraints.pattern and not compile_pattern(constraints.pattern).search(value):
        errors.append(_invalid(path, value, f"should match '{constraints.pattern}'"))


def _number(constraints: Constraints, value: float, path: str, errors: list[_Error]) -> None:
    single = constraints.types[0] if len(constraints.types) == 1 else ""
    form = constraints.format if single in ("integer", "number") else ""
    _in_range(value, single, form, "Checked", path, errors)
    if constraints.only_type:
        return
    whole = type(value) is int
    if constraints.multiple_of is not None:
        exact = _in_range(constraints.multiple_of, single, form, "MultipleOf", path, errors)
        factor = int(constraints.multiple_of) if whole and exact else float(constraints.multiple_of)
        if factor <= 0:
            told = f"factor MultipleOf declared for {path} must be positive: {field_errors.format_go(factor)}"
            errors.append(_Error(told, *_named(field_errors.invalid("", factor, told), path)))
        elif value % factor if whole and exact else not _json_integer(value / factor):
            errors.append(_invalid(path, value, f"should be a multiple of {field_errors.format_go(factor)}"))
    if constraints.minimum is not None:
        exact = _in_range(constraints.minimum, single, form, "Minimum boundary", path, errors)
        bound = int(constraints.minimum) if whole and exact else float(constraints.minimum)
        if value < bound or (constraints.exclusive_minimum and value == bound):
            told = "greater than" if constraints.exclusive_minimum else "greater than or equal to"
            errors.append(_invalid(path, value, f"should be {told} {field_errors.format_go(bound)}"))
    if constraints.maximum is not None:
        exact = _in_range(constraints.maximum, single, form, "Maximum boundary", path, errors)
        bound = int(constraints.maximum) if whole and exact else float(constraints.maximum)
        if value > bound or (constraints.exclusive_maximum and value == bound):
            told = "less than" if constraints.exclusive_maximum else "less than or equal to"
            errors.append(_invalid(path, value, f"should be {told} {field_errors.format_go(bound)}"))


def _in_range(value: float, kind: str, form: str, what: str, path: str, errors: list[_Error]) -> bool:
    """Whether the number fits the type and format, and if not, say so."""
    if kind == "integer":
        limit = 2**31 if form == "int32" else 2**63
        fits = float(value).is_integer() and -limit <= value < limit
        fits = fits and not (type(value) is float and value == -(2**63))
    elif form == "float":
        fits = abs(value) <= 3.4028235677973366e38
    else:
        fits = True
    if not fits:
        of = f"with format {form}" if form else "(default format)"
        errors.append(_plain(f"{what} value must be of type {kind} {of} in {path}"))
    return fits


def _list(node: Node, constraints: Constraints, value: list[Any], path: str, errors: list[_Error], old: Any) -> int:
    matched = 0
    if node.items is not None:
        before = match_old_items(node, old)
        for index, item in enumerate(value):
            matched += _check(node.items, item, f"{path}[{index}]", errors, before(item))
    size = len(value)
    if constraints.min_items is not None and size < constraints.min_items:
        errors.append(_invalid(path, size, f"should have at least {constraints.min_items} items"))
    if constraints.max_items is not None and size > constraints.max_items:
        text = f"{path} in body should have at most {constraints.max_items} items"
        errors.append(_Error(text, *_named(field_errors.too_many("", size, constraints.max_items), path)))
    return matched


def _object(
    node: Node, constraints: Constraints, value: dict[str, Any], path: str, errors: list[_Error], old: Any, root: bool
) -> int:
    matched, size = 0, len(value)
    if constraints.min_properties is not None and size < constraints.min_properties:
        errors.append(_invalid(path, size, f"should have at least {constraints.min_properties} properties"))
    if constraints.max_properties is not None and size > constraints.max_properties:
        text = f"{path} in body should have at most {constraints.max_properties} properties"
        errors.append(_Error(text, *_named(field_errors.too_many("", size, constraints.max_properties), path)))
    properties = constraints.properties
    before: dict[str, Any] = old if type(old) is dict else {}
    if constraints.additional is False:
        told = (f"{path}.{key} in body is a forbidden property" for key in value if key not in properties)
        errors.extend(_plain_at(path, text) for text in told)
    elif node.values is not None and node.values is not ANYTHING:
        for key, inner in value.items():
            if key not in properties:
                matched += _check(node.values, inner, f"{path}.{key}", errors, before.get(key, MISSING))
    for key, child in properties.items():
        if key in value:
            was = MISSING if root and key in ("kind", "apiVersion") else before.get(key, MISSING)
            matched += _check(child, value[key], f"{path}.{key}" if path else key, errors, was)
    for key in constraints.required:
        if key not in value:
            text = f"{path}.{key} in body is required"
            errors.append(_Error(text, "FieldValueRequired", f"{path}.{key}", "Required value"))
    return matched


def _same(value: Any, one: Any) -> bool:
    """Equality as Go converts for it: a fraction is cut off when the other side is an integer."""
    if type(value) is float and type(one) is int:
        value = int(value)
    return bool(value == one) and isinstance(value, bool) == isinstance(one, bool)


def _json_integer(value: float) -> bool:
    """Whether a float counts as an integer: beyond 2^53 none does, and a fraction may be too small to count."""
    if not abs(value) < 2**53:
        return False
    whole = int(value)
    return value == whole or (whole > 0 and (value - whole) / (value + whole) < 1e-9)


def _not_in(constraints: Constraints, path: str, value: Any) -> _Error:
    listed = [one if isinstance(one, str) else gojson.dumps(one).decode() for one in constraints.enum]
    return _Error(f"{path} in body should be one of", *_named(field_errors.not_supported("", value, listed), path))


def _wrong_type(path: str, wanted: str, value: str) -> _Error:
    told = f"{path} in body must be of type {wanted}: {field_errors.quote_go(value)}"
    return _Error(told, *_named(field_errors.type_invalid("", value, told), path))


def _invalid(path: str, value: Any, told: str) -> _Error:
    text = f"{path} in body {told}"
    return _Error(text, *_named(field_errors.invalid("", value, text), path))


def _plain(text: str) -> _Error:
    return _Error(text, "FieldValueInvalid", None, f'Invalid value: "": {text}')


def _plain_at(path: str, text: str) -> _Error:
    return _Error(text, "FieldValueInvalid", path, f'Invalid value: "": {text}')


def _named(cause: FieldError, path: str) -> tuple[str, str, str]:
    return cause.reason, path, cause.message


_KINDS: dict[type, tuple[str, str]] = {
    bool: ("boolean", ""), str: ("string", ""), int: ("integer", "int64"), float: ("number", "float64"),
    list: ("array", ""), dict: ("object", ""),
}  # fmt: skip
