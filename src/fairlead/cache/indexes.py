"""Objects by what is in them."""

import logging
from collections.abc import Callable, Iterable

from fairlead.api.objects import Object
from fairlead.cache.entries import Entries, Entry, owner_references

log = logging.getLogger("fairlead.cache")

Key = tuple[str, str]
"""Namespace ("" for none) and name."""

Values = Callable[[Entry], tuple[str, ...]]


class Index:
    """Which keys have a value, for values that `of` finds in an entry."""

    def __init__(self, of: Values) -> None:
        self.of = of
        self._values: dict[Key, tuple[str, ...]] = {}
        # Most values (an owner, a referenced name) have one key: then it stands alone, a set would cost 200 bytes.
        self._keys: dict[str, Key | set[Key]] = {}

    def put(self, key: Key, entry: Entry) -> None:
        values = self.of(entry)
        known = self._values.get(key)
        if known == values:
            return
        if known:
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

    def fill(self, items: Iterable[tuple[Key, Entry]]) -> None:
        for key, entry in items:
            self.put(key, entry)

    def remove(self, key: Key) -> None:
        for value in self._values.pop(key, ()):
            keys = self._keys.get(value)
            if isinstance(keys, set):
                keys.discard(key)
                if not keys:
                    del self._keys[value]
            elif keys == key:
                del self._keys[value]

    def keys(self, value: str) -> list[Key]:
        keys = self._keys.get(value)
        if keys is None:
            return []
        return sorted(keys) if isinstance(keys, set) else [keys]


def owners(entry: Entry) -> tuple[str, ...]:
    """The uids of an object's owners."""
    return tuple(owner.uid for owner in owner_references(entry))


def by_function(entries: Entries, function: Callable[[Object], Iterable[str]]) -> Values:
    """The values that `function` finds in the decoded object. One that it fails on is in no index, and in the log."""

    def values(entry: Entry) -> tuple[str, ...]:
        obj = entries.object(entry)
        try:
            return tuple(function(obj))
        except Exception:
            log.exception("the index function %r failed on %s/%s", function, obj.namespace, obj.name)
            return ()

    return values
