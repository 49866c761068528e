"""Notice a write loop: passes over one object that keep rewriting the same fields.

A loop has no cause but itself. Its passes are woken by their own writes, or by somebody who reverts those writes.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from fairlead.api.history import Cause, FieldChange, ObjectRef, Record
from fairlead.api.redaction import REDACTED

# Finalizers are added once and removed once, and clean-up must never be slowed down.
_IGNORED_PATH = "metadata.finalizers"
# A write of more fields than this is recognized by the first ones. A streak of more fields is not a loop but a plan.
_MAX_FIELDS_PER_WRITE = 32
_MAX_FIELDS = 512
# Echoes arrive soon after their writes, so the newest versions suffice.
_MAX_VERSIONS = 256
# These never wake a pass of a loop by themselves, and may coincide with one.
_TIMERS = ("requeue_after", "resync")
_RETRIES = ("retry", "conflict")


class Field(NamedTuple):
    """A field that a pass wrote. With an empty path, the pass created or deleted the whole object."""

    object: ObjectRef
    path: str

    def __str__(self) -> str:
        return f"{self.path} of {self.object}" if self.path else f"{self.object} (created or deleted)"


class WokenBy(Enum):
    """What woke a pass, as seen by a streak of writes."""

    LOOP = "the writes of earlier passes, or somebody who reverted them"
    OTHER = "something else"
    UNCLEAR = "a change of an object that the passes write, which did not revert their writes"


class PassWrites:
    """What one pass was woken by and what it wrote, from its records."""

    __slots__ = ("causes", "changes", "manager", "primary", "versions")

    def __init__(self, woken: Record) -> None:
        assert woken.primary is not None
        self.primary = woken.primary
        self.manager = woken.actor
        self.causes = woken.causes
        self.changes: dict[Field, FieldChange] = {}
        self.versions: list[tuple[ObjectRef, str]] = []

    def add(self, record: Record) -> None:
        """Add a write of the pass."""
        if record.object is None or record.is_dry_run:
            return
        if record.outcome == "changed":
            changes = [change for change in record.fields if not change.path.startswith(_IGNORED_PATH)]
        elif record.outcome in ("created", "deleted", "deleting"):
            changes = [FieldChange("", None, record.outcome)]
        else:
            return  # The write failed or changed nothing.
        self.versions.append((record.object, record.version))
        for change in changes[:_MAX_FIELDS_PER_WRITE]:
            field = Field(record.object, change.path)
            first = self.changes.get(field)  # A pass may write a field twice: from its first value to its last.
            self.changes[field] = change if first is None else change._replace(old=first.old)


class Rewrites:
    """How often passes in a row wrote a field, with the last values."""

    __slots__ = ("change", "count", "has_converged", "reverts")

    def __init__(self, change: FieldChange) -> None:
        self.count = 0
        self.reverts = 0  # how often somebody else had changed the value in between
        self.has_converged = False  # whether a pass that only our writes woke wrote nothing
        self.change = change

    def is_revert(self, change: FieldChange) -> bool:
        """Return whether somebody else changed the field since the last write. Unknown values may have changed."""
        return change.old != self.change.new or change.old == REDACTED or not change.path


class Streak:
    """The fields that recent passes over one object wrote, and how often in a row.

    Guarantees: a field is counted up only by a pass that was woken by the passes before it, or by somebody who reverted
    the field. A pass that writes a field for the first time is progress: the count of every other field starts again.
    So a plan of many steps is never a loop. A pass that has another reason starts every count again.

    Does not guarantee: that a loop is found whose passes write different fields each time, such as a new map key.
    """

    def __init__(self) -> None:
        self.fields: dict[Field, Rewrites] = {}
        self._versions: dict[tuple[ObjectRef, str], None] = {}  # ordered: the oldest first
        self._objects: set[ObjectRef] = set()

    def add_pass(self, writes: PassWrites) -> WokenBy:
        """Count the writes of a pass, and return what woke it."""
        woken_by = self.classify(writes.causes, writes.changes)
        if woken_by is WokenBy.OTHER or len(self.fields) > _MAX_FIELDS:
            self.fields.clear()
        if not writes.changes and woken_by is WokenBy.LOOP:
            for rewrites in self.fields.values():
                rewrites.has_converged = True
        if any(field not in self.fields for field in writes.changes):
            for rewrites in self.fields.values():
                rewrites.count = 0
        for field, change in writes.changes.items():
            rewrites = self.fields.setdefault(field, Rewrites(change))
            is_revert = rewrites.count > 0 and rewrites.is_revert(change)
            if rewrites.has_converged and not is_revert:
                rewrites.count = rewrites.reverts = 0
            if rewrites.count == 0 or woken_by is not WokenBy.UNCLEAR:
                rewrites.count += 1
            rewrites.reverts += is_revert
            rewrites.has_converged, rewrites.change = False, change
        for version in writes.versions:
            self._versions[version] = None
            self._objects.add(version[0])
        for version in list(self._versions)[:-_MAX_VERSIONS]:
            del self._versions[version]
        return woken_by

    def classify(self, causes: Iterable[Cause], changes: Mapping[Field, FieldChange]) -> WokenBy:
        """Return what woke a pass with these causes that made these changes."""
        causes = list(causes)
        changed = [cause for cause in causes if cause.source not in _TIMERS + _RETRIES]
        if not changed:
            return WokenBy.OTHER if any(cause.source in _TIMERS for cause in causes) else WokenBy.UNCLEAR
        reverted = {
            field.object
            for field, change in changes.items()
            if field in self.fields and self.fields[field].is_revert(change)
        }
        kinds = {self._classify(cause, reverted) for cause in changed}
        return next(kind for kind in (WokenBy.OTHER, WokenBy.UNCLEAR, WokenBy.LOOP) if kind in kinds)

    def _classify(self, cause: Cause, reverted: set[ObjectRef]) -> WokenBy:
        if cause.object is None or cause.source == "start" or cause.object not in self._objects:
            return WokenBy.OTHER
        if (cause.object, cause.version) in self._versions or (cause.is_own and cause.event == "deleted"):
            return WokenBy.LOOP
        if cause.object in reverted:
            return WokenBy.LOOP
        if cause.source == "primary" and cause.changed:
            return WokenBy.OTHER
        return WokenBy.UNCLEAR

    def is_written(self, obj: ObjectRef) -> bool:
        """Return whether the passes have written this object."""
        return obj in self._objects

    def find_longest(self) -> tuple[Field, Rewrites] | None:
        """Return the field that most passes in a row wrote."""
        return max(self.fields.items(), key=lambda item: item[1].count, default=None)


def describe_value(value: Any) -> str:
    """Return a value for a message, on one line and short."""
    if value is None:
        return "nothing"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
