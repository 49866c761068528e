"""Our own writes, seen before the stream tells them."""

import heapq
from collections.abc import Iterator

from fairlead.cache.entries import Entry
from fairlead.cache.indexes import Index, Key, Values
from fairlead.cache.store import Objects


class Flight:
    """A write on its way: what the stream told meanwhile, so that a late answer revives nothing."""

    __slots__ = ("deleted", "epoch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.deleted: set[str] = set()


class Overlay:
    """Own writes over one stream's store, each until that stream has passed its version.

    An entry of None hides the object: our write moved it out of what this stream selects. A tombstone hides a uid
    from the moment we know that it is gone until the stream says so.

    Which of two versions is newer can be told only of integers: on a server with other ones, switch it `off`.
    """

    def __init__(self) -> None:
        self.off = False
        self._entries: dict[Key, tuple[int, Entry | None]] = {}
        self._versions: list[tuple[int, Key]] = []  # a heap
        self._indexes: dict[Values, Index] = {}
        self._tombstones: dict[str, int] = {}  # uid -> newest version known of it
        self._flights: set[Flight] = set()
        self._epoch = 0

    def __bool__(self) -> bool:
        return bool(self._entries or self._tombstones)

    def look(self, key: Key, below: Entry | None) -> Entry | None:
        """What is at `key`, where the store has `below`."""
        entry = self._entries[key][1] if key in self._entries else below
        return None if entry is not None and entry.uid in self._tombstones else entry

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def indexed(self, of: Values, value: str) -> list[Key]:
        """Where it has an object in which `of` finds `value`. The first call makes the index."""
        index = self._indexes.get(of)
        if index is None:
            index = self._indexes[of] = Index(of)
            index.fill((key, entry) for key, (_, entry) in self._entries.items() if entry is not None)
        return index.keys(value)

    def keys(self, namespace: str | None = None) -> Iterator[Key]:
        """Where it has something to say of its own."""
        return (key for key in list(self._entries) if namespace is None or key[0] == namespace)

    # What we did

    def depart(self) -> Flight:
        """A write is about to be sent; `land` it whatever becomes of it."""
        flight = Flight(self._epoch)
        self._flights.add(flight)
        return flight

    def land(self, flight: Flight) -> None:
        self._flights.discard(flight)

    def wrote(self, flight: Flight, key: Key, entry: Entry, position: int, *, selected: bool = True) -> None:
        """The answer to a write: the object is now `entry`."""
        if self.off or entry.version <= position or self._is_stale(flight, entry.uid):
            return
        known = self._entries.get(key)
        if known is None or known[0] < entry.version:
            self._entries[key] = (entry.version, entry if selected else None)
            for index in self._indexes.values():
                index.put(key, entry) if selected else index.remove(key)
            heapq.heappush(self._versions, (entry.version, key))
            if len(self._versions) > 2 * len(self._entries) + 64:  # many writes of few objects while nothing streams
                self._versions = sorted((version, key) for key, (version, _) in self._entries.items())

    def gone(self, flight: Flight, uid: str, version: int) -> None:
        """The answer to a write: that uid is gone. `version` is the newest that is known of it."""
        if not self.off and not self._is_stale(flight, uid):
            self._tombstones[uid] = max(version, self._tombstones.get(uid, 0))

    def _is_stale(self, flight: Flight, uid: str) -> bool:
        return uid in flight.deleted or flight.epoch != self._epoch

    # What the stream did

    def passed(self, position: int) -> None:
        """The stream has told everything up to `position`."""
        while self._versions and self._versions[0][0] <= position:
            version, key = heapq.heappop(self._versions)
            if key in self._entries and self._entries[key][0] == version:
                del self._entries[key]
                for index in self._indexes.values():
                    index.remove(key)

    def deleted(self, uid: str) -> None:
        """The stream said that this uid is gone."""
        self._tombstones.pop(uid, None)
        for flight in self._flights:
            flight.deleted.add(uid)

    def relisted(self, position: int, listed: Objects) -> None:
        """The store was replaced by a list of that version: what is newer stays."""
        self.passed(position)
        if not self._tombstones:
            return
        uids = {entry.uid for entries in listed.values() for entry in entries.values()}
        for uid, version in list(self._tombstones.items()):
            if uid not in uids and version <= position:
                del self._tombstones[uid]

    def clear(self) -> None:
        """Versions went backwards: nothing known before says anything now, nor does an answer still on its way."""
        self._entries.clear()
        self._versions.clear()
        self._indexes.clear()
        self._tombstones.clear()
        self._epoch += 1
