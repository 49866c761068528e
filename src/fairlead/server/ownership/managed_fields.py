"""Decoded managedFields: which manager owns which fields, and since when."""

import functools
from typing import Any, Final, Literal

from fairlead.api import gojson
from fairlead.api.fields import FieldSet
from fairlead.api.gojson import quote_go

Operation = Literal["Apply", "Update"]


class ManagedFieldsError(ValueError):
    """Raised for managedFields that cannot be decoded. The message is a real server's."""


class ManagedFieldsEntry:
    """One immutable managedFields entry: the fields that a manager owns by one operation.

    Its `identity` consists of the manager, the operation and the subresource, and for an Update also of the version. So
    an applier keeps its entry when it changes to another version.
    """

    __slots__ = (
        "_encoded",
        "api_version",
        "fields",
        "identity",
        "manager",
        "operation",
        "reconciled_with",
        "subresource",
        "time",
    )

    def __init__(
        self,
        manager: str,
        operation: Operation,
        api_version: str,
        fields: FieldSet,
        *,
        subresource: str = "",
        time: str | None = None,
    ) -> None:
        self.manager = manager
        self.operation: Operation = operation
        self.api_version = api_version
        self.subresource = subresource
        self.time = time
        self.fields = fields
        self.identity = build_identity(manager, operation, api_version, subresource)
        self.reconciled_with: Any = None  # the MergeSchema that `fields` was last reconciled with
        self._encoded: dict[str, Any] | None = None

    def with_fields(self, fields: FieldSet) -> "ManagedFieldsEntry":
        """Return this entry with other fields, or the entry itself if `fields` is the same object."""
        if fields is self.fields:
            return self
        return ManagedFieldsEntry(
            self.manager, self.operation, self.api_version, fields, subresource=self.subresource, time=self.time
        )

    def with_time(self, time: str | None) -> "ManagedFieldsEntry":
        """Return this entry with another time, or the entry itself if the time is equal."""
        if time == self.time:
            return self
        entry = ManagedFieldsEntry(
            self.manager, self.operation, self.api_version, self.fields, subresource=self.subresource, time=time
        )
        entry.reconciled_with = self.reconciled_with
        return entry

    @property
    def description(self) -> str:
        """The manager as conflict messages name it: `"m1"`, `"m1" using apps/v1`, `"m1" with subresource "status"`."""
        name = quote_go(self.manager)
        if self.subresource:
            name += f" with subresource {quote_go(self.subresource)}"
        return f"{name} using {self.api_version}" if self.operation == "Update" else name

    def encode(self) -> dict[str, Any]:
        """Return the entry as JSON. Every call returns the same dict: do not change it."""
        if self._encoded is None:
            encoded: dict[str, Any] = {"manager": self.manager} if self.manager else {}
            encoded["operation"] = self.operation
            encoded["apiVersion"] = self.api_version
            if self.time is not None:
                encoded["time"] = self.time
            encoded["fieldsType"] = "FieldsV1"
            encoded["fieldsV1"] = self.fields.encode()
            if self.subresource:
                encoded["subresource"] = self.subresource
            self._encoded = encoded
        return self._encoded

    def __repr__(self) -> str:
        return f"ManagedFieldsEntry({self.description}, {self.operation}, {self.fields!r})"


ManagedFields = tuple[ManagedFieldsEntry, ...]
NO_MANAGED_FIELDS: Final[ManagedFields] = ()


@functools.lru_cache(4096)
def build_identity(manager: str, operation: Operation, api_version: str, subresource: str) -> str:
    """Return the text that identifies an entry of a manager, by which a real server sorts the entries."""
    identity_fields = {"manager": manager, "operation": operation}
    if operation == "Update":
        identity_fields["apiVersion"] = api_version
    identity_fields["subresource"] = subresource
    return "{" + ",".join([f'"{k}":{gojson.dumps(v).decode()}' for k, v in identity_fields.items() if v]) + "}"


def decode(entries: list[dict[str, Any]] | None) -> ManagedFields:
    """Return the entries of an object's managedFields. Of two entries with the same identity, the last one counts.

    Raises ManagedFieldsError if a real server could not decode the entries.
    """
    decoded: dict[str, ManagedFieldsEntry] = {}
    for position, encoded in enumerate(entries or ()):
        operation: Any = encoded.get("operation")
        if operation not in ("Apply", "Update"):
            raise ManagedFieldsError("operation must be `Apply` or `Update`")
        if not encoded.get("apiVersion"):
            raise ManagedFieldsError("apiVersion must not be empty")
        fields_type = encoded.get("fieldsType") or ""
        if not fields_type:
            raise ManagedFieldsError(f"missing fieldsType in managed fields entry {position}")
        if fields_type != "FieldsV1":
            raise ManagedFieldsError(f'invalid fieldsType "{fields_type}" in managed fields entry {position}')
        try:
            fields = FieldSet.decode(encoded.get("fieldsV1"))
        except ValueError as error:
            raise ManagedFieldsError(f"error decoding set: {error}") from error
        entry = ManagedFieldsEntry(
            encoded.get("manager") or "",
            operation,
            encoded["apiVersion"],
            fields,
            subresource=encoded.get("subresource") or "",
            time=encoded.get("time"),
        )
        decoded[entry.identity] = entry
    return tuple(decoded.values())


def encode(managed_fields: ManagedFields) -> list[dict[str, Any]]:
    """Return the entries as JSON in the order of a real server: by operation, time, manager, version, subresource."""
    return [entry.encode() for entry in sorted(managed_fields, key=_sort_key)]


def _sort_key(entry: ManagedFieldsEntry) -> tuple[str, str, str, str, str]:
    return entry.operation, entry.time or "", entry.manager, entry.api_version, entry.subresource


def read_submitted(live: ManagedFields, entries: list[dict[str, Any]] | None) -> ManagedFields:
    """Return the managed fields that a write other than apply starts from, given the managedFields in its body.

    `[]` and `[{}]` reset the managed fields. Absent entries and entries that cannot be decoded keep those of the live
    object. A custom resource never has `[]`, because pruning drops it.
    """
    if entries is None:
        return live
    if not entries or entries == [{}]:
        return NO_MANAGED_FIELDS
    try:
        return decode(entries) or live
    except ManagedFieldsError:
        return live


def equal_except_times(managed_fields: ManagedFields, entries: list[dict[str, Any]] | None) -> bool:
    """Return whether the `entries` of an object equal the managed fields, ignoring their times.

    The encoded fields are compared, because decoding rounds large numbers.
    """
    if len(managed_fields) != len(entries or ()):
        return False
    fields = {_get_writer(entry): entry.get("fieldsV1") or {} for entry in entries or ()}
    return all(
        fields.get(_get_writer(entry)) == entry["fieldsV1"] for entry in map(ManagedFieldsEntry.encode, managed_fields)
    )


def have_same_order(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> bool:
    """Return whether two lists of managedFields entries have the same writers in the same order."""
    return list(map(_get_writer, a)) == list(map(_get_writer, b))


def _get_writer(entry: dict[str, Any]) -> tuple[str, str, str, str]:
    return entry.get("manager") or "", entry["operation"], entry["apiVersion"], entry.get("subresource") or ""
