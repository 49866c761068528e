"""Strategic merge patches: a merge patch that knows from the Go tags which lists merge by a key.

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
    """The patch makes no sense; the real server answers the message with a bare 500."""


class BadFormat(StrategicError):
    """A directive is malformed; the real server answers the message with a 400."""


def apply(node: Node, original: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """The original with the patch merged in. Neither is changed. Raises StrategicError."""
    return _map(node, original, patch)


def _map(node: Node | None, original: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    if _PATCH in patch:
        if patch[_PATCH] == "replace":
            return {key: value for key, value in patch.items() if key != _PATCH}
        if patch[_PATCH] == "delete":
            return {}
        raise StrategicError(_unknown_directive(patch))
    made = dict(original)
    rest = dict(patch)
    if _RETAIN in rest:
        _apply_retain_keys(made, rest)
    if _ORDER[:-1] in rest:
        raise BadFormat(_BAD_ORDER)
    if _DELETE[:-1] in rest:
        raise BadFormat(_BAD_PRIMITIVES)
    for key in [key for key in rest if key.startswith(_ORDER)]:
        _merge_in_order(node, made, rest, key)
    for key, value in rest.items():
        deleting = key.startswith(_DELETE)
        if deleting:
            key = key.removeprefix(_DELETE)
        if value is None:
            made.pop(key, None)
            continue
        if key not in made or type(made[key]) is not type(value):
            if not deleting:
                _set_value(made, key, _drop_nulls(value))
            continue
        child = _child(node, key)
        if type(value) is dict:
            replace = child is not None and "replace" in _strategies(child)
            made[key] = value if replace else _map(child, made[key], value)
        elif type(value) is list:
            made[key] = _list(child, made[key], value, deleting)
        else:
            _set_value(made, key, value)
    return made


def _apply_retain_keys(made: dict[str, Any], rest: dict[str, Any]) -> None:
    """Drop what the directive does not name; a patch may only set what it does name."""
    names = rest.pop(_RETAIN)
    if type(names) is not list:
        raise BadFormat(_BAD_RETAIN)
    for key, value in rest.items():
        if value is not None and not key.startswith((_DELETE, _ORDER)) and key not in names:
            raise BadFormat(_BAD_RETAIN)
    for key in [key for key in made if key not in names]:
        del made[key]


def _merge_in_order(node: Node | None, made: dict[str, Any], rest: dict[str, Any], key: str) -> None:
    """Merge the list beside an order directive and put its items in that order."""
    order = rest.pop(key) or []
    key = key.removeprefix(_ORDER)
    child = _child(node, key)
    merge_key = child.go.merge_key if child is not None else ""
    before, patch = made.get(key), rest.get(key)
    for value in (order, before, patch):
        if value is not None and type(value) is not list:
            raise StrategicError(f"expected a []interface {{}}, but received a {_go_kind(value)}")
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
        merged = _list(child, before, patch, False)
    named = [_identity(item, merge_key) for item in order]
    ours = [item for item in merged or () if _identity(item, merge_key) in named]
    others = [item for item in merged or () if _identity(item, merge_key) not in named]
    made[key] = _interleave(ours, others, order, before or [], merge_key)
    rest.pop(key, None)


def _expect_merge_keys(order: list[Any], merge_key: str) -> None:
    for index, item in enumerate(order):
        if type(item) is not dict:
            raise StrategicError(f"value for key {index} is not a map")
        if merge_key not in item:
            raise StrategicError(_missing_merge_key(item, merge_key))


def _expect_same_order(patch: list[Any], order: list[Any], merge_key: str) -> None:
    """The items of a patch must stand in its order directive, in that order."""
    kept = [item for item in patch if not (type(item) is dict and item.get(_PATCH) == "delete")]
    at = 0
    for item in order:
        if at < len(kept) and _identity(kept[at], merge_key) == _identity(item, merge_key):
            at += 1
    if at < len(kept):
        told = f"The order in patch list:\n{format_go(patch)}\n doesn't match {_ORDER[:-1]} list:\n{format_go(order)}\n"
        raise StrategicError(told)


def _list(node: Node | None, original: list[Any], patch: list[Any], deleting: bool) -> list[Any]:
    if node is None or not (deleting or "merge" in _strategies(node)):
        return patch
    if not original and not patch:
        return original
    merge_key = node.go.merge_key
    if not any(type(item) is dict for item in [*original, *patch]):
        if deleting:
            return [item for item in original if item not in patch]
        found: dict[Any, Any] = {}
        for item in [*original, *patch]:
            found.setdefault(_identity(item, ""), item)
        merged = list(found.values())
    else:
        if not all(type(item) is dict for item in [*original, *patch]):
            raise StrategicError(f"list element types are not identical: {format_go([original, patch])}")
        if not merge_key:
            raise StrategicError(f"cannot merge lists without merge key for {node.go.type}")
        original, patch = _apply_item_directives(original, patch, merge_key)
        merged = _merge_by_key(node, original, patch, merge_key)
    named = [_identity(item, merge_key) for item in patch]
    ours = [item for item in merged if _identity(item, merge_key) in named]
    others = [item for item in merged if _identity(item, merge_key) not in named]
    return _interleave(ours, others, patch, original, merge_key)


def _apply_item_directives(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Act on the items that are directives themselves."""
    plain, replace = [], False
    for item in patch:
        directive = item.get(_PATCH) if type(item) is dict else None
        if directive is None:
            plain.append(item)
        elif directive == "delete":
            if merge_key not in item:
                raise StrategicError(_missing_merge_key(item, merge_key))
            original = [one for one in original if _identity(one, merge_key) != _identity(item, merge_key)]
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise StrategicError("merging lists cannot yet be specified in the patch")
        else:
            raise StrategicError(_unknown_directive(item))
    return (plain, []) if replace else (original, plain)


