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
from fairlead.server.schema.embedded_resources import embedded_causes
from fairlead.server.schema.list_types import duplicate_causes
from fairlead.server.schema.nodes import MISSING, Node
from fairlead.server.schema.patterns import compiled
from fairlead.server.schema.ratcheting import correlated, unchanged
from fairlead.server.schema.structural import ANYTHING, Declared

_NIL = "<nil>"
_BLOCKING = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)
_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)


class _Found(NamedTuple):
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
        found = schema_causes(node, obj, old)
    else:
        status, before = obj.get("status"), (old or {}).get("status")
        null = "status" in obj and status is None and before is not None  # where there was none, null changes nothing
        if "status" in node.rules.properties and (status is not None or null):
            found = schema_causes(node.rules.properties["status"], status, before, under="status")
        else:
            found = []
    if not status_only:
        found += embedded_causes(node, obj)
    repeated = duplicate_causes(node, obj)
    if repeated and (old is None or not duplicate_causes(node, old)):
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


def schema_causes(node: Node, obj: Any, old: Any = None, under: str = "") -> list[FieldError]:
    """What is wrong by the schema alone. `under` is where `obj` stands in its object: a status is checked alone."""
    errors: list[_Found] = []
    _check(node, obj, "", errors, MISSING if old is None else old, root=True)
    made = []
    for error in dict.fromkeys(errors) if len(errors) > 1 else errors:
        field = under or _NIL
        if error.path:
            name = error.path.removeprefix(".")
            field = f"{under}.{name}" if under else name
        made.append(FieldError(error.reason, field, error.message))
    return made


def _check(node: Node, value: Any, path: str, errors: list[_Found], old: Any, *, root: bool = False) -> int:
    """Append what is wrong and answer how many checks held. Errors of an unchanged value are forgiven."""
    start = len(errors)
    matched = _checks(node, value, path, errors, old, root)
    if len(errors) > start and old is not MISSING and not root and unchanged(node, old, value):
        del errors[start:]
    return matched


def _checks(node: Node, value: Any, path: str, errors: list[_Found], old: Any, root: bool) -> int:
    rules: Declared = node.rules
    if value is None:
        matched = 1
        if rules.types and not node.nullable:
            errors.append(_wrong_type(path, ",".join(rules.types), "null"))
            matched = 0
        if rules.enum:
            errors.append(_not_in(rules, path, value))
        return matched
    matched = 2  # the enum and this schema itself
    if rules.types or rules.format:
        matched += 1 + _type(rules, value, path, errors)
    matched += 2 + (0 if rules.plain else _combined(rules, value, path, errors, old))
    kind = type(value)
    if kind is str:
        matched += 1
        if not rules.plain:
            _string(rules, value, path, errors)
            if rules.format and formats.known(rules.format):
                matched += 1
                if not formats.conforms(rules.format, value):
                    errors.append(_wrong_type(path, rules.format, value))
    elif kind is int or kind is float:
        matched += 2
        _number(rules, value, path, errors)
    elif kind is list:
        matched += 2 + _list(node, rules, value, path, errors, old)
    if rules.enum and not any(_same(value, one) for one in rules.enum):
        errors.append(_not_in(rules, path, value))
    if kind is dict:
        matched += 1 + _object(node, rules, value, path, errors, old, root)
    return matched


def _type(rules: Declared, value: Any, path: str, errors: list[_Found]) -> int:
    great = type(value) is int and not -(2**63) <= value < 2**63
    kind, form = _KINDS[float if great else type(value)]
    whole = kind == "number" and "integer" in rules.types and _json_integer(value)
    fits = kind in rules.types or whole or (kind == "integer" and "number" in rules.types)
    stringlike = kind in ("string", "array")
    if not stringlike and rules.format and not fits and form != rules.format:
        errors.append(_wrong_type(path, rules.format, form))
        return 0
    if rules.format and stringlike and not ("number" in rules.types or "integer" in rules.types):
        return 1
    if not fits:
        errors.append(_wrong_type(path, ",".join(rules.types), kind))
        return 0
    return 1


def _combined(rules: Declared, value: Any, path: str, errors: list[_Found], old: Any) -> int:
    matched = 0
    if rules.any_of:
        best: tuple[int, list[_Found]] | None = None
        for one in rules.any_of:
            inner: list[_Found] = []
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
    if rules.one_of:
        best, first, valid = None, 0, 0
        for one in rules.one_of:
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
    if rules.all_of:
        valid = 0
        for one in rules.all_of:
            inner = []
            matched += _checks(one, value, path, inner, old, False)
            valid += not inner
            errors.extend(inner)
        if valid != len(rules.all_of):
            told = "" if valid else ". None validated"
            errors.append(_plain(f'"{path}" must validate all the schemas (allOf){told}'))
    if rules.not_ is not None:
        inner = []
        _checks(rules.not_, value, path, inner, old, False)
        if not inner:
            errors.append(_plain(f'"{path}" must not validate the schema (not)'))
    return matched


