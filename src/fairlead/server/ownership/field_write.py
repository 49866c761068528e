"""One write as field ownership sees it."""

from typing import NamedTuple

from fairlead.api.fields import FieldSet
from fairlead.api.fields.tries import LEAF, Trie
from fairlead.server.ownership.kind_versions import KindVersions, get_merge_schema
from fairlead.server.ownership.managed_fields import ManagedFieldsEntry, Operation
from fairlead.server.ownership.merge_schema import MergeSchema

# The name of an entry whose manager is not known.
_UNKNOWN_MANAGER = "unknown"


class FieldWrite(NamedTuple):
    """Who writes at which version and path, and when.

    `reset_fields` are the fields that this path never changes, like the status on the main path. The writer never owns
    them. `resets_all_versions` says whether that also holds for the entries of the kind's other versions.
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
        """The merge schema of the version of the write. Raises TypedError if it is not served."""
        return get_merge_schema(self.versions, self.api_version)

    @property
    def reset_trie(self) -> Trie:
        return LEAF if self.reset_fields is None else self.reset_fields.trie

    def build_entry(self, operation: Operation, fields: FieldSet, time: str | None = None) -> ManagedFieldsEntry:
        """Return the entry of this writer."""
        manager = self.manager or _UNKNOWN_MANAGER
        return ManagedFieldsEntry(manager, operation, self.api_version, fields, subresource=self.subresource, time=time)
