"""The last passes over each object, in bounded memory. The live page and `fairlead why` show them."""

from collections import deque
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

import msgspec

from fairlead.api.history import (
    ENDED,
    READ,
    SKIPPED,
    WOKEN,
    WRITTEN,
    Cause,
    FieldChange,
    History,
    ObjectRef,
    Record,
)

MAX_PASSES = 20
"""The passes that are kept for an object: a loop of writes and a series of retries are visible in them."""
MAX_BYTES = 64 * 1024 * 1024
"""The size of all passes together. A typical pass takes less than 1 KB, so that 10,000 objects keep about seven."""
MAX_OBJECTS = 50_000
MAX_STEPS = 200
"""The reads and writes that are kept for a pass. The others are counted."""
MAX_FIELDS_BYTES = 8192
"""The size of the changed fields of one write. Larger values are shortened."""
MAX_VALUE_CHARACTERS = 500
MAX_MESSAGE_CHARACTERS = 2000

_OBJECT_BYTES = 700  # what an object without passes takes
_PASS_BYTES = 50  # what a pass takes beside its encoded records

# A pass is kept encoded: the records as they are would take four times the memory.
_STEP_FIELDS = (
    "point", "time", "verb", "object", "version", "version_before", "fields", "outcome", "message", "source",
    "subresource", "is_dry_run",
)  # fmt: skip
_END_FIELDS = ("time", "outcome", "reason", "message", "seconds", "next_look")
_step_values = itemgetter(*map(Record._fields.index, _STEP_FIELDS))
_end_values = itemgetter(*map(Record._fields.index, _END_FIELDS))
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class RememberedPass:
    """The records of a pass. `ended` is None if the pass is still running."""

    def __init__(self, woken: Record, steps: list[Record], more_steps: int, ended: Record | None) -> None:
        self.woken, self.steps, self.more_steps, self.ended = woken, steps, more_steps, ended


class RememberedObject:
    """The last passes over one object."""

    __slots__ = ("_passes", "actor", "count", "failures", "object", "size")

    def __init__(self, obj: ObjectRef, actor: str) -> None:
        self.object, self.actor = obj, actor
        self._passes: deque[bytes] = deque()  # oldest first
        self.size = _OBJECT_BYTES
        self.count = 0
        """How many passes ended since the start, also those that are forgotten."""
        self.failures = 0
        """How many passes failed in a row."""

    def add(self, encoded_pass: bytes, outcome: str, limit: int) -> int:
        """Add a pass, and forget the oldest ones beyond the limit. Return by how much the size grew."""
        self.count += 1
        self.failures = self.failures + 1 if outcome == "error" else 0
        self._passes.append(encoded_pass)
        growth = len(encoded_pass) + _PASS_BYTES
        self.size += growth
        return growth - self.forget_until(limit) if len(self._passes) > limit else growth

    def forget_until(self, limit: int) -> int:
        """Forget the oldest passes, so that at most `limit` are left. Return by how much the size shrank."""
        before = self.size
        while len(self._passes) > limit:
            self.size -= len(self._passes.popleft()) + _PASS_BYTES
        return before - self.size

    def __len__(self) -> int:
        """Return the number of passes that are kept."""
        return len(self._passes)

    def passes(self) -> Iterator[RememberedPass]:
        """Return the passes, newest first."""
        for encoded_pass in reversed(self._passes):
            yield self._load(encoded_pass)

    def _load(self, encoded_pass: bytes) -> RememberedPass:
        pass_id, causes, more_causes, more_steps, (woken_values, *steps, end_values) = _decode(encoded_pass)
        shared = {"actor": self.actor, "primary": self.object, "pass_id": pass_id}
        woken = _load_step(woken_values, shared)._replace(
            causes=tuple(_load_cause(cause) for cause in causes), more_causes=more_causes
        )
        ended = Record(
            ENDED, verb="reconcile", object=self.object, **shared, **dict(zip(_END_FIELDS, end_values, strict=True))
        )
        return RememberedPass(woken, [_load_step(step, shared) for step in steps], more_steps, ended)


