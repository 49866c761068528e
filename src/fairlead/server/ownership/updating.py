"""The managedFields after a create, replace or patch."""

from typing import Any

from fairlead.api.fields import FieldSet
from fairlead.api.fields.tries import union_of_roots
from fairlead.server.ownership.changes import (
    Changes,
    check_conformance,
    reconcile_entries,
    remove_changed_fields,
    remove_unownable_fields,
)
from fairlead.server.ownership.comparison import compare_with_empty
from fairlead.server.ownership.conformance import TypedError
from fairlead.server.ownership.field_write import FieldWrite
from fairlead.server.ownership.managed_fields import NO_MANAGED_FIELDS, ManagedFields, ManagedFieldsEntry

# A real server keeps this many Update entries. Every User-Agent makes one, and objects must not grow without limit.
MAX_UPDATE_ENTRIES = 10


def update(
    live: dict[str, Any] | None, managed_fields: ManagedFields, new: dict[str, Any], write: FieldWrite
) -> ManagedFields:
    """Return the managed fields after a write changed `live` (None for a create) to `new`.

    The writer owns the fields that it added or changed. Other managers lose these fields and the removed ones. If no
    one owns any field of an object, the object is not tracked until the next apply. If an object does not conform to
    its schema, the result is empty: such a write never fails because of managedFields.
    """
    if not managed_fields and live is not None and (live.get("metadata") or {}).get("uid"):
        return NO_MANAGED_FIELDS
    try:
        if live is None and not managed_fields:
            return _create(new, write)
        old = write.versions.build_empty(write.api_version) if live is None else live
        return _update(old, managed_fields, new, write)
    except TypedError:
        return NO_MANAGED_FIELDS


def own_existing_fields(live: dict[str, Any], write: FieldWrite) -> ManagedFields:
    """Return one entry, "before-first-apply", that owns all fields of an object without managedFields."""
    try:
        return _create(live, write._replace(manager="before-first-apply"))
    except TypedError as error:
        raise TypedError(f"failed to create manager for existing fields: {error}") from error


def _create(new: dict[str, Any], write: FieldWrite) -> ManagedFields:
    """Return the managed fields after a create.

    Like `_update` from an empty object, where no manager can lose a field.
    """
    schema = write.schema
    check_conformance(schema, new, "failed to convert new object ({}) to smd typed", allow_duplicates=True)
    added = compare_with_empty(schema, write.versions.build_empty(write.api_version), new)
    owned_fields = remove_unownable_fields(added, write.reset_trie)
    return (write.build_entry("Update", owned_fields, write.time),) if owned_fields else ()


def _update(
    old: dict[str, Any], managed_fields: ManagedFields, new: dict[str, Any], write: FieldWrite
) -> ManagedFields:
    schema = write.schema
    check_conformance(schema, new, "failed to convert new object ({}) to smd typed", allow_duplicates=True)
    check_conformance(schema, old, "failed to convert live object ({}) to smd typed", allow_duplicates=True)
    reconciled = reconcile_entries(managed_fields, old, write.versions)
    changes = Changes(old, new, write)
    entries: dict[str, ManagedFieldsEntry] = {}
    for identity, entry in reconciled.items():
        remaining = remove_changed_fields(entry, changes)
        if remaining.fields:
            entries[identity] = remaining
    owned_fields = remove_unownable_fields(changes.added_or_modified(write.api_version))
    if owned_fields:
        updated = write.build_entry("Update", owned_fields, write.time)
        previous = entries.get(updated.identity)
        if previous is not None:
            updated = updated.with_fields(FieldSet(union_of_roots(previous.fields.trie, owned_fields.trie)))
        entries[updated.identity] = updated
    return tuple(_cap_update_entries(entries).values())


def _cap_update_entries(entries: dict[str, ManagedFieldsEntry]) -> dict[str, ManagedFieldsEntry]:
    """If there are too many Update entries, merge the oldest ones of each version into one, "ancient-changes"."""
    updates = [entry for entry in entries.values() if entry.operation == "Update"]
    excess = len(updates) - MAX_UPDATE_ENTRIES
    if excess <= 0:
        return entries
    capped = dict(entries)
    oldest_by_version: dict[str, ManagedFieldsEntry] = {}
    for entry in sorted(updates, key=lambda item: (item.time or "", item.identity)):
        if excess <= 0:
            break
        version = entry.api_version
        if version not in oldest_by_version:
            oldest_by_version[version] = entry
            continue
        bucket = ManagedFieldsEntry("ancient-changes", "Update", version, entry.fields, time=entry.time)
        if bucket.identity not in capped:
            oldest = capped.pop(oldest_by_version[version].identity)
            capped[bucket.identity] = oldest
        capped[bucket.identity] = bucket.with_fields(capped[bucket.identity].fields | entry.fields)
        del capped[entry.identity]  # If this entry is the bucket itself, its fields are lost, as on a real server.
        excess -= 1
    return capped
