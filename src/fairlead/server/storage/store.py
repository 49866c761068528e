"""The store: every object of every kind under one resourceVersion, and the ordered history that watches read.

Objects are immutable by convention; whoever changes one builds a new dict that shares what stayed. A write costs the
same however many other objects there are: one dict entry and one event at the end of its own kind's log.
"""

import asyncio
import contextlib
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator
from typing import Any, Literal, Protocol

from fairlead.server.storage.ordering import Order
from fairlead.server.storage.stored import Object, RecentlyUsed, Stored

EventType = Literal["ADDED", "MODIFIED", "DELETED"]

# "1" is the create-or-refuse guard of clients, so no object may ever have it; real clusters start in the hundreds too.
FIRST_VERSION = 1000
# Events kept for each kind; a watch or a paged list that falls further behind is told to list again (410).
HISTORY = 10_000
# Watches woken before the loop looks at its sockets again. Few: requests go on while many are told, and who is told
# later is told of several changes in one write, which costs hardly more than one.
AT_ONCE = 4


class Event:
    """One change. `stored` is the new state; of a DELETED, the last state at the version of the deletion."""

    __slots__ = ("frames", "name", "namespace", "previous", "stored", "type", "version")

    def __init__(
        self,
        type: EventType,  # noqa: A002 - the API's word
        stored: Stored,
        previous: Stored | None,
        namespace: str,
        name: str,
    ) -> None:
        self.type: EventType = type
        self.stored = stored
        self.namespace = namespace
        self.name = name
        self.previous = previous
        self.version = stored.version
        self.frames: dict[Any, bytes] = {}  # encoded once per representation, shared by every watch


