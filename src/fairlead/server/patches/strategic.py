"""Strategic merge patch: a merge patch in which the Go tags of a type say which lists are merged by a key.

Directives: `$patch` (replace, delete), `$retainKeys`, `$setElementOrder/F` and `$deleteFromPrimitiveList/F`.
"""

from typing import Any

from fairlead.server.errors.field_errors import format_go
from fairlead.server.schema.nodes import Node

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"

_BAD_RETAIN = "invalid patch format of retainKeys"
_BAD_ORDER = "invalid patch format of setElementOrder list"
_BAD_PRIMITIVES = "invalid patch format of primitive list"


class StrategicError(Exception):
    """Raised if a patch cannot be applied. A real server returns the message with status 500 and no reason."""


class BadFormat(StrategicError):
    """Raised for a malformed directive. A real server returns the message with status 400."""


def apply(node: Node, original: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return `original` with the patch merged into it. Neither argument is changed. Raises StrategicError."""
    return _merge_maps(node, original, patch)


def _merge_maps(node: Node | None, original: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    if _PATCH in patch:
        if patch[_PATCH] == "replace":
            return {key: value for key, value in patch.items() if key != _PATCH}
        if patch[_PATCH] == "delete":
            return {}
        raise StrategicError(_format_unknown_directive(patch))
    result = dict(original)
    remaining_patch = dict(patch)
    if _RETAIN in remaining_patch:
        _apply_retain_keys(result, remaining_patch)
    if _ORDER[:-1] in remaining_patch:
        raise BadFormat(_BAD_ORDER)
    if _DELETE[:-1] in remaining_patch:
        raise BadFormat(_BAD_PRIMITIVES)
    for key in [key for key in remaining_patch if key.startswith(_ORDER)]:
        _merge_in_order(node, result, remaining_patch, key)
    for key, value in remaining_patch.items():
        deleting = key.startswith(_DELETE)
        if deleting:
            key = key.removeprefix(_DELETE)
        if value is None:
            result.pop(key, None)
            continue
        if key not in result or type(result[key]) is not type(value):
            if not deleting:
                _set_value(result, key, _drop_nulls(value))
            continue
        child = _get_child(node, key)
        if type(value) is dict:
            is_replaced = child is not None and "replace" in _get_strategies(child)
            result[key] = value if is_replaced else _merge_maps(child, result[key], value)
        elif type(value) is list:
            result[key] = _merge_lists(child, result[key], value, deleting)
        else:
            _set_value(result, key, value)
    return result


def _apply_retain_keys(result: dict[str, Any], remaining_patch: dict[str, Any]) -> None:
    """Remove the keys that $retainKeys does not list.

    Raises BadFormat if the patch sets a key that it does not list.
    """
    names = remaining_patch.pop(_RETAIN)
    if type(names) is not list:
        raise BadFormat(_BAD_RETAIN)
    for key, value in remaining_patch.items():
        if value is not None and not key.startswith((_DELETE, _ORDER)) and key not in names:
            raise BadFormat(_BAD_RETAIN)
    for key in [key for key in result if key not in names]:
        del result[key]


def _merge_in_order(node: Node | None, result: dict[str, Any], remaining_patch: dict[str, Any], key: str) -> None:
    """Merge the list of a $setElementOrder directive, and sort its items in the order of the directive."""
    order = remaining_patch.pop(key) or []
    key = key.removeprefix(_ORDER)
    child = _get_child(node, key)
    merge_key = child.go.merge_key if child is not None else ""
    before, patch = result.get(key), remaining_patch.get(key)
    for value in (order, before, patch):
        if value is not None and type(value) is not list:
            raise StrategicError(f"expected a []interface {{}}, but received a {_get_go_kind(value)}")
    if merge_key:
        _expect_merge_keys(order, merge_key)
    _expect_same_order(patch or [], order, merge_key)
    if before is None and patch is None:
        return
    if patch is None:
        merged = before
    elif before is None:
        merged = _drop_directives(patch)
    else:
        merged = _merge_lists(child, before, patch, False)
    listed = [_get_identity(item, merge_key) for item in order]
    patched = [item for item in merged or () if _get_identity(item, merge_key) in listed]
    unpatched = [item for item in merged or () if _get_identity(item, merge_key) not in listed]
    result[key] = _interleave(patched, unpatched, order, before or [], merge_key)
    remaining_patch.pop(key, None)


def _expect_merge_keys(order: list[Any], merge_key: str) -> None:
    for index, item in enumerate(order):
        if type(item) is not dict:
            raise StrategicError(f"value for key {index} is not a map")
        if merge_key not in item:
            raise StrategicError(_format_missing_merge_key(item, merge_key))


def _expect_same_order(patch: list[Any], order: list[Any], merge_key: str) -> None:
    """Raise StrategicError unless the order directive lists all items of the patch, in the order of the patch."""
    remaining = [item for item in patch if not (type(item) is dict and item.get(_PATCH) == "delete")]
    at = 0
    for item in order:
        if at < len(remaining) and _get_identity(remaining[at], merge_key) == _get_identity(item, merge_key):
            at += 1
    if at < len(remaining):
        message = (
            f"The order in patch list:\n{format_go(patch)}\n doesn't match {_ORDER[:-1]} list:\n{format_go(order)}\n"
        )
        raise StrategicError(message)


def _merge_lists(node: Node | None, original: list[Any], patch: list[Any], is_deleting: bool) -> list[Any]:
    if node is None or not (is_deleting or "merge" in _get_strategies(node)):
        return patch
    if not original and not patch:
        return original
    merge_key = node.go.merge_key
    if not any(type(item) is dict for item in [*original, *patch]):
        if is_deleting:
            return [item for item in original if item not in patch]
        unique: dict[Any, Any] = {}
        for item in [*original, *patch]:
            unique.setdefault(_get_identity(item, ""), item)
        merged = list(unique.values())
    else:
        if not all(type(item) is dict for item in [*original, *patch]):
            raise StrategicError(f"list element types are not identical: {format_go([original, patch])}")
        if not merge_key:
            raise StrategicError(f"cannot merge lists without merge key for {node.go.type}")
        original, patch = _apply_item_directives(original, patch, merge_key)
        merged = _merge_by_key(node, original, patch, merge_key)
    listed = [_get_identity(item, merge_key) for item in patch]
    patched = [item for item in merged if _get_identity(item, merge_key) in listed]
    unpatched = [item for item in merged if _get_identity(item, merge_key) not in listed]
    return _interleave(patched, unpatched, patch, original, merge_key)


def _apply_item_directives(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Apply the patch items with a $patch directive. Return the resulting list and the other patch items."""
    plain_items, is_replaced = [], False
    for item in patch:
        directive = item.get(_PATCH) if type(item) is dict else None
        if directive is None:
            plain_items.append(item)
        elif directive == "delete":
            if merge_key not in item:
                raise StrategicError(_format_missing_merge_key(item, merge_key))
            original = [old for old in original if _get_identity(old, merge_key) != _get_identity(item, merge_key)]
        elif directive == "replace":
            is_replaced = True
        elif directive == "merge":
            raise StrategicError("merging lists cannot yet be specified in the patch")
        else:
            raise StrategicError(_format_unknown_directive(item))
    return (plain_items, []) if is_replaced else (original, plain_items)


def _merge_by_key(node: Node, original: list[Any], patch: list[Any], merge_key: str) -> list[Any]:
    result = list(original)
    for item in patch:
        if merge_key not in item:
            raise StrategicError(_format_missing_merge_key(item, merge_key))
        for index, old in enumerate(result):
            if merge_key in old and old[merge_key] == item[merge_key]:
                result[index] = _merge_maps(node.items, old, item)
                break
        else:
            result.append(item)
    return result


def _interleave(
    patched: list[Any], unpatched: list[Any], order: list[Any], live: list[Any], merge_key: str
) -> list[Any]:
    """Return the patched items in the order of the patch, with the unpatched items between them.

    An unpatched item comes before the first patched item that it preceded in the live list.
    """
    listed = [_get_identity(item, merge_key) for item in order]
    positions: dict[Any, int] = {}
    for index, item in enumerate(live):
        positions.setdefault(_get_identity(item, merge_key), index)
    patched = sorted(patched, key=lambda item: listed.index(_get_identity(item, merge_key)))
    remaining = sorted(unpatched, key=lambda item: positions.get(_get_identity(item, merge_key), -1))
    result: list[Any] = []
    for item in patched:
        position = positions.get(_get_identity(item, merge_key))
        while (
            remaining
            and position is not None
            and positions.get(_get_identity(remaining[0], merge_key), position) < position
        ):
            result.append(remaining.pop(0))
        result.append(item)
    return result + remaining


def _get_identity(item: Any, merge_key: str) -> Any:
    value = item.get(merge_key) if type(item) is dict else item
    return format_go(value) if type(value) in (dict, list) else value  # A merge key should not be a map or a list.


def _get_child(node: Node | None, key: str) -> Node | None:
    child = node.child(key) if node is not None else None
    return child if child is not None and child.go is not None else None


def _get_strategies(node: Node) -> tuple[str, ...]:
    strategies: tuple[str, ...] = node.go.strategy
    return strategies


def _set_value(result: dict[str, Any], key: str, value: Any) -> None:
    plain_value = _drop_directives(value)
    if plain_value is _DROPPED:
        result.pop(key, None)
    else:
        result[key] = plain_value


_DROPPED: Any = object()


def _drop_directives(value: Any) -> Any:
    if type(value) is dict:
        if _PATCH in value:
            return _DROPPED
        members = {key: _drop_directives(inner) for key, inner in value.items()}
        return {key: inner for key, inner in members.items() if inner is not _DROPPED}
    if type(value) is list:
        return [item for item in map(_drop_directives, value) if item is not _DROPPED]
    return value


def _drop_nulls(value: Any) -> Any:
    if type(value) is dict:
        return {key: _drop_nulls(inner) for key, inner in value.items() if inner is not None}
    if type(value) is list:
        return [_drop_nulls(item) for item in value]
    return value


def _format_unknown_directive(item: dict[str, Any]) -> str:
    directive = item[_PATCH]
    if type(directive) is not str:  # Go prints a value that is not a string this way.
        directive = f"%!s({_get_go_kind(directive)}={format_go(directive)})" if directive is not None else "%!s(<nil>)"
    return f"unknown patch type: {directive} in map: {format_go(item)}"


def _format_missing_merge_key(item: Any, merge_key: str) -> str:
    return f"map: {format_go(item)} does not contain declared merge key: {merge_key}"


def _get_go_kind(value: Any) -> str:
    return {
        dict: "map[string]interface {}",
        list: "[]interface {}",
        str: "string",
        bool: "bool",
        int: "int64",
        float: "float64",
    }[type(value)]
