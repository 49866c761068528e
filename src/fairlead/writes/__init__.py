"""The write disciplines: each thing a controller writes has one safe way.

Usable alone: make a `Writer` from a client, a world and a field manager name, and pass it to the functions here.
"""

from fairlead.writes.apply import apply, apply_all
from fairlead.writes.decide import Decided, decide
from fairlead.writes.delete import delete
from fairlead.writes.draft import Draft
from fairlead.writes.errors import (
    Changed,
    Deleting,
    Foreign,
    Gone,
    Immutable,
    Impure,
    NotNamed,
    OnlyRead,
    Replaced,
    Superseded,
    TwoPayloads,
    Undecided,
    Untestable,
    WriteError,
)
from fairlead.writes.migrate import Migrated, migrate
from fairlead.writes.prune import prune
from fairlead.writes.seen import Seen
from fairlead.writes.shared import create_only
from fairlead.writes.status import Report
from fairlead.writes.writer import Writer

__all__ = [
    "Changed",
    "Decided",
    "Deleting",
    "Draft",
    "Foreign",
    "Gone",
    "Immutable",
    "Impure",
    "Migrated",
    "NotNamed",
    "OnlyRead",
    "Replaced",
    "Report",
    "Seen",
    "Superseded",
    "TwoPayloads",
    "Undecided",
    "Untestable",
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
