"""The write disciplines: each thing a controller writes has one safe way.

Usable alone: make a `Writer` from a client, a world and a field manager name, and pass it to the functions here.
"""

from fairlead.writes.apply import apply, apply_all
from fairlead.writes.decide import Decided, decide
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
from fairlead.writes.migrate import Migrated, migrate
from fairlead.writes.prune import prune
from fairlead.writes.seen import Seen
from fairlead.writes.shared import create_only
from fairlead.writes.status import Report
from fairlead.writes.writer import Writer

__all__ = [
    "Decided",
    "DecisionContention",
    "Draft",
    "DuplicatePayload",
    "ForeignObject",
    "ImmutableField",
    "ImpureDecision",
    "Migrated",
    "ObjectChanged",
    "ObjectDeleted",
    "ObjectDeleting",
    "ObjectReplaced",
    "PatchTestMismatch",
    "ReadValueInPayload",
    "Report",
    "Seen",
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
