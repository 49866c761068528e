"""The objects of one stream, exactly as the stream told them."""

from collections.abc import Iterable, Iterator

from fairlead.cache.entries import Entry
from fairlead.cache.indexes import Index, Key, Values

Objects = dict[str, dict[str, Entry]]
"""By namespace ("" for none) and name: names need no tuple of their own, and a namespace is found at once."""

Difference = tuple[Key, Entry | None, Entry | None]
"""A key, what was there and what is there."""


class Store:
    """Entries by namespace and name, and their indexes. It knows nothing of own writes or of time."""

    def __init__(self) -> None:
        self._objects: Objects = {}
        self._indexes: dict[str, Index] = {}

    def __len__(self) -> int:
        return sum(map(len, self._objects.values()))

    def get(self, key: Key) -> Entry | None:
        namespace = self._objects.get(key[0])
        return namespace.get(key[1]) if namespace else None

    def items(self, namespace: str | None = None) -> Iterator[tuple[Key, Entry]]:
        """Everything, or everything in one namespace."""
        for name_of_namespace in list(self._objects) if namespace is None else [namespace]:
            for name, entry in list(self._objects.get(name_of_namespace, {}).items()):
                yield (name_of_namespace, name), entry

    def put(self, key: Key, entry: Entry) -> Entry | None:
        """Keep it; answers what it takes the place of."""
        namespace = self._objects.get(key[0])
        if namespace is None:
            namespace = self._objects[key[0]] = {}
        old = namespace.get(key[1])
        namespace[key[1]] = entry
        for index in self._indexes.values():
            index.put(key, entry)
        return old

    def remove(self, key: Key) -> None:
        namespace = self._objects.get(key[0])
        if namespace and namespace.pop(key[1], None):
            if not namespace:
                del self._objects[key[0]]
            for index in self._indexes.values():
                index.remove(key)

    def replace(self, new: Objects) -> tuple[list[str], Iterable[Difference]]:
        """Keep `new` and nothing else; answers the uids that are gone, and what changed, deletes first.

        Bytes that are the same are not kept twice. The answer is good until the next change.
        """
        if not self._objects:
            self._objects = new
            for index in self._indexes.values():
                index.fill(self.items())
            return [], ((key, None, entry) for key, entry in self.items())
        differences: list[Difference] = []
        for key, old in self.items():
            if key[1] not in new.get(key[0], ()):
                self.remove(key)
                differences.append((key, old, None))
        for namespace, entries in new.items():
            for name, entry in entries.items():
                key = (namespace, name)
                known = self.get(key)
                if known is None or known.uid != entry.uid or known.raw != entry.raw:
                    self.put(key, entry)
                    differences.append((key, known, entry))
        return [old.uid for _, old, now in differences if old and (not now or now.uid != old.uid)], differences

    def index(self, name: str, of: Values) -> Index:
        """The index of that name, made from everything there is if it is new."""
        index = self._indexes.get(name)
        if index is None:
            index = self._indexes[name] = Index(of)
            index.fill(self.items())
        return index

    def indexed(self, name: str) -> Index:
        """The index of that name, which must be there."""
        if name not in self._indexes:
            raise LookupError(f"there is no index {name!r}: add it with `index` first")
        return self._indexes[name]