class PassMemory:
    """A subscriber of the history that keeps the last passes over each object.

    Guarantees: at most `max_passes` passes are kept for an object, and all of them together take at most `max_bytes`.
    Under pressure every object keeps fewer passes, down to one. Then the objects whose last pass is oldest are
    forgotten. The text of unexpected exceptions is not kept; the log has it under the id of the pass.

    Does not guarantee: that a value is complete. The values of a large write are shortened.

    Example:
        memory = PassMemory()
        memory.subscribe(running.history)
    """

    def __init__(
        self, *, max_passes: int = MAX_PASSES, max_bytes: int = MAX_BYTES, max_objects: int = MAX_OBJECTS
    ) -> None:
        self._max_passes, self._max_bytes, self._max_objects = max_passes, max_bytes, max_objects
        self._limit = max_passes
        self._size = 0
        self._objects: dict[ObjectRef, RememberedObject] = {}  # the object with the latest pass is last
        self._running: dict[str, list[Record]] = {}  # by the id of the pass: the wake-up and the steps
        self._more_steps: dict[str, int] = {}

    def subscribe(self, history: History) -> Callable[[], None]:
        """Keep the passes from now on. Return a function that ends it."""
        endings = [
            history.subscribe(self._on_woken, [WOKEN]),
            history.subscribe(self._on_step, [READ, WRITTEN, SKIPPED]),
            history.subscribe(self._on_ended, [ENDED]),
        ]

        def unsubscribe() -> None:
            for end in endings:
                end()

        return unsubscribe

    @property
    def size(self) -> int:
        """The bytes that the passes take, as counted for the limit."""
        return self._size

    @property
    def passes_per_object(self) -> int:
        """How many passes are kept for an object at the moment."""
        return self._limit

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._objects)

    def objects(self) -> Iterator[RememberedObject]:
        """Return the objects. The one with the latest pass is first."""
        return reversed(self._objects.values())

    def find(self, obj: ObjectRef) -> RememberedObject | None:
        """Return what is remembered of an object."""
        return self._objects.get(obj)

    def running_passes(self) -> list[RememberedPass]:
        """Return the passes that have not ended, oldest first."""
        return [
            RememberedPass(woken, steps, self._more_steps.get(pass_id, 0), None)
            for pass_id, (woken, *steps) in self._running.items()
        ]

    def _on_woken(self, record: Record) -> None:
        self._running[record.pass_id] = [record]

    def _on_step(self, record: Record) -> None:
        records = self._running.get(record.pass_id)
        if records is None:
            return  # A write outside of a pass, or a pass that began before the subscription.
        if len(records) <= MAX_STEPS:
            records.append(_shorten(record) if record.fields or record.message else record)
        else:
            self._more_steps[record.pass_id] = self._more_steps.get(record.pass_id, 0) + 1

    def _on_ended(self, record: Record) -> None:
        ref, records = record.object, self._running.pop(record.pass_id, None)
        if records is None or ref is None:
            return
        remembered = self._objects.pop(ref, None)
        if remembered is None:
            remembered = RememberedObject(ref, record.actor)
            self._size += remembered.size
        self._objects[ref] = remembered  # Now it is the last one.
        more_steps = self._more_steps.pop(record.pass_id, 0) if self._more_steps else 0
        values = [*map(_step_values, records), _end_values(record)]
        encoded_pass = _encode((record.pass_id, records[0].causes, records[0].more_causes, more_steps, values))
        self._size += remembered.add(encoded_pass, record.outcome, self._limit)
        if self._size > self._max_bytes or len(self._objects) > self._max_objects:
            self._forget()
        elif self._limit < self._max_passes and self._size < self._max_bytes // 4:
            self._limit = min(self._limit * 2, self._max_passes)

    def _forget(self) -> None:
        while self._size > self._max_bytes and self._limit > 1:
            self._limit //= 2
            self._size -= sum(remembered.forget_until(self._limit) for remembered in self._objects.values())
        while self._objects and (self._size > self._max_bytes or len(self._objects) > self._max_objects):
            self._size -= self._objects.pop(next(iter(self._objects))).size


def _shorten(record: Record) -> Record:
    """Return the record of a write. If its changed fields or its message are large, they are shortened."""
    if len(record.message) > MAX_MESSAGE_CHARACTERS:
        record = record._replace(message=_shorten_value(record.message, MAX_MESSAGE_CHARACTERS))
    try:
        if len(_encode(record.fields)) <= MAX_FIELDS_BYTES:
            return record
    except (OverflowError, TypeError):
        pass  # A number with more than 64 bits, for example. The text below has it.
    kept_fields = record.fields[: MAX_FIELDS_BYTES // (2 * MAX_VALUE_CHARACTERS)]
    shortened = tuple(FieldChange(*map(_shorten_value, change)) for change in kept_fields)
    if omitted_count := len(record.fields) - len(kept_fields):
        shortened += (FieldChange(f"({omitted_count} more fields)"),)
    return record._replace(fields=shortened)


def _shorten_value(value: Any, limit: int = MAX_VALUE_CHARACTERS) -> Any:
    if value is None or isinstance(value, bool | float):
        return value
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def _load_step(values: list[Any], shared: dict[str, Any]) -> Record:
    fields = dict(zip(_STEP_FIELDS, values, strict=True))
    fields["object"] = ObjectRef(*fields["object"]) if fields["object"] is not None else None
    fields["fields"] = tuple(FieldChange(*change) for change in fields["fields"])
    return Record(**fields, **shared)


def _load_cause(values: list[Any]) -> Cause:
    cause = Cause(*values)
    return cause._replace(object=ObjectRef(*cause.object) if cause.object else None, changed=tuple(cause.changed))
