"""Conformance: whether a value has the types that its schema declares, and a real server's messages if not."""

from typing import Any

from fairlead.api import gojson
from fairlead.api.fields import path_elements
from fairlead.server.ownership.merge_schema import ATOMIC, KEYED, ItemError, MergeSchema


class TypedError(Exception):
    """Raised for an object that does not conform to its schema. A real server responds with a 500 and this message."""


def conforms(schema: MergeSchema, value: Any, *, allow_duplicates: bool) -> bool:
    """Return whether `value` has the types that its schema declares.

    `allow_duplicates` permits duplicate items in sets and keyed lists, because live objects may have them.
    """
    kind = type(value)
    if value is None:
        return True
    if kind is dict:
        if not schema.is_map:
            return False
        schema = schema if schema.is_expanded else schema.expand()
        fields, values = schema.fields, schema.values
        for name, child_value in value.items():
            child_schema = fields.get(name)
            child = child_schema[1] if child_schema is not None else values
            if child is None:
                return False
            if type(child_value) is str and (child.scalar == "string" or child.scalar == "untyped"):
                continue
            if not conforms(child, child_value, allow_duplicates=allow_duplicates):
                return False
        return True
    if kind is list:
        if not schema.is_list:
            return False
        schema = schema if schema.is_expanded else schema.expand()
        child = schema.item
        assert child is not None
        if schema.list_type != ATOMIC:
            try:
                elements = {schema.path_element(item) for item in value}
            except ItemError:
                return False
            if len(elements) != len(value) and not allow_duplicates:
                return False
        return all(conforms(child, item, allow_duplicates=allow_duplicates) for item in value)
    return _accepts_scalar(schema.scalar, kind)


def _accepts_scalar(scalar: str, kind: type) -> bool:
    if scalar == "string":
        return kind is str
    if scalar == "numeric":
        return kind is int or kind is float
    if scalar == "boolean":
        return kind is bool
    return scalar == "untyped"


def describe_problems(schema: MergeSchema, value: Any, *, allow_duplicates: bool) -> str:
    """Return one message that lists why `value` does not conform to its schema."""
    problems = _list_problems(schema, value, "", allow_duplicates)
    lines = [f"{path}: {message}" if path else message for path, message in problems]
    return lines[0] if len(lines) == 1 else "\n".join(["errors:", *[f"  {line}" for line in lines]])


def _list_problems(schema: MergeSchema, value: Any, path: str, allow_duplicates: bool) -> list[tuple[str, str]]:
    if value is None or conforms(schema, value, allow_duplicates=allow_duplicates):
        return []
    if type(value) is dict and schema.is_map:
        return _list_map_problems(schema.expand(), value, path, allow_duplicates)
    if type(value) is list and schema.is_list:
        return _list_item_problems(schema.expand(), value, path, allow_duplicates)
    if schema.is_map:
        return [(path, f"expected map, got &{{{_format_value(value)}}}")]
    if schema.scalar == "numeric":
        return [(path, f"expected numeric (int or float), got {_format_type(value)}")]
    if schema.scalar == "string":
        return [(path, f"expected string, got &value.valueUnstructured{{Value:{_format_go_syntax(value)}}}")]
    if schema.scalar:
        expected = "boolean" if schema.scalar == "boolean" else "any scalar"
        return [(path, f"expected {expected}, got &{{{_format_value(value)}}}")]
    return [(path, f"expected list, got &{{{_format_value(value)}}}")]


def _list_map_problems(
    schema: MergeSchema, value: dict[str, Any], path: str, allow_duplicates: bool
) -> list[tuple[str, str]]:
    problems: list[tuple[str, str]] = []
    for name in sorted(value):
        child_schema = schema.fields.get(name)
        child = child_schema[1] if child_schema is not None else schema.values
        if child is None:
            problems.append((f"{path}.{name}", "field not declared in schema"))
            break  # A real server stops at the first undeclared field of a map.
        problems += _list_problems(child, value[name], f"{path}.{name}", allow_duplicates)
    return problems


def _list_item_problems(
    schema: MergeSchema, value: list[Any], path: str, allow_duplicates: bool
) -> list[tuple[str, str]]:
    problems: list[tuple[str, str]] = []
    seen_elements: set[str] = set()
    child = schema.item
    assert child is not None
    for position, item in enumerate(value):
        item_path = f"[{position}]"
        if schema.list_type != ATOMIC:
            try:
                element = schema.path_element(item)
            except ItemError as error:
                problems.append((path, f"element {position}: {error}"))
                break  # A real server stops at the first item without an identity.
            item_path = _format_item(schema, item)
            if element in seen_elements and not allow_duplicates:
                problems.append((path, f"duplicate entries for key {item_path}"))
            seen_elements.add(element)
        problems += _list_problems(child, item, path + item_path, allow_duplicates)
    return problems


def _format_item(schema: MergeSchema, item: Any) -> str:
    if schema.list_type == KEYED:
        return path_elements.format_key({**schema.defaults, **{key: item[key] for key in schema.keys if key in item}})
    return f"[={path_elements.format_value(item)}]"


def _format_type(value: Any) -> str:
    """Return the Go type of a JSON value as %T prints it, for example map[string]interface {}."""
    if isinstance(value, str | bool):
        return "string" if isinstance(value, str) else "bool"
    return "map[string]interface {}" if isinstance(value, dict) else "[]interface {}"


def _format_value(value: Any) -> str:
    """Format a JSON value as Go's %v does."""
    if value is None:
        return "<nil>"
    if isinstance(value, dict):
        return "map[" + " ".join([f"{name}:{_format_value(value[name])}" for name in sorted(value)]) + "]"
    if isinstance(value, list):
        return "[" + " ".join([_format_value(item) for item in value]) + "]"
    return value if isinstance(value, str) else path_elements.format_value(value)


def _format_go_syntax(value: Any) -> str:
    """Format a JSON value as Go's %#v does."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, dict):
        return (
            "map[string]interface {}{"
            + ", ".join([f"{gojson.quote_go(k)}:{_format_go_syntax(value[k])}" for k in sorted(value)])
            + "}"
        )
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join([_format_go_syntax(item) for item in value]) + "}"
    return path_elements.format_value(value)
