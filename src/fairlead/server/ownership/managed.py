"""managedFields, decoded: who owns what, since when."""

import functools
from typing import Any, Final, Literal

from fairlead.api import gojson
from fairlead.api.fields import FieldSet
from fairlead.api.fields.elements import quoted

Operation = Literal["Apply", "Update"]


class ManagedFieldsError(ValueError):
    """managedFields that cannot be read, in a real server's words."""


class Entry:
    """What one manager owns by one operation. Immutable.

    Who it is (`identity`) is manager, operation and subresource, and for an Update the version too: an applier stays
    itself when it moves to another version.
    """

    __slots__ = ("_encoded", "api_version", "fields", "fits", "identity", "manager", "operation", "subresource", "time")

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
        self.identity = identity(manager, operation, api_version, subresource)
        self.fits: Any = None  # the shape that `fields` was last reconciled with, so that it is done once
        self._encoded: dict[str, Any] | None = None

    def owning(self, fields: FieldSet) -> "Entry":
        """The same entry with other fields; itself when they are the very same."""
        if fields is self.fields:
            return self
        return Entry(
            self.manager, self.operation, self.api_version, fields, subresource=self.subresource, time=self.time
        )

    def at(self, time: str | None) -> "Entry":
        """The same entry at another time."""
        if time == self.time:
            return self
        made = Entry(
            self.manager, self.operation, self.api_version, self.fields, subresource=self.subresource, time=time
        )
        made.fits = self.fits
        return made

    @property
    def shown(self) -> str:
        """As conflicts name it: `"m1"`, `"m1" using apps/v1`, `"m1" with subresource "status"`."""
        name = quoted(self.manager)
        if self.subresource:
            name += f" with subresource {quoted(self.subresource)}"
        return f"{name} using {self.api_version}" if self.operation == "Update" else name

    def encode(self) -> dict[str, Any]:
        """As it stands in an object. The same dict each time: do not change it."""
        if self._encoded is None:
            out: dict[str, Any] = {"manager": self.manager} if self.manager else {}
            out["operation"] = self.operation
            out["apiVersion"] = self.api_version
            if self.time is not None:
                out["time"] = self.time
            out["fieldsType"] = "FieldsV1"
            out["fieldsV1"] = self.fields.encode()
            if self.subresource:
                out["subresource"] = self.subresource
            self._encoded = out
        return self._encoded

    def __repr__(self) -> str:
        return f"Entry({self.shown}, {self.operation}, {self.fields!r})"


Managed = tuple[Entry, ...]
NOTHING: Final[Managed] = ()


@functools.lru_cache(4096)
def identity(manager: str, operation: Operation, api_version: str, subresource: str) -> str:
    """One text for who writes; a real server sorts by it."""
    parts = {"manager": manager, "operation": operation}
    if operation == "Update":
        parts["apiVersion"] = api_version
    parts["subresource"] = subresource
    return "{" + ",".join([f'"{k}":{gojson.dumps(v).decode()}' for k, v in parts.items() if v]) + "}"


def decode(entries: list[dict[str, Any]] | None) -> Managed:
    """The entries of an object's managedFields. Raises ManagedFieldsError for what a real server cannot read."""
    found: dict[str, Entry] = {}
    for position, encoded in enumerate(entries or ()):
        operation: Any = encoded.get("operation")
        if operation not in ("Apply", "Update"):
            raise ManagedFieldsError("operation must be `Apply` or `Update`")
        if not encoded.get("apiVersion"):
            raise ManagedFieldsError("apiVersion must not be empty")
        kind = encoded.get("fieldsType") or ""
        if not kind:
            raise ManagedFieldsError(f"missing fieldsType in managed fields entry {position}")
        if kind != "FieldsV1":
            raise ManagedFieldsError(f'invalid fieldsType "{kind}" in managed fields entry {position}')
        try:
            fields = FieldSet.decode(encoded.get("fieldsV1"))
        except ValueError as error:
            raise ManagedFieldsError(f"error decoding set: {error}") from error
        entry = Entry(
            encoded.get("manager") or "",
            operation,
            encoded["apiVersion"],
            fields,
            subresource=encoded.get("subresource") or "",
            time=encoded.get("time"),
        )
        found[entry.identity] = entry
    return tuple(found.values())


def encode(managed: Managed) -> list[dict[str, Any]]:
    """The entries as they stand in an object, in a real server's order: by operation, time, name, version."""
    return [entry.encode() for entry in sorted(managed, key=_order)]


def _order(entry: Entry) -> tuple[str, str, str, str, str]:
    return entry.operation, entry.time or "", entry.manager, entry.api_version, entry.subresource


def sent(live: Managed, entries: list[dict[str, Any]] | None) -> Managed:
    """What a plain write with `entries` starts from: absent or unreadable keeps `live`, `[]` or `[{}]` resets.

    A custom resource never comes with `[]`: it is read without."""
    if entries is None:
        return live
    if not entries or entries == [{}]:
        return NOTHING
    try:
        return decode(entries) or live
    except ManagedFieldsError:
        return live


def same_but_times(managed: Managed, entries: list[dict[str, Any]] | None) -> bool:
    """Whether `entries` of an object say the same of who owns what, and alike: then a write keeps them and their times.

    What they say of great numbers is rounded when it is read, so that they may say the same, but not alike.
    """
    if len(managed) != len(entries or ()):
        return False
    written = {_who(entry): entry.get("fieldsV1") or {} for entry in entries or ()}
    return all(written.get(_who(entry)) == entry["fieldsV1"] for entry in map(Entry.encode, managed))


def same_order(entries: list[dict[str, Any]], others: list[dict[str, Any]]) -> bool:
    """Whether entries are of the same writers in the same order."""
    return list(map(_who, entries)) == list(map(_who, others))


def _who(entry: dict[str, Any]) -> tuple[str, str, str, str]:
    return (
        entry.get("manager") or "",
        entry["operation"],
        entry["apiVersion"],
        entry.get("subresource") or "",
    )
