"""Why a key is queued: the causes of its next pass, kept beside the queue."""

from typing import Any

from fairlead.api.history import Cause, CauseSource, ObjectRef
from fairlead.api.kinds import Kind
from fairlead.cache import Change
from fairlead.runtime.services import Key

MAX_WAKES = 8
"""The wake-ups that are kept for a key. Further ones are counted."""
_DUE_TOLERANCE = 0.001
"""The event loop may call a timer a clock tick early."""


class Wake:
    """One reason to reconcile a key. For a change, it refers to the old and the new object, which stay undecoded."""

    __slots__ = ("attempt", "change", "cluster", "kind", "seconds", "source")

    def __init__(
        self,
        source: CauseSource,
        kind: Kind | None = None,
        change: Change | None = None,
        *,
        cluster: str = "",
        attempt: int = 0,
        seconds: float = 0.0,
    ) -> None:
        self.source = source
        self.kind = kind
        self.change = change
        self.cluster = cluster
        self.attempt = attempt
        self.seconds = seconds

    @property
    def is_own(self) -> bool:
        """Whether this process made the change. Ask late: the event of a write may arrive before its answer."""
        return self.change is not None and self.change.is_own

    @property
    def event(self) -> str:
        """added, modified or deleted; empty if it is not a change."""
        if self.change is None:
            return ""
        return "added" if self.change.old is None else "deleted" if self.change.new is None else "modified"

    def changed_metadata(self) -> tuple[str, ...]:
        """Return which of generation, labels, annotations and deletionTimestamp changed. Decodes both objects."""
        change = self.change
        if change is None or change.old is None or change.new is None:
            return ()
        old, new = change.old.object().metadata, change.new.object().metadata
        names = ("generation", "labels", "annotations", "deletionTimestamp")
        return tuple(name for name in names if _value(old, name) != _value(new, name))

    def to_cause(self) -> Cause:
        """Return the cause for the history."""
        change = self.change
        if change is None or self.kind is None:
            return Cause(self.source, attempt=self.attempt, seconds=self.seconds)
        ref = ObjectRef(self.kind.kind, change.namespace, change.name, self.kind.api_version, self.cluster)
        version = str(change.new.version) if change.new is not None else ""
        is_own = self.is_own
        # To find the changed metadata, both objects are decoded. For our own write, the history has its fields.
        return Cause(self.source, self.event, ref, version, is_own, () if is_own else self.changed_metadata())


class Wakes:
    """The reasons for the next pass of each key.

    Guarantees: the first MAX_WAKES reasons of a key are kept until its next pass starts, the others are counted. Only
    keys with a reason use memory.
    """

    def __init__(self) -> None:
        self._wakes: dict[Key, list[Wake]] = {}
        self._more: dict[Key, int] = {}
        self._delayed: dict[Key, tuple[float, Wake]] = {}

    def add(self, key: Key, wake: Wake) -> None:
        """Remember a reason for the next pass."""
        wakes = self._wakes.setdefault(key, [])
        if len(wakes) < MAX_WAKES:
            wakes.append(wake)
        else:
            self._more[key] = self._more.get(key, 0) + 1

    def delay(self, key: Key, wake: Wake, due: float) -> None:
        """Remember a reason that counts from the time `due` on (of the event loop). The earliest one counts."""
        if key not in self._delayed or due < self._delayed[key][0]:
            self._delayed[key] = due, wake

    def peek(self, key: Key) -> tuple[Wake, ...]:
        """Return the reasons so far."""
        return tuple(self._wakes.get(key, ()))

    def take(self, key: Key, now: float) -> tuple[list[Wake], int]:
        """Return the reasons for the pass that starts now, and how many more there were. Forget them."""
        wakes = self._wakes.pop(key, [])
        delayed = self._delayed.get(key)
        if delayed is not None and delayed[0] <= now + _DUE_TOLERANCE:
            del self._delayed[key]
            wakes.append(delayed[1])
        return wakes, self._more.pop(key, 0)


def _value(metadata: dict[str, Any], name: str) -> Any:
    return metadata.get(name) or None  # An empty map equals an absent one.
