"""Whether an apply would change anything, told from the object and our own managedFields entry."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from fairlead.writes.jsonpatch import MISSING, same

_IDENTITY = {"apiVersion", "kind"}  # in every payload, owned by nobody
_NAMES = {"name", "namespace"}


def digest(value: Any) -> bytes:
    """Sixteen bytes that stand for a plain value; equal for equal JSON."""
    return hashlib.blake2b(msgspec.json.encode(value, order="deterministic"), digest_size=16).digest()


def our_entry(obj: Mapping[str, Any], manager: str, api_version: str | None = None) -> dict[str, Any] | None:
    """The Apply entry of that field manager on the main endpoint (of that apiVersion, if one is given)."""
    for entry in (obj.get("metadata") or {}).get("managedFields") or ():
        ours = entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource")
        if ours and api_version in (None, entry.get("apiVersion")):
            return dict(entry)
    return None


def owned(obj: Mapping[str, Any], manager: str, api_version: str) -> Any:
    """What our Apply entry owns of the object: its paths with their values of now, keyed items in their order of now.

    MISSING without such an entry.
    """
    entry = our_entry(obj, manager, api_version)
    if entry is None or not entry.get("fieldsV1"):
        return MISSING
    return _project(entry.get("fieldsV1") or {}, obj)


def unchanged(payload: Mapping[str, Any], obj: Mapping[str, Any], manager: str) -> bool:
    """Whether applying the payload again would change no value: we own exactly its paths, with its values and order.

    May say no where the server would see no change (a quantity spelled otherwise); never says yes where a value would
    change, or one of ours be nobody's. An empty map where another has one asks for nothing: a server would only note us
    as its owner too, again after each foreign write to it.
    """
    mine = owned(obj, manager, str(payload.get("apiVersion")))
    if mine is MISSING:
        return False
    metadata = {key: value for key, value in (payload.get("metadata") or {}).items() if key not in _NAMES}
    body = {key: value for key, value in payload.items() if key not in _IDENTITY | {"metadata"}}
    return _agrees({**body, "metadata": metadata} if metadata else body, mine, obj)


def _agrees(payload: Any, mine: Any, live: Any) -> bool:
    if isinstance(payload, dict) and isinstance(mine, dict):
        found = live if isinstance(live, dict) else {}
        return all(
            _agrees(payload.get(key, MISSING), mine.get(key, MISSING), found.get(key, MISSING))
            for key in payload.keys() | mine.keys()
        )
    if mine is MISSING:  # an empty map asks for nothing where there is one, and an empty keyed list is owned by nobody
        if isinstance(payload, dict) and isinstance(live, dict):
            return all(_agrees(item, MISSING, live.get(key, MISSING)) for key, item in payload.items())
        return payload is MISSING or (payload == [] and live == [])
    if isinstance(payload, list) and isinstance(mine, list):
        return len(payload) == len(mine) and all(_agrees(*pair, MISSING) for pair in zip(payload, mine, strict=True))
    return payload is not MISSING and (same(payload, mine) or (payload == [] and mine == {}))


def _project(fields: Mapping[str, Any], value: Any) -> Any:
    below = [key for key in fields if key != "."]
    if not below:
        return {} if value is MISSING else value  # owned and not stored: it was empty
    if isinstance(value, dict):
        return {key[2:]: _project(fields[key], value.get(key[2:], MISSING)) for key in below if key[:2] == "f:"}
    if isinstance(value, list):
        return list(_items(fields, below, value))
    return MISSING


def _items(fields: Mapping[str, Any], below: list[str], value: list[Any]) -> Iterator[Any]:
    keys = [(msgspec.json.decode(key[2:]), fields[key]) for key in below if key[:2] == "k:"]
    values = [msgspec.json.decode(key[2:]) for key in below if key[:2] == "v:"]
    for item in value:
        if any(same(item, mine) for mine in values):
            yield item
        elif isinstance(item, dict):
            for key, mine in keys:
                if all(same(item.get(name, MISSING), wanted) for name, wanted in key.items()):
                    yield _project(mine, item)
