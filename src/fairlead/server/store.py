"""The store: every object of every kind under one resourceVersion, and the ordered history that watches read.

Objects are immutable by convention; whoever changes one builds a new dict that shares what stayed. A write costs the
same however many other objects there are: one dict entry and one event at the end of its own kind's log.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Literal, Protocol

Object = dict[str, Any]
EventType = Literal["ADDED", "MODIFIED", "DELETED"]

# "1" is the create-or-refuse guard of clients, so no object may ever have it; real clusters start in the hundreds too.
FIRST_VERSION = 1000
# Events kept for each kind; a watch or a paged list that falls further behind is told to list again (410).
HISTORY = 10_000


class Stored:
    """One object at one version, with what was derived from it (decoded managedFields, encoded answers)."""

    __slots__ = ("derived", "object", "seen", "version")

    def __init__(self, obj: Object, version: int, seen: Any = None) -> None:
        self.object = obj
        self.version = version
        self.seen = seen  # the rules that the object is known to be in line with
        self.derived: dict[Any, Any] = {}


class Event:
    """One change. `stored` is the new state; of a DELETED, the last state at the version of the deletion."""

    __slots__ = ("frames", "previous", "stored", "type", "version")

    def __init__(self, type: EventType, stored: Stored, previous: Stored | None) -> None:  # noqa: A002 - the API's word
        self.type: EventType = type
        self.stored = stored
        self.previous = previous
        self.version = stored.version
        self.frames: dict[Any, bytes] = {}  # encoded once per representation, shared by every watch


class Table:
    """All objects of one kind (whatever version they are served at) and their history."""

    def __init__(self, key: tuple[str, str], floor: int, history: int) -> None:
        self.key = key  # group and plural
        self.objects: dict[str, dict[str, Stored]] = {}  # namespace ("" for cluster-scoped) -> name -> object
        self.events: list[Event] = []
        self.first = 0  # sequence number of events[0]
        self.floor = floor  # changes up to this version are no longer in the history
        self._history = history
        self._versions: list[int] = []
        self._sorted: dict[str, list[str]] = {}
        self._waiters: list[asyncio.Future[None]] = []

    def get(self, namespace: str, name: str) -> Stored | None:
        bucket = self.objects.get(namespace)
        return bucket.get(name) if bucket else None

    def scan(self, namespace: str | None) -> Iterator[tuple[str, Stored]]:
        """Current objects with their storage keys, in the order of those keys. None means every namespace."""
        spaces = [namespace] if namespace is not None else sorted(self.objects, key=lambda ns: ns + "/")
        for space in spaces:
            bucket = self.objects.get(space)
            if not bucket:
                continue
            names = self._sorted.get(space)
            if names is None:
                names = self._sorted[space] = sorted(bucket)
            prefix = space + "/" if space else ""
            for name in names:
                yield prefix + name, bucket[name]

    def snapshot(self, namespace: str | None, version: int) -> list[tuple[str, Stored]]:
        """What `scan` answered at `version`, which must not be below `floor`: the present with later changes undone."""
        later = self.since(version)
        if not later:
            return list(self.scan(namespace))
        state = dict(self.scan(namespace))
        for event in reversed(later):
            metadata = event.stored.object["metadata"]
            space = metadata.get("namespace", "")
            if namespace is not None and space != namespace:
                continue
            key = f"{space}/{metadata['name']}" if space else metadata["name"]
            if event.previous is None:
                state.pop(key, None)
            else:
                state[key] = event.previous
        return sorted(state.items())

    def get_at(self, namespace: str, name: str, version: int) -> Stored | None:
        """What `get` answered at `version`, or at `floor` where that is later."""
        for event in self.since(version):
            metadata = event.stored.object["metadata"]
            if metadata["name"] == name and metadata.get("namespace", "") == namespace:
                return event.previous
        return self.get(namespace, name)

    def since(self, version: int) -> list[Event]:
        """The changes after `version`."""
        return self.events[bisect_right(self._versions, version) :]

    def position(self, version: int) -> int:
        """The sequence number of the first change after `version`: where a watch starts to read."""
        return self.first + bisect_right(self._versions, version)

    def read(self, position: int) -> list[Event] | None:
        """The changes from a position on, or None when some of them are gone already."""
        if position < self.first:
            return None
        return self.events[position - self.first :]

    async def changed(self, position: int) -> None:
        """Wait until there is something to read at `position`."""
        if position < self.first + len(self.events):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(future)
        try:
            await future
        finally:
            if not future.done() or future.cancelled():
                self._waiters = [w for w in self._waiters if w is not future]

    def record(self, event: Event, namespace: str, name: str) -> None:
        self._place(namespace, name, None if event.type == "DELETED" else event.stored)
        self.events.append(event)
        self._versions.append(event.version)
        if len(self.events) > 2 * self._history:  # trimmed by half, so that trimming stays cheap
            cut = len(self.events) - self._history
            self.floor = self._versions[cut - 1]
            del self.events[:cut]
            del self._versions[:cut]
            self.first += cut
        if self._waiters:
            self.wake()

    def restore(self, stored: Stored, *, deleted: bool) -> None:
        """Take in a change of an earlier process, in its order: as history where it is above `floor`."""
        metadata = stored.object["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        if stored.version <= self.floor:
            self._place(namespace, name, stored)
            return
        previous = self.get(namespace, name)
        kind: EventType = "DELETED" if deleted else "MODIFIED" if previous else "ADDED"
        self.record(Event(kind, stored, previous), namespace, name)

    def undo(self, event: Event) -> None:
        """Take back the last change."""
        assert self.events[-1] is event
        metadata = event.stored.object["metadata"]
        self._place(metadata.get("namespace", ""), metadata["name"], event.previous)
        self.events.pop()
        self._versions.pop()

    def wake(self) -> None:
        """Let everyone who waits for a change look."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _place(self, namespace: str, name: str, stored: Stored | None) -> None:
        if stored is None:
            bucket = self.objects[namespace]
            del bucket[name]
            if not bucket:
                del self.objects[namespace]
            self._sorted.pop(namespace, None)
        else:
            bucket = self.objects.setdefault(namespace, {})
            if name not in bucket:
                self._sorted.pop(namespace, None)
            bucket[name] = stored

    def compact(self, version: int) -> None:
        """Forget the changes up to `version`."""
        cut = bisect_right(self._versions, version)
        del self.events[:cut]
        del self._versions[:cut]
        self.first += cut
        self.floor = max(self.floor, version)


