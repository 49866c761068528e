"""The objects that one watch reported, without own writes."""

from collections.abc import Iterable, Iterator

from fairlead.cache.entries import CacheEntry
from fairlead.cache.indexes import Index, IndexFunction, ObjectKey

EntriesByNamespace = dict[str, dict[str, CacheEntry]]
"""Entries by namespace ("" if cluster-scoped) and name: no tuple per object, and a namespace is found directly."""

EntryChange = tuple[ObjectKey, CacheEntry | None, CacheEntry | None]
"""A key, the entry before and the entry after the change. None means that the object did not exist."""


class ObjectStore:
    """The cache entries that one watch reported, by namespace and name, with indexes. Own writes are in the overlay."""

    def __init__(self) -> None:
        self._objects: EntriesByNamespace = {}
        self._indexes: dict[str, Index] = {}

    def __len__(self) -> int:
        return sum(map(len, self._objects.values()))

    def get(self, key: ObjectKey) -> CacheEntry | None:
        """Return the entry of an object, or None if the store has no such object."""
        namespace = self._objects.get(key[0])
        return namespace.get(key[1]) if namespace else None

    def items(self, namespace: str | None = None) -> Iterator[tuple[ObjectKey, CacheEntry]]:
        """Yield (key, entry) of every object, in one namespace or in all."""
        for namespace_name in list(self._objects) if namespace is None else [namespace]:
            for name, entry in list(self._objects.get(namespace_name, {}).items()):
                yield (namespace_name, name), entry

    def put(self, key: ObjectKey, entry: CacheEntry) -> CacheEntry | None:
        """Store the entry of an object and return the object's previous entry, or None."""
        namespace = self._objects.get(key[0])
        if namespace is None:
            namespace = self._objects[key[0]] = {}
        old = namespace.get(key[1])
        namespace[key[1]] = entry
        for index in self._indexes.values():
            index.put(key, entry)
        return old

    def remove(self, key: ObjectKey) -> None:
        """Remove the entry of an object. An object that is not in the store is ignored."""
        namespace = self._objects.get(key[0])
        if namespace and namespace.pop(key[1], None):
            if not namespace:
                del self._objects[key[0]]
            for index in self._indexes.values():
                index.remove(key)

    def replace(self, new: EntriesByNamespace) -> tuple[list[str], Iterable[EntryChange]]:
        """Replace all entries by `new`, and return the uids of removed objects and the changes, deletions first.

        The store keeps the old bytes of an unchanged object. Read the changes before the next call that changes the
        store.
        """
        if not self._objects:
            self._objects = new
            for index in self._indexes.values():
                index.fill(self.items())
            return [], ((key, None, entry) for key, entry in self.items())
        changes: list[EntryChange] = []
        for key, old in self.items():
            if key[1] not in new.get(key[0], ()):
                self.remove(key)
                changes.append((key, old, None))
        for namespace, entries in new.items():
            for name, entry in entries.items():
                key = (namespace, name)
                stored = self.get(key)
                if stored is None or stored.uid != entry.uid or stored.raw != entry.raw:
                    self.put(key, entry)
                    changes.append((key, stored, entry))
        removed = [old.uid for _, old, new_entry in changes if old and (not new_entry or new_entry.uid != old.uid)]
        return removed, changes

    def ensure_index(self, name: str, function: IndexFunction) -> Index:
        """Return the index of that name. If it does not exist yet, build it from all entries."""
        index = self._indexes.get(name)
        if index is None:
            index = self._indexes[name] = Index(function)
            index.fill(self.items())
        return index

    def get_index(self, name: str) -> Index:
        """Return the index of that name. Raises LookupError if it does not exist."""
        if name not in self._indexes:
            raise LookupError(f"there is no index {name!r}: add it with `index` first")
        return self._indexes[name]
