"""Functions that write to an API server without races: one for each kind of write that a controller makes.

- `apply`, `apply_all`: create and update children by server-side apply.
- `prune`: delete children that are no longer needed.
- `create_only`: create an object once, and leave it to others afterwards.
- `decide`: change fields of an object depending on the values of its other fields.
- `defaults.fill`: set fields that a user omitted.
- `status.write_status`: write status fields and conditions.
- `finalizers.add`, `finalizers.remove`: add and remove our own finalizer.
- `delete`: delete exactly the object that was read.
- `migrate`: move fields from Update to Apply ownership.

All of them take a `Writer`. The package can be used without the rest of fairlead's runtime.

Example:
    writer = Writer(client, World(), "my-operator")
    obj = await apply(writer, payload, owner=parent)
"""

from fairlead.writes.apply import apply, apply_all
from fairlead.writes.create import create_only
from fairlead.writes.decide import Decision, decide
from fairlead.writes.delete import delete
from fairlead.writes.draft import Draft
from fairlead.writes.errors import (
    DecisionContention,
    DuplicatePayload,
    ForeignObject,
    ImmutableField,
    ImpureDecision,
    ObjectChanged,
    ObjectDeleted,
    ObjectDeleting,
    ObjectReplaced,
    PatchTestMismatch,
    ReadValueInPayload,
    StatusSuperseded,
    UndeclaredField,
    WriteError,
)
from fairlead.writes.local_cache import LocalCache
from fairlead.writes.migrate import MigrationResult, migrate
from fairlead.writes.prune import prune
from fairlead.writes.status import StatusReport
from fairlead.writes.writer import Writer

__all__ = [
    "Decision",
    "DecisionContention",
    "Draft",
    "DuplicatePayload",
    "ForeignObject",
    "ImmutableField",
    "ImpureDecision",
    "LocalCache",
    "MigrationResult",
    "ObjectChanged",
    "ObjectDeleted",
    "ObjectDeleting",
    "ObjectReplaced",
    "PatchTestMismatch",
    "ReadValueInPayload",
    "StatusReport",
    "StatusSuperseded",
    "UndeclaredField",
    "WriteError",
    "Writer",
    "apply",
    "apply_all",
    "create_only",
    "decide",
    "delete",
    "migrate",
    "prune",
]
