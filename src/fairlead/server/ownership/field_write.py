"""`FieldWrite`: the facts about one write that decide which fields its manager owns."""

from typing import NamedTuple

from fairlead.api.fields import FieldSet
from fairlead.api.fields.tries import LEAF, Trie
from fairlead.server.ownership.kind_versions import KindVersions, get_merge_schema
from fairlead.server.ownership.managed_fields import ManagedFieldsEntry, Operation
from fairlead.server.ownership.merge_schema import MergeSchema

# The name of an entry whose manager is not known.
_UNKNOWN_MANAGER = "unknown"


class FieldWrite(NamedTuple):
    """The manager, API version, endpoint and time of one write.

    `reset_fields` are the fields that this endpoint never changes, like the status on the main endpoint. The writer
    never owns them. `resets_all_versions`: the entries of the kind's other versions lose these fields too.
    """

    manager: str
    api_version: str
    versions: KindVersions
    time: str
    subresource: str = ""
    reset_fields: FieldSet | None = None
    resets_all_versions: bool = True

    @property
    def schema(self) -> MergeSchema:
        """The merge schema of the write's API version. Raises TypedError if that version is not served."""
        return get_merge_schema(self.versions, self.api_version)

    @property
    def reset_trie(self) -> Trie:
        return LEAF if self.reset_fields is None else self.reset_fields.trie

    def build_entry(self, operation: Operation, fields: FieldSet, time: str | None = None) -> ManagedFieldsEntry:
        """Return a managedFields entry of this writer for `fields`."""
        manager = self.manager or _UNKNOWN_MANAGER
        return ManagedFieldsEntry(manager, operation, self.api_version, fields, subresource=self.subresource, time=time)
