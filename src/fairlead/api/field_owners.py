"""Which field managers own a field, by a path as in the history."""

import json
from collections.abc import Mapping
from typing import Any

from fairlead.api.field_changes import format_item, format_key, paths_overlap
from fairlead.api.fields import FieldSet, Path


def find_owners(obj: Mapping[str, Any], path: str) -> list[str]:
    """Return the field managers that own the field, something in it, or the atomic value that contains it.

    The path is one of `find_changes`, such as `spec.containers[name=app].image`. An object without managedFields gives
    an empty list. An entry that cannot be read is skipped.
    """
    owners = _find_owners(obj, path)
    if not owners and "[" in path:  # The server identifies the items of the list by other keys than the history.
        owners = _find_owners(obj, path.partition("[")[0])
    return owners


def _find_owners(obj: Mapping[str, Any], path: str) -> list[str]:
    owners = []
    for entry in (obj.get("metadata") or {}).get("managedFields") or ():
        try:
            fields = FieldSet.decode(entry.get("fieldsV1"))
        except ValueError:
            continue
        if any(paths_overlap(path, _to_history_path(leaf)) for leaf in fields.leaves()):
            owners.append(str(entry.get("manager", "")))
    return list(dict.fromkeys(owners))


def _to_history_path(path: Path) -> str:
    """Return a path of FieldsV1 as `find_changes` writes it. A set or an item without a known key ends the path."""
    result = ""
    for element in path:
        kind, text = element[0], element[2:]
        if kind == "f":
            result += format_key(text) if result else text
        elif kind == "k" and (item := format_item(json.loads(text))):
            result += item
        else:
            break
    return result
