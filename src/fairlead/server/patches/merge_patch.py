"""JSON merge patch (RFC 7386): maps merge, null removes a key, every other value replaces."""

from typing import Any


def merge(live: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return the patched object. `live` is not changed, and the result shares its unchanged parts."""
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
            result[key] = drop_nulls(value)  # The live value is not a map, so the patch's value is a new one.
    return result


def drop_nulls(value: Any) -> Any:
    """Return a value without the null entries of its maps. Nulls in lists stay."""
    if isinstance(value, dict):
        return {k: drop_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [drop_nulls(v) for v in value]
    return value
