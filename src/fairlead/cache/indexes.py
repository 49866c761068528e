"""Indexes: find cached objects by a value that a function computes from each object."""

import logging
from collections.abc import Callable, Iterable

from fairlead.api.objects import Object
from fairlead.cache.entries import CacheEntry, EntryCodec, owner_references

log = logging.getLogger("fairlead.cache")

ObjectKey = tuple[str, str]
"""Namespace ("" if cluster-scoped) and name."""

IndexFunction = Callable[[CacheEntry], tuple[str, ...]]
"""Returns the values under which an index finds an entry."""


class Index:
    """A map from a value to the keys of the cached objects for which `function` returns that value."""

    def __init__(self, function: IndexFunction) -> None:
        self.function = function
        self._values: dict[ObjectKey, tuple[str, ...]] = {}
        # Most values (an owner, a referenced name) have one key. It is stored without a set, which needs 200 bytes.
        self._keys: dict[str, ObjectKey | set[ObjectKey]] = {}

    def put(self, key: ObjectKey, entry: CacheEntry) -> None:
        """Add the entry of an object to the index, in place of the object's previous entry."""
        values = self.function(entry)
        old_values = self._values.get(key)
        if old_values == values:
            return
        if old_values:
            self.remove(key)
        if values:
            self._values[key] = values
        for value in values:
            keys = self._keys.get(value)
            if keys is None:
                self._keys[value] = key
            elif isinstance(keys, set):
                keys.add(key)
            elif keys != key:
                self._keys[value] = {keys, key}

    def fill(self, items: Iterable[tuple[ObjectKey, CacheEntry]]) -> None:
        """Add many entries to the index."""
        for key, entry in items:
            self.put(key, entry)

    def remove(self, key: ObjectKey) -> None:
        """Remove an object from the index. An object that is not indexed is ignored."""
        for value in self._values.pop(key, ()):
            keys = self._keys.get(value)
            if isinstance(keys, set):
                keys.discard(key)
                if not keys:
                    del self._keys[value]
            elif keys == key:
                del self._keys[value]

    def keys(self, value: str) -> list[ObjectKey]:
        """Return the sorted keys of the objects for which `function` returned `value`."""
        keys = self._keys.get(value)
        if keys is None:
            return []
        return sorted(keys) if isinstance(keys, set) else [keys]


def owner_uids(entry: CacheEntry) -> tuple[str, ...]:
    """Return the uids in the ownerReferences of a cached object."""
    return tuple(owner.uid for owner in owner_references(entry))


def decoding_index_function(codec: EntryCodec, function: Callable[[Object], Iterable[str]]) -> IndexFunction:
    """Return an index function for cache entries, which decodes an entry and calls `function` with the object.

    If `function` raises, the object is not indexed and the error is logged.
    """

    def index_values(entry: CacheEntry) -> tuple[str, ...]:
        obj = codec.decode(entry)
        try:
            return tuple(function(obj))
        except Exception:
            log.exception("the index function %r failed on %s/%s", function, obj.namespace, obj.name)
            return ()

    return index_values
