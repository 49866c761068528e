"""Validation of lists of type set and map, which may not contain duplicates."""

from typing import Any

from fairlead.api import gojson
from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.schema.nodes import MISSING, Node
from fairlead.server.schema.structural import ANYTHING


def validate_list_types(node: Node | None, value: Any, path: str = "") -> list[FieldError]:
    """Return an error for each duplicate item in the lists of type set and map of a custom resource."""
    if node is None or node.constraints is None:
        return []
    errors: list[FieldError] = []
    if type(value) is dict:
        values = None if node.values is ANYTHING else node.values
        properties = node.constraints.properties
        for key, inner in value.items():
            if type(inner) is dict or type(inner) is list:
                if values is not None:
                    errors += validate_list_types(values, inner, f"{path}[{key}]")
                if key in properties:
                    errors += validate_list_types(properties[key], inner, f"{path}.{key}" if path else key)
    elif type(value) is list:
        if node.list_type == "set":
            errors += [field_errors.duplicate(f"{path}[{i}]", value[i]) for i in _find_duplicates(value)]
        elif node.list_type == "map":
            errors += _validate_map_list(node, value, path)
        for index, item in enumerate(value):
            if type(item) is dict or type(item) is list:
                errors += validate_list_types(node.items, item, f"{path}[{index}]")
    return errors


def _validate_map_list(node: Node, value: list[Any], path: str) -> list[FieldError]:
    for index, item in enumerate(value):
        if item is not None and type(item) is not dict:
            message = "must be an object for an array of list-type map"
            return [field_errors.invalid(f"{path}[{index}]", item, message)]
    keys = [{key: item[key] for key in node.keys if key in item} if item is not None else {} for item in value]
    identities = [next(iter(key.values()), MISSING) for key in keys] if len(node.keys) == 1 else keys
    return [field_errors.duplicate(f"{path}[{i}]", keys[i]) for i in _find_duplicates(identities)]


def _find_duplicates(items: list[Any]) -> list[int]:
    """Return the index of the second occurrence of each duplicate item. The scalars 1 and 1.0 are different."""
    counts: dict[Any, int] = {}
    duplicates = []
    for index, item in enumerate(items):
        identity = gojson.dumps(item) if type(item) is dict or type(item) is list else (type(item), item)
        counts[identity] = counts.get(identity, 0) + 1
        if counts[identity] == 2:
            duplicates.append(index)
    return duplicates
