"""Detect an apply that would change nothing, by the values of the fields that our managedFields entry owns."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from fairlead.writes.json_patch import MISSING, json_equal

_IDENTITY = {"apiVersion", "kind"}  # Every payload has them, and no manager owns them.
_NAMES = {"name", "namespace"}


def digest(value: Any) -> bytes:
    """Return a hash of a JSON value. Equal values have equal hashes."""
    return hashlib.blake2b(msgspec.json.encode(value, order="deterministic"), digest_size=16).digest()


def find_apply_entry(obj: Mapping[str, Any], manager: str, api_version: str | None = None) -> dict[str, Any] | None:
    """Return the managedFields entry of a manager with the operation Apply and without a subresource, or None.

    With `api_version`, return only an entry of that version.
    """
    for entry in (obj.get("metadata") or {}).get("managedFields") or ():
        is_ours = entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource")
        if is_ours and api_version in (None, entry.get("apiVersion")):
            return dict(entry)
    return None


def extract_owned_fields(obj: Mapping[str, Any], manager: str, api_version: str) -> Any:
    """Return the part of `obj` that the manager's Apply entry owns, with the present values.

    Items of keyed lists keep their present order. Return MISSING if there is no such entry.
    """
    entry = find_apply_entry(obj, manager, api_version)
    if entry is None or not entry.get("fieldsV1"):
        return MISSING
    return _project(entry.get("fieldsV1") or {}, obj)


def is_no_op(payload: Mapping[str, Any], obj: Mapping[str, Any], manager: str) -> bool:
    """Return whether an apply of the payload would change no value of `obj`.

    True means that we own exactly the payload's paths, with its values and order. The result may be False although the
    server would change nothing, for example if a quantity is written differently. It is never True if a value would
    change, or if a field of ours would lose its owner.

    An empty map in the payload is ignored where the object has a map of another manager: the apply would only add us as
    a second owner, again after each write of the other manager.
    """
    owned_fields = extract_owned_fields(obj, manager, str(payload.get("apiVersion")))
    if owned_fields is MISSING:
        return False
    metadata = {key: value for key, value in (payload.get("metadata") or {}).items() if key not in _NAMES}
    body = {key: value for key, value in payload.items() if key not in _IDENTITY | {"metadata"}}
    return _agrees({**body, "metadata": metadata} if metadata else body, owned_fields, obj)


def _agrees(payload: Any, owned_fields: Any, live: Any) -> bool:
    if isinstance(payload, dict) and isinstance(owned_fields, dict):
        live_map = live if isinstance(live, dict) else {}
        return all(
            _agrees(payload.get(key, MISSING), owned_fields.get(key, MISSING), live_map.get(key, MISSING))
            for key in payload.keys() | owned_fields.keys()
        )
    if owned_fields is MISSING:
        # An empty map requires nothing where a map exists, and nobody owns an empty keyed list.
        if isinstance(payload, dict) and isinstance(live, dict):
            return all(_agrees(item, MISSING, live.get(key, MISSING)) for key, item in payload.items())
        return payload is MISSING or (payload == [] and live == [])
    if isinstance(payload, list) and isinstance(owned_fields, list):
        return len(payload) == len(owned_fields) and all(
            _agrees(*pair, MISSING) for pair in zip(payload, owned_fields, strict=True)
        )
    return payload is not MISSING and (json_equal(payload, owned_fields) or (payload == [] and owned_fields == {}))


def _project(fields: Mapping[str, Any], value: Any) -> Any:
    """Return the part of the value that the FieldsV1 `fields` contains."""
    children = [key for key in fields if key != "."]
    if not children:
        return {} if value is MISSING else value  # An owned field that is not stored was empty.
    if isinstance(value, dict):
        return {key[2:]: _project(fields[key], value.get(key[2:], MISSING)) for key in children if key[:2] == "f:"}
    if isinstance(value, list):
        return list(_project_items(fields, children, value))
    return MISSING


def _project_items(fields: Mapping[str, Any], children: list[str], value: list[Any]) -> Iterator[Any]:
    keys = [(msgspec.json.decode(key[2:]), fields[key]) for key in children if key[:2] == "k:"]
    values = [msgspec.json.decode(key[2:]) for key in children if key[:2] == "v:"]
    for item in value:
        if any(json_equal(item, owned_item) for owned_item in values):
            yield item
        elif isinstance(item, dict):
            for key, owned_item in keys:
                if all(json_equal(item.get(name, MISSING), expected) for name, expected in key.items()):
                    yield _project(owned_item, item)
