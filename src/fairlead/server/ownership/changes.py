"""The fields that a write changes, and how the managedFields entries of all managers change with them."""

from collections.abc import Iterable
from typing import Any, Final

from fairlead.api.fields import FieldSet, path
from fairlead.api.fields.tries import (
    LEAF,
    Trie,
    difference_of_roots,
    intersection_of_roots,
    recursive_difference,
    union_of_roots,
)
from fairlead.server.ownership.comparison import Comparison, compare
from fairlead.server.ownership.conformance import TypedError, conforms, describe_problems
from fairlead.server.ownership.field_write import FieldWrite
from fairlead.server.ownership.kind_versions import KindVersions, convert_to, find_merge_schema, get_merge_schema
from fairlead.server.ownership.managed_fields import ManagedFields, ManagedFieldsEntry
from fairlead.server.ownership.merge_schema import MergeSchema
from fairlead.server.ownership.schema_reconciliation import reconcile_field_set

_METADATA: Final = "name namespace creationTimestamp selfLink uid clusterName generation managedFields resourceVersion"
_NEVER_OWNED: Final = FieldSet.of(
    path("apiVersion"), path("kind"), path("metadata"), *[path("metadata", name) for name in _METADATA.split()]
)


class Changes:
    """The difference between the old and the new object of a write, computed on demand for each API version.

    Reset fields are left out: those that the endpoint never changes, such as the status on the main endpoint.
    """

    def __init__(self, old: dict[str, Any], new: dict[str, Any], write: FieldWrite) -> None:
        self._old, self._new, self._write = old, new, write
        self._comparisons: dict[str, Comparison] = {}
        self._added_or_modified: dict[str, Trie] = {}
        self.has_changes = bool(self._compare(write.api_version))

    def at_version(self, api_version: str) -> Comparison:
        """Return the added, modified and removed fields at a served API version."""
        if api_version not in self._comparisons:
            self._compare(api_version)
        return self._comparisons[api_version]

    def added_or_modified(self, api_version: str) -> Trie:
        """Return the fields that the write added or modified, at a served API version."""
        fields = self._added_or_modified.get(api_version)
        if fields is None:
            comparison = self.at_version(api_version)
            fields = union_of_roots(comparison.added, comparison.modified)
            self._added_or_modified[api_version] = fields
        return fields

    def _compare(self, api_version: str) -> Comparison:
        """Compare the two objects at an API version. Return the difference including the reset fields."""
        old, new, write = self._old, self._new, self._write
        if api_version != write.api_version:
            old = convert_to(write.versions, old, api_version, "failed to convert old object: ")
            new = convert_to(write.versions, new, api_version, "failed to convert new object: ")
        comparison = compare(get_merge_schema(write.versions, api_version), old, new)
        self._comparisons[api_version] = comparison
        reset = write.reset_trie
        if reset and (write.resets_all_versions or api_version == write.api_version):
            tries = (comparison.added, comparison.modified, comparison.removed)
            self._comparisons[api_version] = Comparison(*[recursive_difference(trie, reset) for trie in tries])
        return comparison


def check_conformance(schema: MergeSchema, obj: dict[str, Any], message: str, *, allow_duplicates: bool) -> None:
    """Raise TypedError if `obj` does not conform to the schema.

    `message` is the format of the error message; its placeholder is filled with the name of the object.
    """
    if conforms(schema, obj, allow_duplicates=allow_duplicates):
        return
    api_version, kind = obj.get("apiVersion") or "", obj.get("kind") or ""
    group_version = api_version if "/" in api_version else f"/{api_version}"
    metadata = obj.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    described = f"{names.get('namespace') or ''}/{names.get('name') or ''}; {group_version}, Kind={kind}"
    problems = describe_problems(schema, obj, allow_duplicates=allow_duplicates)
    raise TypedError(f"{message.format(described)}: {problems}")


def reconcile_entries(
    managed_fields: ManagedFields, live: dict[str, Any], versions: KindVersions
) -> dict[str, ManagedFieldsEntry]:
    """Return the managedFields entries by identity, with field sets adapted to the current schemas.

    Entries of versions that are no longer served are dropped.
    """
    entries: dict[str, ManagedFieldsEntry] = {}
    for entry in managed_fields:
        schema = find_merge_schema(versions, entry.api_version)
        if schema is None:
            continue
        convert_to(versions, live, entry.api_version)
        if entry.reconciled_with is not schema:
            trie = reconcile_field_set(schema, entry.fields.trie)
            if trie is not entry.fields.trie:
                entry = entry.with_fields(FieldSet(trie))
            entry.reconciled_with = schema
        entries[entry.identity] = entry
    return entries


def find_conflicts(
    entries: Iterable[ManagedFieldsEntry], changes: Changes
) -> list[tuple[ManagedFieldsEntry, FieldSet]]:
    """Return the entries that own fields which the write changed, each with these fields."""
    conflicts = []
    for entry in entries:
        changed_fields = changes.added_or_modified(entry.api_version)
        if changed_fields:
            fields = intersection_of_roots(entry.fields.trie, changed_fields)
            if fields:
                conflicts.append((entry, FieldSet(fields)))
    return conflicts


def remove_changed_fields(entry: ManagedFieldsEntry, changes: Changes) -> ManagedFieldsEntry:
    """Return the entry without the fields that the write changed or removed."""
    fields = entry.fields
    for lost in (changes.added_or_modified(entry.api_version), changes.at_version(entry.api_version).removed):
        if lost:
            remaining = difference_of_roots(fields.trie, lost)
            fields = fields if remaining is fields.trie else FieldSet(remaining)
    result = entry.with_fields(fields)
    if result is not entry:
        result.reconciled_with = entry.reconciled_with
    return result


def remove_unownable_fields(fields: Trie, reset: Trie = LEAF) -> FieldSet:
    """Return `fields` without the fields that no manager may own: `reset` fields, names, versions and the uid."""
    return FieldSet(difference_of_roots(recursive_difference(fields, reset) if reset else fields, _NEVER_OWNED.trie))
