"""Ownership of fields: typed merge, server-side apply, managedFields.

`apply` and `update` are the two ways to write; both are pure. `decode` and `encode` are managedFields on the wire.
"""

from fairlead.server.ownership.applying import Applied, FieldConflict, apply
from fairlead.server.ownership.conformance import TypedError
from fairlead.server.ownership.managed import (
    NOTHING,
    Entry,
    Managed,
    ManagedFieldsError,
    decode,
    encode,
    same_but_times,
    same_order,
    sent,
)
from fairlead.server.ownership.schemas import Schemas
from fairlead.server.ownership.updating import update

__all__ = [
    "NOTHING",
    "Applied",
    "Entry",
    "FieldConflict",
    "Managed",
    "ManagedFieldsError",
    "Schemas",
    "TypedError",
    "apply",
    "decode",
    "encode",
    "same_but_times",
    "same_order",
    "sent",
    "update",
]
