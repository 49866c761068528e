"""Pruning: remove the fields that an applier dropped from its configuration."""

from typing import Any, Final

from fairlead.api.fields.tries import (
    LEAF,
    Trie,
    difference_of_roots,
    intersection_of_roots,
    is_superset_of_root,
    union_of_roots,
)
from fairlead.server.ownership.field_extraction import extract_applied_fields
from fairlead.server.ownership.kind_versions import KindVersions, convert_to, get_merge_schema
from fairlead.server.ownership.managed_fields import ManagedFieldsEntry
from fairlead.server.ownership.merge_schema import MergeSchema
from fairlead.server.ownership.merging import remove
from fairlead.server.ownership.schema_reconciliation import ensure_named_fields_are_members

_FAILED: Final = "failed to prune fields:"
_MERGED: Final = "failed to convert merged object"
_PRUNED: Final = "failed to convert pruned object"


def prune_dropped_fields(
    merged: dict[str, Any],
    last: ManagedFieldsEntry | None,
    entries: dict[str, ManagedFieldsEntry],
    applied: ManagedFieldsEntry,
    versions: KindVersions,
) -> Any:
    """Return `merged` without the fields that the applier's last apply set and this apply omits.

    Fields with another owner stay. A list item is removed even if writers other than appliers added fields to it. A
    field without an owner stays, unless it is in such an item. `entries` contains `applied`, the applier's new entry.
    """
    if last is None or not last.fields:
        return merged
    has_one_version = all(entry.api_version == last.api_version for entry in entries.values())
    if has_one_version and is_superset_of_root(applied.fields.trie, last.fields.trie):
        return merged  # Nothing was dropped.
    api_version = last.api_version
    schema = get_merge_schema(versions, api_version)
    before = convert_to(versions, merged, api_version, f"{_FAILED} {_MERGED} to last applied version: ")
    dropped = ensure_named_fields_are_members(schema, last.fields.trie)
    pruned = remove(schema, before, dropped)
    pruned = _add_back_owned_fields(before, pruned, api_version, entries, versions)
    pruned = convert_to(
        versions, pruned, api_version, f"{_FAILED} failed add back dangling items: {_PRUNED} to last applied version: "
    )
    removed = difference_of_roots(_extract_fields(schema, before), _extract_fields(schema, pruned))
    result = remove(schema, before, intersection_of_roots(removed, dropped))
    return convert_to(versions, result, applied.api_version, f"{_FAILED} ")


def _add_back_owned_fields(
    before: Any, pruned: Any, api_version: str, entries: dict[str, ManagedFieldsEntry], versions: KindVersions
) -> Any:
    """Return `pruned` with all fields of `before` that have an owner.

    The fields at `api_version` are added first, because conversion may need them.
    """
    owned_by_version: dict[str, Trie] = {api_version: LEAF}
    for entry in entries.values():
        owned_by_version[entry.api_version] = union_of_roots(
            owned_by_version.get(entry.api_version, LEAF), entry.fields.trie
        )
    for version, fields in owned_by_version.items():
        if version == api_version and not fields:
            continue
        schema = get_merge_schema(versions, version)
        prefix = f"{_FAILED} failed add back owned items:"
        before = convert_to(versions, before, version, f"{prefix} {_MERGED} at version {version}: ")
        pruned = convert_to(versions, pruned, version, f"{prefix} {_PRUNED} at version {version}: ")
        remaining = union_of_roots(_extract_fields(schema, pruned), ensure_named_fields_are_members(schema, fields))
        pruned = remove(schema, before, difference_of_roots(_extract_fields(schema, before), remaining))
    return pruned


def _extract_fields(schema: MergeSchema, value: Any) -> Trie:
    return ensure_named_fields_are_members(schema, extract_applied_fields(schema, value) or LEAF)
