"""Lists of type set and map hold each item once; the second of each kind is reported."""

from typing import Any

from fairlead.api import gojson
from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.schema.nodes import MISSING, Node
from fairlead.server.schema.structural import ANYTHING


def validate_list_types(node: Node | None, value: Any, path: str = "") -> list[FieldError]:
    """The duplicates in the sets and map lists of a custom resource."""
    if node is None or node.constraints is None:
        return []
    found: list[FieldError] = []
    if type(value) is dict:
        values = None if node.values is ANYTHING else node.values
        properties = node.constraints.properties
        for key, inner in value.items():
            if type(inner) is dict or type(inner) is list:
                if values is not None:
                    found += validate_list_types(values, inner, f"{path}[{key}]")
                if key in properties:
                    found += validate_list_types(properties[key], inner, f"{path}.{key}" if path else key)
    elif type(value) is list:
        if node.list_type == "set":
            found += [field_errors.duplicate(f"{path}[{i}]", value[i]) for i in _repeated(value)]
        elif node.list_type == "map":
            found += _map(node, value, path)
        for index, item in enumerate(value):
            if type(item) is dict or type(item) is list:
                found += validate_list_types(node.items, item, f"{path}[{index}]")
    return found


def _map(node: Node, value: list[Any], path: str) -> list[FieldError]:
    for index, item in enumerate(value):
        if item is not None and type(item) is not dict:
            told = "must be an object for an array of list-type map"
            return [field_errors.invalid(f"{path}[{index}]", item, told)]
    keys = [{key: item[key] for key in node.keys if key in item} if item is not None else {} for item in value]
    alone = [next(iter(key.values()), MISSING) for key in keys] if len(node.keys) == 1 else keys
    return [field_errors.duplicate(f"{path}[{i}]", keys[i]) for i in _repeated(alone)]


def _repeated(items: list[Any]) -> list[int]:
    """Where each value that occurs more than once occurs the second time. Alone, 1 and 1.0 are not the same."""
    seen: dict[Any, int] = {}
    repeated = []
    for index, item in enumerate(items):
        known = gojson.dumps(item) if type(item) is dict or type(item) is list else (type(item), item)
        seen[known] = seen.get(known, 0) + 1
        if seen[known] == 2:
            repeated.append(index)
    return repeated