class Table:
    """All objects of one kind (whatever version they are served at) and their history."""

    def __init__(self, key: tuple[str, str], floor: int, history: int, recent: RecentlyUsed) -> None:
        self.key = key  # group and plural
        self.objects: dict[str, dict[str, Stored]] = {}  # namespace ("" for cluster-scoped) -> name -> object
        self.events: list[Event] = []
        self.first = 0  # sequence number of events[0]
        self.floor = floor  # changes up to this version are no longer in the history
        self._history = history
        self._recent = recent
        self._versions: list[int] = []
        self._spaces = Order()  # namespaces as they begin a storage key: with a slash behind
        self._names: dict[str, Order] = {}
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()  # by position, the lowest first
        self._telling: asyncio.AbstractEventLoop | None = None  # where some are yet to be woken

    def get(self, namespace: str, name: str) -> Stored | None:
        bucket = self.objects.get(namespace)
        return bucket.get(name) if bucket else None

    def scan(self, namespace: str | None, start: str = "") -> Iterator[tuple[str, Stored]]:
        """Current objects with their storage keys, in the order of those keys, from `start` on.

        None means every namespace. What goes meanwhile may be missed, nothing else.
        """
        for prefix in self._prefixes(namespace, start):
            space = prefix[:-1]
            bucket = self.objects.get(space)
            if bucket is None:
                continue
            names = self._names[space].names()
            for at in range(_place_of(names, prefix, start), len(names)):
                if (stored := bucket.get(names[at])) is not None:
                    yield prefix + names[at], stored

    def snapshot(self, namespace: str | None, version: int, start: str = "") -> Iterator[tuple[str, Stored]]:
        """What `scan` answered at `version`, which must not be below `floor`: the present with later changes undone.

        Costs what is read of it, and the changes since.
        """
        before = self._before(namespace, version)
        undone = deque(sorted((key, stored) for key, stored in before.items() if stored is not None and key >= start))
        for key, stored in self.scan(namespace, start):
            while undone and undone[0][0] < key:
                yield undone.popleft()
            if key not in before:
                yield key, stored
        yield from undone

    def count(self, namespace: str | None, version: int, start: str) -> int:
        """How many `snapshot` answers."""
        found = 0
        for prefix in self._prefixes(namespace, start):
            if (order := self._names.get(prefix[:-1])) is not None:
                names = order.names()
                found += len(names) - _place_of(names, prefix, start)
        for key, stored in self._before(namespace, version).items():
            if key >= start:
                space, _, name = key.rpartition("/")
                found += (stored is not None) - (self.get(space, name) is not None)
        return found

    def _prefixes(self, namespace: str | None, start: str) -> list[str]:
        """How the storage keys of each namespace begin, of those that reach `start`."""
        if namespace is not None:
            return [namespace + "/" if namespace else ""]
        spaces = self._spaces.names()
        return spaces[max(bisect_right(spaces, start) - 1, 0) :]

    def _before(self, namespace: str | None, version: int) -> dict[str, Stored | None]:
        """What stood at `version` where it has changed since, None for nothing."""
        before: dict[str, Stored | None] = {}
        for event in reversed(self.since(version)):
            space = event.namespace
            if namespace is None or space == namespace:
                before[f"{space}/{event.name}" if space else event.name] = event.previous
        return before

    def get_at(self, namespace: str, name: str, version: int) -> Stored | None:
        """What `get` answered at `version`, or at `floor` where that is later."""
        for event in self.since(version):
            if event.name == name and event.namespace == namespace:
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
        waiter = (position, future)
        self._waiters.append(waiter)
        try:
            await future
        finally:
            if not future.done() or future.cancelled():
                with contextlib.suppress(ValueError):  # told and cancelled in the same turn
                    self._waiters.remove(waiter)

    def record(self, event: Event) -> None:
        self._place(event.namespace, event.name, None if event.type == "DELETED" else event.stored)
        self._recent.add(event.stored)
        self.events.append(event)
        self._versions.append(event.version)
        if len(self.events) > 2 * self._history:  # trimmed by half, so that trimming stays cheap
            cut = len(self.events) - self._history
            self.floor = self._versions[cut - 1]
            del self.events[:cut]
            del self._versions[:cut]
            self.first += cut
        if self._waiters and self._telling is not self._waiters[0][1].get_loop():
            self._tell()

    def restore(self, stored: Stored, *, deleted: bool) -> None:
        """Take in a change of an earlier process, in its order: as history where it is above `floor`."""
        metadata = stored.object["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        if stored.version <= self.floor:
            self._place(namespace, name, stored)
            self._recent.add(stored)
            return
        previous = self.get(namespace, name)
        kind: EventType = "DELETED" if deleted else "MODIFIED" if previous else "ADDED"
        self.record(Event(kind, stored, previous, namespace, name))

    def undo(self, event: Event) -> None:
        """Take back the last change."""
        assert self.events[-1] is event
        self._place(event.namespace, event.name, event.previous)
        self.events.pop()
        self._versions.pop()

    def wake(self) -> None:
        """Let everyone who waits for a change look."""
        waiters, self._waiters = self._waiters, deque()
        for _, waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _tell(self) -> None:
        """Wake those that have something to read, a few in each turn of the loop."""
        end = self.first + len(self.events)
        woken = 0
        while woken < AT_ONCE and self._waiters and self._waiters[0][0] < end:
            waiter = self._waiters.popleft()[1]
            if not waiter.done():
                waiter.set_result(None)
                woken += 1
        self._telling = None
        if self._waiters and self._waiters[0][0] < end:
            self._telling = self._waiters[0][1].get_loop()
            self._telling.call_soon(self._tell)

    def _place(self, namespace: str, name: str, stored: Stored | None) -> None:
        bucket = self.objects.get(namespace)
        if stored is None:
            assert bucket is not None
            del bucket[name]
            self._names[namespace].remove(name)
            if not bucket:
                del self.objects[namespace], self._names[namespace]
                self._spaces.remove(namespace + "/" if namespace else "")
            return
        if bucket is None:
            bucket = self.objects[namespace] = {}
            self._names[namespace] = Order()
            self._spaces.add(namespace + "/" if namespace else "")
        if name not in bucket:
            self._names[namespace].add(name)
        bucket[name] = stored

    def compact(self, version: int) -> None:
        """Forget the changes up to `version`."""
        cut = bisect_right(self._versions, version)
        del self.events[:cut]
        del self._versions[:cut]
        self.first += cut
        self.floor = max(self.floor, version)


def _place_of(names: list[str], prefix: str, start: str) -> int:
    """Where the first of these names stands whose key is not before `start`."""
    if start.startswith(prefix):
        return bisect_left(names, start[len(prefix) :])
    return 0 if start <= prefix else len(names)


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
        self._recent = RecentlyUsed()
        self._tables: dict[tuple[str, str], Table] = {}

    def table(self, group: str, plural: str) -> Table:
        table = self._tables.get((group, plural))
        if table is None:
            table = self._tables[group, plural] = Table(
                (group, plural), self.first_version, self._history, self._recent
            )
        return table

    def tables(self) -> Iterator[tuple[tuple[str, str], Table]]:
        yield from self._tables.items()

    def put(self, table: Table, obj: Object, normalized_for: Any = None) -> Stored:
        """Create or replace: `obj` gets the next version. The caller has compared: equal content must not come here."""
        metadata = obj["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        previous = table.get(namespace, name)
        stored = Stored(self._versioned(obj), self.version, normalized_for)
        self._record(table, Event("MODIFIED" if previous else "ADDED", stored, previous, namespace, name))
        return stored

    def delete(self, table: Table, previous: Stored) -> Stored:
        """Remove an object; its last state at the version of the deletion."""
        obj = previous.object
        namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
        stored = Stored(self._versioned(obj), self.version, previous.normalized_for)
        self._record(table, Event("DELETED", stored, previous, namespace, name))
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

    def _record(self, table: Table, event: Event) -> None:
        table.record(event)
        if self.journal is not None:
            self.journal.append(table, event)

    def _versioned(self, obj: Object) -> Object:
        self.version += 1
        # What it is comes first, however it was sent: a list leaves it out of its items.
        metadata = {**obj["metadata"], "resourceVersion": str(self.version)}
        return {"apiVersion": "", "kind": "", **obj, "metadata": metadata}
