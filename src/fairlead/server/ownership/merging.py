"""Merge an applied configuration into a live value, and remove fields from a value.

The results share all unchanged parts with the live value. If nothing changes, the result is the live value itself.
"""

from typing import Any

from fairlead.api.fields.tries import Trie
from fairlead.server.ownership.equality import identical
from fairlead.server.ownership.field_extraction import path_element
from fairlead.server.ownership.merge_schema import ATOMIC, MergeSchema


def merge(schema: MergeSchema, live: Any, config: Any) -> Any:
    """Return `live` with the values of `config`. No field is removed. A null in `config` replaces only leaves."""
    kind = type(config)
    if kind is dict and schema.is_map:
        if schema.is_atomic or (not config and not (type(live) is dict and live)):
            return live if identical(live, config) else config
        if type(live) is not dict or not live:
            return config
        return _merge_map(schema.expand(), live, config)
    if kind is list and schema.is_list:
        if schema.list_type == ATOMIC or (not config and not (type(live) is list and live)):
            return live if identical(live, config) else config
        if type(live) is not list or not live:
            return config
        return _merge_items(schema.expand(), live, config)
    if config is None and _is_granular(schema, live):
        return live
    return live if identical(live, config) else config


def _is_granular(schema: MergeSchema, live: Any) -> bool:
    """Return whether `live` is a map or list whose parts have separate owners, so that a null does not replace it."""
    if not live:
        return False
    if schema.is_map:
        return type(live) is dict and not schema.is_atomic
    return not schema.scalar and type(live) is list and schema.list_type != ATOMIC


def _merge_map(schema: MergeSchema, live: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    merged_map: dict[str, Any] | None = None
    fields = schema.fields
    for name, config_value in config.items():
        merged = config_value
        if name in live:
            live_value = live[name]
            if live_value is config_value:
                continue
            if type(config_value) is str:
                if config_value == live_value:
                    continue
            else:
                child_schema = fields.get(name)
                child = child_schema[1] if child_schema is not None else schema.values
                if child is not None:
                    merged = merge(child, live_value, config_value)
                    if merged is live_value:
                        continue
        if merged_map is None:
            merged_map = dict(live)
        merged_map[name] = merged
    return live if merged_map is None else merged_map


def _merge_items(schema: MergeSchema, live: list[Any], config: list[Any]) -> list[Any]:
    """Return the merged list.

    Items in both lists are in the order of `config`. An item that only `config` has stands before the next item in
    `config` that both have, or at the end.
    """
    child = schema.item
    assert child is not None
    live_elements = [path_element(schema, item) for item in live]
    config_elements = [path_element(schema, item) for item in config]
    live_by_element: dict[str, Any] = {}
    for element, item in zip(live_elements, live, strict=True):
        live_by_element[element] = None if element in live_by_element else item  # a duplicate is replaced, not merged
    in_config = set(config_elements)
    common = [element for element in config_elements if element in live_by_element]  # in the order to keep
    common.append("")
    next_common = 0
    merged_items: list[Any] = []
    merged_elements: set[str] = set()
    i = j = 0
    while i < len(live_elements) or j < len(config_elements):
        if i < len(live_elements):
            element = live_elements[i]
            if element not in in_config:
                merged_items.append(live[i])
                i += 1
                continue
            is_next = element == common[next_common] or not common[next_common]
            if j < len(config_elements) and element != config_elements[j] and not is_next:
                i += 1  # a common item that comes later in the order of `config`
                continue
            if element in merged_elements or (j < len(config_elements) and element == config_elements[j]):
                i += 1
        if j < len(config_elements):
            element = config_elements[j]
            merged_items.append(
                merge(child, live_by_element[element], config[j]) if element in live_by_element else config[j]
            )
            merged_elements.add(element)
            j += 1
            if element == common[next_common]:
                next_common += 1
    if len(merged_items) == len(live) and all(x is y for x, y in zip(merged_items, live, strict=True)):
        return live
    return merged_items


def remove(schema: MergeSchema | None, value: Any, fields: Trie) -> Any:
    """Return `value` without `fields` and everything below them. A map or list that becomes empty becomes null."""
    if type(value) is dict:
        if schema is None or not schema.is_map:
            return value
        if not value or schema.is_atomic:
            return None
        schema = schema if schema.is_expanded else schema.expand()
        declared_fields = schema.fields
        remaining: dict[str, Any] = {}
        for name, child_value in value.items():
            field = declared_fields.get(name)
            node = fields.get(field[0] if field is not None else "f:" + name)
            if node is None:
                remaining[name] = child_value
            elif node and "." not in node:
                remaining[name] = remove(field[1] if field is not None else schema.values, child_value, node)
        return remaining or None
    if type(value) is list:
        if schema is None or not schema.is_list:
            return value
        if not value or schema.list_type == ATOMIC:
            return None
        schema = schema if schema.is_expanded else schema.expand()
        items: list[Any] = []
        for item in value:
            node = fields.get(path_element(schema, item))
            if node is None:
                items.append(item)
            elif node and "." not in node:
                items.append(remove(schema.item, item, node))
        return items or None
    return value
