"""Server-side apply."""

from typing import Any, NamedTuple

from fairlead.api.fields import FieldSet, Path, format_path
from fairlead.api.fields.tries import LEAF, recursive_difference
from fairlead.server.ownership import last_applied
from fairlead.server.ownership.changes import (
    Changes,
    check_conformance,
    find_conflicts,
    reconcile_entries,
    remove_changed_fields,
    remove_unownable_fields,
)
from fairlead.server.ownership.equality import equal
from fairlead.server.ownership.field_extraction import extract_applied_fields
from fairlead.server.ownership.field_write import FieldWrite
from fairlead.server.ownership.managed_fields import ManagedFields, ManagedFieldsEntry
from fairlead.server.ownership.merging import merge
from fairlead.server.ownership.pruning import prune_dropped_fields
from fairlead.server.ownership.updating import own_existing_fields


class ApplyResult(NamedTuple):
    """The object after an apply (the live object itself if nothing changed), and its managed fields."""

    object: dict[str, Any]
    managed: ManagedFields


class FieldConflict(Exception):
    """Raised if an apply without force would change fields that other managers own."""

    def __init__(self, conflicts: list[tuple[ManagedFieldsEntry, Path]]) -> None:
        super().__init__()
        self.conflicts = sorted(conflicts, key=lambda conflict: conflict[0].identity)

    @property
    def causes(self) -> list[dict[str, str]]:
        """The `causes` of the 409 Status, one per conflicting field."""
        return [
            {
                "reason": "FieldManagerConflict",
                "message": f"conflict with {entry.description}",
                "field": format_path(path),
            }
            for entry, path in self.conflicts
        ]

    @property
    def message(self) -> str:
        """The message of the 409 Status."""
        if len(self.conflicts) == 1:
            entry, path = self.conflicts[0]
            return f"Apply failed with 1 conflict: conflict with {entry.description}: {format_path(path)}"
        lines: list[str] = []
        previous: ManagedFieldsEntry | None = None
        for entry, path in self.conflicts:
            if entry is not previous:
                lines.append(f"conflicts with {entry.description}:")
                previous = entry
            lines.append(f"- {format_path(path)}")
        return f"Apply failed with {len(self.conflicts)} conflicts: " + "\n".join(lines)

    def __str__(self) -> str:
        return self.message


def apply(
    live: dict[str, Any] | None,
    managed_fields: ManagedFields,
    config: dict[str, Any],
    write: FieldWrite,
    *,
    force: bool,
) -> ApplyResult:
    """Return the object after applying `config` to `live` (None if there is none), and its managed fields.

    The caller checks that `config` has the kind and version of the request and no managedFields. The caller also adds
    defaults and validates, which an unchanged object does not need.
    Raises FieldConflict if an apply without `force` would change fields of other managers, and TypedError if an object
    does not conform to its schema.
    """
    old = write.versions.build_empty(write.api_version) if live is None else live
    if not managed_fields and live is not None:
        managed_fields = own_existing_fields(live, write)
    try:
        result = _apply(old, managed_fields, config, write, force=force)
    except FieldConflict as conflict:
        if write.manager != last_applied.MANAGER:
            raise
        unchanged = last_applied.find_unchanged_fields(old, write.api_version, write.schema)
        remaining = [item for item in conflict.conflicts if unchanged is None or item[1] not in unchanged]
        if remaining:
            raise FieldConflict(remaining) from None
        result = _apply(old, managed_fields, config, write, force=True)
    if write.manager == last_applied.MANAGER:
        return ApplyResult(last_applied.update_annotation(result.object, config), result.managed)
    return result


def _apply(
    live: dict[str, Any], managed_fields: ManagedFields, config: dict[str, Any], write: FieldWrite, *, force: bool
) -> ApplyResult:
    schema, api_version = write.schema, write.api_version
    check_conformance(schema, config, "failed to create typed patch object ({})", allow_duplicates=False)
    check_conformance(schema, live, "failed to create typed live object ({})", allow_duplicates=True)
    fields = extract_applied_fields(schema, config) or LEAF
    applied = write.build_entry("Apply", FieldSet(recursive_difference(fields, write.reset_trie)))
    other_entries = reconcile_entries(managed_fields, live, write.versions)
    last = other_entries.pop(applied.identity, None)
    merged = merge(schema, live, config)
    new = prune_dropped_fields(merged, last, {**other_entries, applied.identity: applied}, applied, write.versions)
    entries: dict[str, ManagedFieldsEntry] = {}
    is_changed = False
    if new is live:
        entries.update(other_entries)
    else:
        changes = Changes(live, new, write)
        if not force:
            conflicts = find_conflicts(other_entries.values(), changes)
            if conflicts:
                raise FieldConflict([(entry, path) for entry, paths in conflicts for path in paths])
        for identity, entry in other_entries.items():
            remaining = remove_changed_fields(entry, changes)
            if remaining.fields:
                entries[identity] = remaining
        is_changed = changes.has_changes or not equal(live, new)
    owned_fields = remove_unownable_fields(applied.fields.trie)
    if owned_fields:
        if (
            last is not None
            and last.api_version == api_version
            and last.fields == owned_fields
            and not owned_fields.has_large_numbers
        ):
            applied = last  # The fields are the same: reuse the entry, which is encoded already.
        else:
            applied = applied.with_fields(owned_fields).with_time(last.time if last is not None else None)
        entries[applied.identity] = applied.with_time(write.time) if is_changed else applied
    return ApplyResult(new if is_changed else live, tuple(entries.values()))
