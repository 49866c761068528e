"""The store: the objects of all kinds with one resourceVersion counter, and the change history for watches.

Objects are immutable by convention: a change builds a new dict that shares the unchanged parts. The cost of a write
does not depend on the number of objects: it sets one dict entry and appends one event to the history of its kind.
"""

import asyncio
import contextlib
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Literal, Protocol

from fairlead.server.storage.sorted_names import SortedNames
from fairlead.server.storage.stored import Object, RecentlyUsed, Stored

EventType = Literal["ADDED", "MODIFIED", "DELETED"]

# Clients use the version "1" in creates that must not update, so no object may have it. Real clusters, too, start at
# several hundred.
FIRST_VERSION = 1000
# The number of events in the history of a kind. A watch or a paged list that is further behind gets a 410 (Expired).
MAX_EVENTS = 10_000
# The number of watches that are woken in one iteration of the event loop. It is small, so that requests continue while
# many watches are woken. A watch that is woken later sends several changes in one write.
WAKE_BATCH = 4


class ChangeEvent:
    """One change of one object.

    `stored` is the new state, or for DELETED the last state with the version of the deletion.
    """

    __slots__ = ("frames", "name", "namespace", "previous", "stored", "type", "version")

    def __init__(
        self,
        type: EventType,  # noqa: A002 - the name in the API
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
        self.frames: dict[Any, bytes] = {}  # the encoded event by representation, shared by all watches


class ObjectTable:
    """All objects of one kind, whatever their API version, and the history of their changes."""

    def __init__(self, key: tuple[str, str], compacted_version: int, history: int, recent: RecentlyUsed) -> None:
        self.key = key  # group and plural
        self.objects: dict[str, dict[str, Stored]] = {}  # namespace ("" for cluster-scoped) -> name -> object
        self.events: list[ChangeEvent] = []
        self.first = 0  # sequence number of events[0]
        self.compacted_version = compacted_version  # the history has no changes up to this version
        self._history = history
        self._recent = recent
        self._versions: list[int] = []
        self._prefixes = SortedNames()  # the prefixes of storage keys: namespaces with a slash
        self._names: dict[str, SortedNames] = {}
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()  # (position, future), lowest position first
        self._waking: asyncio.AbstractEventLoop | None = None  # the loop on which `_wake_waiters` is scheduled

    def get(self, namespace: str, name: str) -> Stored | None:
        bucket = self.objects.get(namespace)
        return bucket.get(name) if bucket else None

    def scan(self, namespace: str | None, start: str = "") -> Iterator[tuple[str, Stored]]:
        """Yield the current objects with their storage keys, sorted by key, from `start` on.

        If `namespace` is None, yield the objects of all namespaces. Objects that are deleted during the iteration may
        be missing.
        """
        for prefix in self._find_prefixes(namespace, start):
            bucket = self.objects.get(prefix[:-1])
            if bucket is None:
                continue
            names = self._names[prefix[:-1]].names()
            for index in range(_find_first_index(names, prefix, start), len(names)):
                if (stored := bucket.get(names[index])) is not None:
                    yield prefix + names[index], stored

    def snapshot(self, namespace: str | None, version: int, start: str = "") -> Iterator[tuple[str, Stored]]:
        """Yield what `scan` would have yielded at `version`, which must not be below `compacted_version`.

        The cost depends on the number of objects that are read, and on the number of changes since `version`.
        """
        changed_names = self._find_changed(namespace, version)
        old = deque(
            sorted((key, stored) for key, stored in changed_names.items() if stored is not None and key >= start)
        )
        for key, stored in self.scan(namespace, start):
            while old and old[0][0] < key:
                yield old.popleft()
            if key not in changed_names:
                yield key, stored
        yield from old

    def count(self, namespace: str | None, version: int, start: str) -> int:
        """Return how many objects `snapshot` yields for the same arguments."""
        total = 0
        for prefix in self._find_prefixes(namespace, start):
            if (sorted_names := self._names.get(prefix[:-1])) is not None:
                names = sorted_names.names()
                total += len(names) - _find_first_index(names, prefix, start)
        for key, stored in self._find_changed(namespace, version).items():
            if key >= start:
                space, _, name = key.rpartition("/")
                total += (stored is not None) - (self.get(space, name) is not None)
        return total

    def _find_prefixes(self, namespace: str | None, start: str) -> list[str]:
        """Return the storage key prefixes ("default/") of a namespace, or of all namespaces from `start` on."""
        if namespace is not None:
            return [namespace + "/" if namespace else ""]
        prefixes = self._prefixes.names()
        return prefixes[max(bisect_right(prefixes, start) - 1, 0) :]

    def _find_changed(self, namespace: str | None, version: int) -> dict[str, Stored | None]:
        """Return the state at `version` of all objects that changed since, by storage key.

        None: the object did not exist.
        """
        changed_objects: dict[str, Stored | None] = {}
        for event in reversed(self.events_after(version)):
            space = event.namespace
            if namespace is None or space == namespace:
                changed_objects[f"{space}/{event.name}" if space else event.name] = event.previous
        return changed_objects

    def get_at(self, namespace: str, name: str, version: int) -> Stored | None:
        """Return the object as it was at `version`, or at `compacted_version` if that is later."""
        for event in self.events_after(version):
            if event.name == name and event.namespace == namespace:
                return event.previous
        return self.get(namespace, name)

    def events_after(self, version: int) -> list[ChangeEvent]:
        """Return the changes with a version greater than `version`."""
        return self.events[bisect_right(self._versions, version) :]

    def position_after(self, version: int) -> int:
        """Return the sequence number of the first change after `version`, where a watch starts."""
        return self.first + bisect_right(self._versions, version)

    def events_from(self, position: int) -> list[ChangeEvent] | None:
        """Return the changes from a sequence number on, or None if the history no longer has all of them."""
        if position < self.first:
            return None
        return self.events[position - self.first :]

    async def wait_for_event(self, position: int) -> None:
        """Wait until the history has an event with the sequence number `position`."""
        if position < self.first + len(self.events):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter = (position, future)
        self._waiters.append(waiter)
        try:
            await future
        finally:
            if not future.done() or future.cancelled():
                with contextlib.suppress(ValueError):  # It was woken and cancelled in the same iteration.
                    self._waiters.remove(waiter)

    def record(self, event: ChangeEvent) -> None:
        """Apply a new change to the table, add it to the history, and wake the watches."""
        self._set_object(event.namespace, event.name, None if event.type == "DELETED" else event.stored)
        self._recent.add(event.stored)
        self.events.append(event)
        self._versions.append(event.version)
        if len(self.events) > 2 * self._history:  # Half of the events is trimmed, so that trimming is rare.
            first_kept = len(self.events) - self._history
            self.compacted_version = self._versions[first_kept - 1]
            del self.events[:first_kept]
            del self._versions[:first_kept]
            self.first += first_kept
        if self._waiters and self._waking is not self._waiters[0][1].get_loop():
            self._wake_waiters()

    def restore(self, stored: Stored, *, is_deleted: bool) -> None:
        """Apply a change that was loaded from disk. Call this method in the order of versions.

        A change after `compacted_version` is added to the history.
        """
        metadata = stored.object["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        if stored.version <= self.compacted_version:
            self._set_object(namespace, name, stored)
            self._recent.add(stored)
            return
        previous = self.get(namespace, name)
        kind: EventType = "DELETED" if is_deleted else "MODIFIED" if previous else "ADDED"
        self.record(ChangeEvent(kind, stored, previous, namespace, name))

    def undo(self, event: ChangeEvent) -> None:
        """Undo the newest change of the table, which must be `event`."""
        assert self.events[-1] is event
        self._set_object(event.namespace, event.name, event.previous)
        self.events.pop()
        self._versions.pop()

    def wake(self) -> None:
        """Wake all watches, even if there is no event for them."""
        waiters, self._waiters = self._waiters, deque()
        for _, waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _wake_waiters(self) -> None:
        """Wake the watches that have an event to read, a few in each iteration of the event loop."""
        end = self.first + len(self.events)
        woken = 0
        while woken < WAKE_BATCH and self._waiters and self._waiters[0][0] < end:
            waiter = self._waiters.popleft()[1]
            if not waiter.done():
                waiter.set_result(None)
                woken += 1
        self._waking = None
        if self._waiters and self._waiters[0][0] < end:
            self._waking = self._waiters[0][1].get_loop()
            self._waking.call_soon(self._wake_waiters)

    def _set_object(self, namespace: str, name: str, stored: Stored | None) -> None:
        bucket = self.objects.get(namespace)
        if stored is None:
            assert bucket is not None
            del bucket[name]
            self._names[namespace].remove(name)
            if not bucket:
                del self.objects[namespace], self._names[namespace]
                self._prefixes.remove(namespace + "/" if namespace else "")
            return
        if bucket is None:
            bucket = self.objects[namespace] = {}
            self._names[namespace] = SortedNames()
            self._prefixes.add(namespace + "/" if namespace else "")
        if name not in bucket:
            self._names[namespace].add(name)
        bucket[name] = stored

    def compact(self, version: int) -> None:
        """Remove the changes up to `version` from the history."""
        first_kept = bisect_right(self._versions, version)
        del self.events[:first_kept]
        del self._versions[:first_kept]
        self.first += first_kept
        self.compacted_version = max(self.compacted_version, version)


def _find_first_index(names: list[str], prefix: str, start: str) -> int:
    """Return the index of the first name whose storage key is `start` or follows it."""
    if start.startswith(prefix):
        return bisect_left(names, start[len(prefix) :])
    return 0 if start <= prefix else len(names)


RecordedChange = tuple[ObjectTable, ChangeEvent]
# Returns the objects that a kind (group and plural) has in a new store. Their versions are below FIRST_VERSION.
BuildInitial = Callable[[str, str], list[Object]]


class ChangeListener(Protocol):
    """An object that the store calls after each change, in order."""

    def on_change(self, table: ObjectTable, event: ChangeEvent) -> None: ...


class Store:
    """The tables of all kinds, with one version counter. All methods are synchronous, so writes are atomic."""

    def __init__(
        self, *, first_version: int = FIRST_VERSION, history: int = MAX_EVENTS, initial: BuildInitial | None = None
    ) -> None:
        self.version = first_version
        self.first_version = first_version
        self.listener: ChangeListener | None = None
        self.undo_count = 0  # how often changes were undone: readers compare it to detect that
        self._history = history
        self._recent = RecentlyUsed()
        self._initial = initial
        self._tables: dict[tuple[str, str], ObjectTable] = {}

    def table(self, group: str, plural: str) -> ObjectTable:
        """Return the table of a kind. Its first use adds the initial objects of the kind."""
        table = self._tables.get((group, plural))
        if table is None:
            objects = self._initial(group, plural) if self._initial is not None else []
            versions = [int(obj["metadata"]["resourceVersion"]) for obj in objects]
            table = self._tables[group, plural] = ObjectTable(
                (group, plural), max(versions, default=self.first_version), self._history, self._recent
            )
            for obj, version in zip(objects, versions, strict=True):
                table.restore(Stored(obj, version), is_deleted=False)
        return table

    def tables(self) -> Iterator[tuple[tuple[str, str], ObjectTable]]:
        yield from self._tables.items()

    def put(self, table: ObjectTable, obj: Object, normalized_for: Any = None) -> Stored:
        """Create or replace an object with the next version. Callers do not call it for an unchanged object."""
        metadata = obj["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        previous = table.get(namespace, name)
        stored = Stored(self._set_version(obj), self.version, normalized_for)
        self._record(table, ChangeEvent("MODIFIED" if previous else "ADDED", stored, previous, namespace, name))
        return stored

    def delete(self, table: ObjectTable, previous: Stored) -> Stored:
        """Remove an object. Return its last state with the version of the deletion."""
        obj = previous.object
        namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
        stored = Stored(self._set_version(obj), self.version, previous.normalized_for)
        self._record(table, ChangeEvent("DELETED", stored, previous, namespace, name))
        return stored

    def restore(self, table: ObjectTable, stored: Stored, *, is_deleted: bool) -> None:
        """Apply a change that was loaded from disk. Call this method in the order of versions."""
        table.restore(stored, is_deleted=is_deleted)
        self.version = max(self.version, stored.version)

    def undo(self, changes: list[RecordedChange], version: int) -> None:
        """Undo `changes`, which are all changes after `version`. Later writes get the same versions again."""
        for table, event in reversed(changes):
            table.undo(event)
        self.version = version
        self.undo_count += 1
        for table in self._tables.values():
            table.wake()

    def compact(self, version: int | None = None) -> None:
        """Remove the history up to `version`, by default all of it. Older watches and list pages then get a 410."""
        for table in self._tables.values():
            table.compact(self.version if version is None else version)

    def _record(self, table: ObjectTable, event: ChangeEvent) -> None:
        table.record(event)
        if self.listener is not None:
            self.listener.on_change(table, event)

    def _set_version(self, obj: Object) -> Object:
        self.version += 1
        # apiVersion and kind come first, in whatever order they were sent: a list omits them in its items.
        metadata = {**obj["metadata"], "resourceVersion": str(self.version)}
        return {"apiVersion": "", "kind": "", **obj, "metadata": metadata}
