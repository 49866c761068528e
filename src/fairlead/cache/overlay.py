"""The overlay of own writes: reads show our own writes before the watch reports them."""

import heapq
from collections.abc import Callable, Iterator

from fairlead.cache.entries import CacheEntry
from fairlead.cache.indexes import Index, IndexFunction, ObjectKey
from fairlead.cache.store import EntriesByNamespace


class PendingWrite:
    """A write that was sent and not answered yet.

    `deleted_uids` collects the uids that the watch reports as deleted while the write is pending, so that a late
    response does not bring a deleted object back.
    """

    __slots__ = ("deleted_uids", "epoch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.deleted_uids: set[str] = set()


class Overlay:
    """Our own writes that the watch has not reported yet. Readers see them in place of the stored objects.

    A write leaves the overlay when the watch reaches its version. An entry of None hides an object that our write moved
    out of the watch's selectors. A tombstone hides a uid after our write removed it, until the watch reports the
    deletion.

    The overlay compares versions as integers. For a server with other resourceVersions, set `disabled`.
    """

    def __init__(self) -> None:
        self.disabled = False
        self._entries: dict[ObjectKey, tuple[int, CacheEntry | None]] = {}
        self._versions: list[tuple[int, ObjectKey]] = []  # a heap
        self._indexes: dict[IndexFunction, Index] = {}
        self._tombstones: dict[str, int] = {}  # uid -> the newest known version of the object
        self._pending: set[PendingWrite] = set()
        self._waiters: list[tuple[set[PendingWrite], Callable[[], None]]] = []
        self._epoch = 0

    def __bool__(self) -> bool:
        return bool(self._entries or self._tombstones)

    def resolve(self, key: ObjectKey, stored: CacheEntry | None) -> CacheEntry | None:
        """Return the entry that a reader sees at `key`: our own write, else `stored`, or None if it is removed."""
        entry = self._entries[key][1] if key in self._entries else stored
        return None if entry is not None and entry.uid in self._tombstones else entry

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._entries

    def find_indexed(self, function: IndexFunction, value: str) -> list[ObjectKey]:
        """Return the keys of the own writes for which `function` returns `value`. The first call builds the index."""
        index = self._indexes.get(function)
        if index is None:
            index = self._indexes[function] = Index(function)
            index.fill((key, entry) for key, (_, entry) in self._entries.items() if entry is not None)
        return index.keys(value)

    def keys(self, namespace: str | None = None) -> Iterator[ObjectKey]:
        """Yield the keys of the own writes, in all namespaces or in one."""
        return (key for key in list(self._entries) if namespace is None or key[0] == namespace)

    # Own writes

    def begin_write(self) -> PendingWrite:
        """Register a write that is about to be sent. Call `end_write` after the response or the failure."""
        write = PendingWrite(self._epoch)
        self._pending.add(write)
        return write

    def end_write(self, write: PendingWrite) -> None:
        """Forget a pending write: its response arrived, or it failed."""
        self._pending.discard(write)
        if self._waiters:
            for awaited, _ in self._waiters:
                awaited.discard(write)
            callbacks = [callback for awaited, callback in self._waiters if not awaited]
            self._waiters = [waiter for waiter in self._waiters if waiter[0]]
            for callback in callbacks:
                callback()

    def call_when_answered(self, callback: Callable[[], None]) -> None:
        """Call back when every write that is pending now has ended; at once if there is none."""
        if self._pending:
            self._waiters.append((set(self._pending), callback))
        else:
            callback()

    def record(
        self, write: PendingWrite, key: ObjectKey, entry: CacheEntry, position: int, *, is_selected: bool = True
    ) -> None:
        """Record the response of a write: the object is now `entry`. `position` is the version of the watch."""
        if self.disabled or entry.version <= position or self._is_stale(write, entry.uid):
            return
        recorded = self._entries.get(key)
        if recorded is None or recorded[0] < entry.version:
            self._entries[key] = (entry.version, entry if is_selected else None)
            for index in self._indexes.values():
                index.put(key, entry) if is_selected else index.remove(key)
            heapq.heappush(self._versions, (entry.version, key))
            # Bound the heap if there are many writes of few objects while the watch reports nothing.
            if len(self._versions) > 2 * len(self._entries) + 64:
                self._versions = sorted((version, key) for key, (version, _) in self._entries.items())

    def record_removal(self, write: PendingWrite, uid: str, version: int) -> None:
        """Record that a write removed the object with this uid. `version` is the newest known version of the object."""
        if not self.disabled and not self._is_stale(write, uid):
            self._tombstones[uid] = max(version, self._tombstones.get(uid, 0))

    def _is_stale(self, write: PendingWrite, uid: str) -> bool:
        return uid in write.deleted_uids or write.epoch != self._epoch

    # Events of the watch

    def advance(self, position: int) -> None:
        """Drop the own writes with versions up to `position`, which the watch has reported by now."""
        while self._versions and self._versions[0][0] <= position:
            version, key = heapq.heappop(self._versions)
            if key in self._entries and self._entries[key][0] == version:
                del self._entries[key]
                for index in self._indexes.values():
                    index.remove(key)

    def on_deleted(self, uid: str) -> None:
        """Drop the tombstone of a uid after the watch reported its deletion."""
        self._tombstones.pop(uid, None)
        for write in self._pending:
            write.deleted_uids.add(uid)

    def on_relist(self, position: int, listed: EntriesByNamespace) -> None:
        """Drop the own writes and tombstones that a new list of version `position` already shows."""
        self.advance(position)
        if not self._tombstones:
            return
        uids = {entry.uid for entries in listed.values() for entry in entries.values()}
        for uid, version in list(self._tombstones.items()):
            if uid not in uids and version <= position:
                del self._tombstones[uid]

    def clear(self) -> None:
        """Drop all own writes, also pending ones, because the server's versions went backwards."""
        self._entries.clear()
        self._versions.clear()
        self._indexes.clear()
        self._tombstones.clear()
        self._epoch += 1
