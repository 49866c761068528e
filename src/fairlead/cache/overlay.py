"""The overlay of own writes: they can be read before the watch reports them."""

import heapq
from collections.abc import Iterator

from fairlead.cache.entries import CacheEntry
from fairlead.cache.indexes import Index, IndexFunction, ObjectKey
from fairlead.cache.store import EntriesByNamespace


class PendingWrite:
    """A write that was sent and not answered yet.

    It collects the uids that the watch reports as deleted meanwhile, so that a late answer does not bring an object
    back.
    """

    __slots__ = ("deleted_uids", "epoch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.deleted_uids: set[str] = set()


class Overlay:
    """Own writes on top of the store of one watch. Each stays until the watch has passed its version.

    An entry of None hides the object, because our write moved it out of the watch's selectors. A tombstone hides a uid
    from the moment that we know it is removed until the watch reports the deletion.

    The overlay compares versions, which must be integers. If the server's versions are not, set `disabled`.
    """

    def __init__(self) -> None:
        self.disabled = False
        self._entries: dict[ObjectKey, tuple[int, CacheEntry | None]] = {}
        self._versions: list[tuple[int, ObjectKey]] = []  # a heap
        self._indexes: dict[IndexFunction, Index] = {}
        self._tombstones: dict[str, int] = {}  # uid -> the newest known version of the object
        self._pending: set[PendingWrite] = set()
        self._epoch = 0

    def __bool__(self) -> bool:
        return bool(self._entries or self._tombstones)

    def resolve(self, key: ObjectKey, stored: CacheEntry | None) -> CacheEntry | None:
        """Return the entry that a reader sees at `key`, where the store has `stored`."""
        entry = self._entries[key][1] if key in self._entries else stored
        return None if entry is not None and entry.uid in self._tombstones else entry

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._entries

    def find_indexed(self, function: IndexFunction, value: str) -> list[ObjectKey]:
        """Return the keys of the own writes in which `function` finds `value`. The first call builds the index."""
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
        """Register a write before it is sent. Call `end_write` when it ended, also if it failed."""
        write = PendingWrite(self._epoch)
        self._pending.add(write)
        return write

    def end_write(self, write: PendingWrite) -> None:
        """Forget the pending write."""
        self._pending.discard(write)

    def record(
        self, write: PendingWrite, key: ObjectKey, entry: CacheEntry, position: int, *, selected: bool = True
    ) -> None:
        """Record the answer of a write: the object is now `entry`. `position` is the version of the watch."""
        if self.disabled or entry.version <= position or self._is_stale(write, entry.uid):
            return
        recorded = self._entries.get(key)
        if recorded is None or recorded[0] < entry.version:
            self._entries[key] = (entry.version, entry if selected else None)
            for index in self._indexes.values():
                index.put(key, entry) if selected else index.remove(key)
            heapq.heappush(self._versions, (entry.version, key))
            # Bound the heap if there are many writes of few objects while the watch reports nothing.
            if len(self._versions) > 2 * len(self._entries) + 64:
                self._versions = sorted((version, key) for key, (version, _) in self._entries.items())

    def record_removal(self, write: PendingWrite, uid: str, version: int) -> None:
        """Record the answer of a write: it removed this uid. `version` is the newest known version of the object."""
        if not self.disabled and not self._is_stale(write, uid):
            self._tombstones[uid] = max(version, self._tombstones.get(uid, 0))

    def _is_stale(self, write: PendingWrite, uid: str) -> bool:
        return uid in write.deleted_uids or write.epoch != self._epoch

    # Events of the watch

    def advance(self, position: int) -> None:
        """Drop the own writes up to `position`: the watch has reported everything up to there."""
        while self._versions and self._versions[0][0] <= position:
            version, key = heapq.heappop(self._versions)
            if key in self._entries and self._entries[key][0] == version:
                del self._entries[key]
                for index in self._indexes.values():
                    index.remove(key)

    def on_deleted(self, uid: str) -> None:
        """Drop the tombstone of this uid: the watch has reported the deletion."""
        self._tombstones.pop(uid, None)
        for write in self._pending:
            write.deleted_uids.add(uid)

    def on_relist(self, position: int, listed: EntriesByNamespace) -> None:
        """Drop what is not newer than a list of version `position` that replaced the store."""
        self.advance(position)
        if not self._tombstones:
            return
        uids = {entry.uid for entries in listed.values() for entry in entries.values()}
        for uid, version in list(self._tombstones.items()):
            if uid not in uids and version <= position:
                del self._tombstones[uid]

    def clear(self) -> None:
        """Drop everything, also the pending answers: the server's versions went backwards."""
        self._entries.clear()
        self._versions.clear()
        self._indexes.clear()
        self._tombstones.clear()
        self._epoch += 1
