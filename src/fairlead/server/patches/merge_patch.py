"""JSON merge patch: maps merge, null removes, everything else replaces. Nulls inside a new map are dropped too."""

from typing import Any


def merge(live: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """The patched object; `live` is not changed and what stayed is shared."""
    result = dict(live)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
            continue
        current = result.get(key)
        if current is None:
            result[key] = drop_nulls(value)
        elif isinstance(current, dict):
            result[key] = merge(current, value) if isinstance(value, dict) else value
        else:
            result[key] = drop_nulls(value)  # not a map before: the patch's value stands as if it were new
    return result


def drop_nulls(value: Any) -> Any:
    """A value without the null entries of its maps; nulls in lists stay."""
    if isinstance(value, dict):
        return {k: drop_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [drop_nulls(v) for v in value]
    return value