Change = tuple[Table, Event]


class Journal(Protocol):
    """Who is told of each change right after it was made, in its order."""

    def append(self, table: Table, event: Event) -> None: ...


class Store:
    """Tables under one version counter. Every method is synchronous: a write is atomic on the loop it runs on."""

    def __init__(self, *, first_version: int = FIRST_VERSION, history: int = HISTORY) -> None:
        self.version = first_version
        self.first_version = first_version
        self.journal: Journal | None = None
        self.undone = 0  # how often changes were taken back: whoever read them starts over
        self._history = history
        self._tables: dict[tuple[str, str], Table] = {}

    def table(self, group: str, plural: str) -> Table:
        table = self._tables.get((group, plural))
        if table is None:
            table = self._tables[group, plural] = Table((group, plural), self.first_version, self._history)
        return table

    def tables(self) -> Iterator[tuple[tuple[str, str], Table]]:
        yield from self._tables.items()

    def put(self, table: Table, obj: Object, seen: Any = None) -> Stored:
        """Create or replace: `obj` gets the next version. The caller has compared: equal content must not come here."""
        metadata = obj["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        previous = table.get(namespace, name)
        stored = Stored(self._versioned(obj), self.version, seen)
        self._record(table, Event("MODIFIED" if previous else "ADDED", stored, previous), namespace, name)
        return stored

    def delete(self, table: Table, previous: Stored) -> Stored:
        """Remove an object; its last state at the version of the deletion."""
        metadata = previous.object["metadata"]
        stored = Stored(self._versioned(previous.object), self.version, previous.seen)
        self._record(table, Event("DELETED", stored, previous), metadata.get("namespace", ""), metadata["name"])
        return stored

    def restore(self, table: Table, stored: Stored, *, deleted: bool) -> None:
        """Take in a change of an earlier process, in the order of their versions."""
        table.restore(stored, deleted=deleted)
        self.version = max(self.version, stored.version)

    def undo(self, changes: list[Change], version: int) -> None:
        """Take back the last changes, all those after `version`. Their versions are given again."""
        for table, event in reversed(changes):
            table.undo(event)
        self.version = version
        self.undone += 1
        for table in self._tables.values():
            table.wake()

    def compact(self, version: int | None = None) -> None:
        """Forget history up to `version` (all of it by default): watches and pages from before it get a 410."""
        for table in self._tables.values():
            table.compact(self.version if version is None else version)

    def _record(self, table: Table, event: Event, namespace: str, name: str) -> None:
        table.record(event, namespace, name)
        if self.journal is not None:
            self.journal.append(table, event)

    def _versioned(self, obj: Object) -> Object:
        self.version += 1
        return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