def _merge_by_key(node: Node, original: list[Any], patch: list[Any], merge_key: str) -> list[Any]:
    made = list(original)
    for item in patch:
        if merge_key not in item:
            raise StrategicError(_missing_merge_key(item, merge_key))
        for index, one in enumerate(made):
            if merge_key in one and one[merge_key] == item[merge_key]:
                made[index] = _map(node.items, one, item)
                break
        else:
            made.append(item)
    return made


def _interleave(ours: list[Any], others: list[Any], order: list[Any], live: list[Any], merge_key: str) -> list[Any]:
    """The patch's items in its order, each other item before the first of them that it preceded in the live list."""
    wanted = [_identity(item, merge_key) for item in order]
    stood: dict[Any, int] = {}
    for index, item in enumerate(live):
        stood.setdefault(_identity(item, merge_key), index)
    ours = sorted(ours, key=lambda item: wanted.index(_identity(item, merge_key)))
    others = sorted(others, key=lambda item: stood.get(_identity(item, merge_key), -1))
    made: list[Any] = []
    left = list(others)
    for item in ours:
        place = stood.get(_identity(item, merge_key))
        while left and place is not None and stood.get(_identity(left[0], merge_key), place) < place:
            made.append(left.pop(0))
        made.append(item)
    return made + left


def _identity(item: Any, merge_key: str) -> Any:
    value = item.get(merge_key) if type(item) is dict else item
    return format_go(value) if type(value) in (dict, list) else value  # which no key should be


def _child(node: Node | None, key: str) -> Node | None:
    child = node.child(key) if node is not None else None
    return child if child is not None and child.go is not None else None


def _strategies(node: Node) -> tuple[str, ...]:
    found: tuple[str, ...] = node.go.strategy
    return found


def _set_value(made: dict[str, Any], key: str, value: Any) -> None:
    kept = _drop_directives(value)
    if kept is _DROPPED:
        made.pop(key, None)
    else:
        made[key] = kept


_DROPPED: Any = object()


def _drop_directives(value: Any) -> Any:
    if type(value) is dict:
        if _PATCH in value:
            return _DROPPED
        kept = {key: _drop_directives(inner) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if inner is not _DROPPED}
    if type(value) is list:
        return [kept for kept in map(_drop_directives, value) if kept is not _DROPPED]
    return value


def _drop_nulls(value: Any) -> Any:
    if type(value) is dict:
        return {key: _drop_nulls(inner) for key, inner in value.items() if inner is not None}
    if type(value) is list:
        return [_drop_nulls(item) for item in value]
    return value


def _unknown_directive(item: dict[str, Any]) -> str:
    directive = item[_PATCH]
    if type(directive) is not str:  # as Go prints what is no string as one
        directive = f"%!s({_go_kind(directive)}={format_go(directive)})" if directive is not None else "%!s(<nil>)"
    return f"unknown patch type: {directive} in map: {format_go(item)}"


def _missing_merge_key(item: Any, merge_key: str) -> str:
    return f"map: {format_go(item)} does not contain declared merge key: {merge_key}"


def _go_kind(value: Any) -> str:
    return {
        dict: "map[string]interface {}",
        list: "[]interface {}",
        str: "string",
        bool: "bool",
        int: "int64",
        float: "float64",
    }[type(value)]