def _string(rules: Declared, value: str, path: str, errors: list[_Found]) -> None:
    if rules.max_length is not None and len(value) > rules.max_length:
        text = f"{path} in body should be at most {rules.max_length} chars long"
        errors.append(_Found(text, *_named(field_errors.too_long("", rules.max_length), path)))
    elif rules.min_length is not None and len(value) < rules.min_length:
        errors.append(_invalid(path, value, f"should be at least {rules.min_length} chars long"))
    elif rules.pattern and not compiled(rules.pattern).search(value):
        errors.append(_invalid(path, value, f"should match '{rules.pattern}'"))


def _number(rules: Declared, value: float, path: str, errors: list[_Found]) -> None:
    single = rules.types[0] if len(rules.types) == 1 else ""
    form = rules.format if single in ("integer", "number") else ""
    _in_range(value, single, form, "Checked", path, errors)
    if rules.plain:
        return
    whole = type(value) is int
    if rules.multiple_of is not None:
        exact = _in_range(rules.multiple_of, single, form, "MultipleOf", path, errors)
        factor = int(rules.multiple_of) if whole and exact else float(rules.multiple_of)
        if factor <= 0:
            told = f"factor MultipleOf declared for {path} must be positive: {field_errors.format_go(factor)}"
            errors.append(_Found(told, *_named(field_errors.invalid("", factor, told), path)))
        elif value % factor if whole and exact else not _json_integer(value / factor):
            errors.append(_invalid(path, value, f"should be a multiple of {field_errors.format_go(factor)}"))
    if rules.minimum is not None:
        exact = _in_range(rules.minimum, single, form, "Minimum boundary", path, errors)
        bound = int(rules.minimum) if whole and exact else float(rules.minimum)
        if value < bound or (rules.exclusive_minimum and value == bound):
            told = "greater than" if rules.exclusive_minimum else "greater than or equal to"
            errors.append(_invalid(path, value, f"should be {told} {field_errors.format_go(bound)}"))
    if rules.maximum is not None:
        exact = _in_range(rules.maximum, single, form, "Maximum boundary", path, errors)
        bound = int(rules.maximum) if whole and exact else float(rules.maximum)
        if value > bound or (rules.exclusive_maximum and value == bound):
            told = "less than" if rules.exclusive_maximum else "less than or equal to"
            errors.append(_invalid(path, value, f"should be {told} {field_errors.format_go(bound)}"))


def _in_range(value: float, kind: str, form: str, what: str, path: str, errors: list[_Found]) -> bool:
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


def _list(node: Node, rules: Declared, value: list[Any], path: str, errors: list[_Found], old: Any) -> int:
    matched = 0
    if node.items is not None:
        before = correlated(node, old)
        for index, item in enumerate(value):
            matched += _check(node.items, item, f"{path}[{index}]", errors, before(item))
    size = len(value)
    if rules.min_items is not None and size < rules.min_items:
        errors.append(_invalid(path, size, f"should have at least {rules.min_items} items"))
    if rules.max_items is not None and size > rules.max_items:
        text = f"{path} in body should have at most {rules.max_items} items"
        errors.append(_Found(text, *_named(field_errors.too_many("", size, rules.max_items), path)))
    return matched


def _object(
    node: Node, rules: Declared, value: dict[str, Any], path: str, errors: list[_Found], old: Any, root: bool
) -> int:
    matched, size = 0, len(value)
    if rules.min_properties is not None and size < rules.min_properties:
        errors.append(_invalid(path, size, f"should have at least {rules.min_properties} properties"))
    if rules.max_properties is not None and size > rules.max_properties:
        text = f"{path} in body should have at most {rules.max_properties} properties"
        errors.append(_Found(text, *_named(field_errors.too_many("", size, rules.max_properties), path)))
    properties = rules.properties
    before: dict[str, Any] = old if type(old) is dict else {}
    if rules.additional is False:
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
    for key in rules.required:
        if key not in value:
            text = f"{path}.{key} in body is required"
            errors.append(_Found(text, "FieldValueRequired", f"{path}.{key}", "Required value"))
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


def _not_in(rules: Declared, path: str, value: Any) -> _Found:
    listed = [one if isinstance(one, str) else gojson.dumps(one).decode() for one in rules.enum]
    return _Found(f"{path} in body should be one of", *_named(field_errors.not_supported("", value, listed), path))


def _wrong_type(path: str, wanted: str, value: str) -> _Found:
    told = f"{path} in body must be of type {wanted}: {field_errors.quote_go(value)}"
    return _Found(told, *_named(field_errors.type_invalid("", value, told), path))


def _invalid(path: str, value: Any, told: str) -> _Found:
    text = f"{path} in body {told}"
    return _Found(text, *_named(field_errors.invalid("", value, text), path))


def _plain(text: str) -> _Found:
    return _Found(text, "FieldValueInvalid", None, f'Invalid value: "": {text}')


def _plain_at(path: str, text: str) -> _Found:
    return _Found(text, "FieldValueInvalid", path, f'Invalid value: "": {text}')


def _named(cause: FieldError, path: str) -> tuple[str, str, str]:
    return cause.reason, path, cause.message


_KINDS: dict[type, tuple[str, str]] = {
    bool: ("boolean", ""), str: ("string", ""), int: ("integer", "int64"), float: ("number", "float64"),
    list: ("array", ""), dict: ("object", ""),
}  # fmt: skip
