"""Whether a value fits its shape, and if not, why, in a real server's words."""

from typing import Any

from fairlead.api.fields import elements
from fairlead.server.ownership.shapes import ATOMIC, KEYED, ItemError, Shape


class TypedError(Exception):
    """An object that does not fit its schema; the message is the whole of what a real server says (a bare 500)."""


def conforms(shape: Shape, value: Any, *, repeats: bool) -> bool:
    """Whether `value` fits. `repeats` allows a set or keyed list to hold an item twice, as live objects may."""
    kind = type(value)
    if value is None:
        return True
    if kind is dict:
        if not shape.is_map:
            return False
        shape = shape if shape.opened else shape.open()
        fields, values = shape.fields, shape.values
        for name, below in value.items():
            declared = fields.get(name)
            child = declared[1] if declared is not None else values
            if child is None:
                return False
            if type(below) is str and (child.scalar == "string" or child.scalar == "untyped"):
                continue
            if not conforms(child, below, repeats=repeats):
                return False
        return True
    if kind is list:
        if not shape.is_list:
            return False
        shape = shape if shape.opened else shape.open()
        child = shape.item
        assert child is not None
        if shape.listing != ATOMIC:
            try:
                seen = {shape.element(item) for item in value}
            except ItemError:
                return False
            if len(seen) != len(value) and not repeats:
                return False
        return all(conforms(child, item, repeats=repeats) for item in value)
    return _fits(shape.scalar, kind)


def _fits(scalar: str, kind: type) -> bool:
    if scalar == "string":
        return kind is str
    if scalar == "numeric":
        return kind is int or kind is float
    if scalar == "boolean":
        return kind is bool
    return scalar == "untyped"


def problems(shape: Shape, value: Any, *, repeats: bool) -> str:
    """Why `value` does not fit, as one message."""
    found = _problems(shape, value, "", repeats)
    lines = [f"{path}: {message}" if path else message for path, message in found]
    return lines[0] if len(lines) == 1 else "\n".join(["errors:", *[f"  {line}" for line in lines]])


def _problems(shape: Shape, value: Any, path: str, repeats: bool) -> list[tuple[str, str]]:
    if value is None or conforms(shape, value, repeats=repeats):
        return []
    if type(value) is dict and shape.is_map:
        return _in_map(shape.open(), value, path, repeats)
    if type(value) is list and shape.is_list:
        return _in_list(shape.open(), value, path, repeats)
    if shape.is_map:
        return [(path, f"expected map, got &{{{_plain(value)}}}")]
    if shape.scalar == "numeric":
        return [(path, f"expected numeric (int or float), got {_type(value)}")]
    if shape.scalar == "string":
        return [(path, f"expected string, got &value.valueUnstructured{{Value:{_syntax(value)}}}")]
    if shape.scalar:
        word = "boolean" if shape.scalar == "boolean" else "any scalar"
        return [(path, f"expected {word}, got &{{{_plain(value)}}}")]
    return [(path, f"expected list, got &{{{_plain(value)}}}")]


def _in_map(shape: Shape, value: dict[str, Any], path: str, repeats: bool) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for name in sorted(value):
        declared = shape.fields.get(name)
        child = declared[1] if declared is not None else shape.values
        if child is None:
            out.append((f"{path}.{name}", "field not declared in schema"))
            break  # as a real server: the first one ends the map
        out += _problems(child, value[name], f"{path}.{name}", repeats)
    return out


def _in_list(shape: Shape, value: list[Any], path: str, repeats: bool) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    seen: set[str] = set()
    child = shape.item
    assert child is not None
    for position, item in enumerate(value):
        shown = f"[{position}]"
        if shape.listing != ATOMIC:
            try:
                element = shape.element(item)
            except ItemError as error:
                out.append((path, f"element {position}: {error}"))
                break  # as a real server does
            shown = _shown(shape, item)
            if element in seen and not repeats:
                out.append((path, f"duplicate entries for key {shown}"))
            seen.add(element)
        out += _problems(child, item, path + shown, repeats)
    return out


def _shown(shape: Shape, item: Any) -> str:
    if shape.listing == KEYED:
        return elements.human_key({**shape.defaults, **{key: item[key] for key in shape.keys if key in item}})
    return f"[={elements.human_value(item)}]"


def _type(value: Any) -> str:
    """As Go's %T prints it."""
    if isinstance(value, str | bool):
        return "string" if isinstance(value, str) else "bool"
    return "map[string]interface {}" if isinstance(value, dict) else "[]interface {}"


def _plain(value: Any) -> str:
    """As Go's %v prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, dict):
        return "map[" + " ".join([f"{name}:{_plain(value[name])}" for name in sorted(value)]) + "]"
    if isinstance(value, list):
        return "[" + " ".join([_plain(item) for item in value]) + "]"
    return value if isinstance(value, str) else elements.human_value(value)


def _syntax(value: Any) -> str:
    """As Go's %#v prints it."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, dict):
        return (
            "map[string]interface {}{"
            + ", ".join([f"{elements.quoted(k)}:{_syntax(value[k])}" for k in sorted(value)])
            + "}"
        )
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join([_syntax(item) for item in value]) + "}"
    return elements.human_value(value)
