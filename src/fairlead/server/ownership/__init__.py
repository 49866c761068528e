"""Field ownership: typed merge, server-side apply and managedFields.

`apply` computes an apply, `update` the managedFields after any other write. Both are pure functions of the objects and
a `FieldWrite`. `decode` and `encode` convert managedFields from and to JSON. The terms are those of
structured-merge-diff.
"""

from fairlead.server.ownership.applying import ApplyResult, FieldConflict, apply
from fairlead.server.ownership.conformance import TypedError
from fairlead.server.ownership.field_write import FieldWrite
from fairlead.server.ownership.kind_versions import KindVersions
from fairlead.server.ownership.managed_fields import (
    NO_MANAGED_FIELDS,
    ManagedFields,
    ManagedFieldsEntry,
    ManagedFieldsError,
    decode,
    encode,
    equal_except_times,
    have_same_order,
    read_submitted,
)
from fairlead.server.ownership.updating import update

__all__ = [
    "NO_MANAGED_FIELDS",
    "ApplyResult",
    "FieldConflict",
    "FieldWrite",
    "KindVersions",
    "ManagedFields",
    "ManagedFieldsEntry",
    "ManagedFieldsError",
    "TypedError",
    "apply",
    "decode",
    "encode",
    "equal_except_times",
    "have_same_order",
    "read_submitted",
    "update",
]
