"""A sorted set of names, so that a list can start at any name."""

from bisect import bisect_left


class SortedNames:
    """A sorted set of names.

    Adding and removing a name takes constant time. The next call of `names` costs time for these changes, not for all
    names.
    """

    __slots__ = ("_added", "_names", "_removed")

    def __init__(self) -> None:
        self._names: list[str] = []
        self._added: set[str] = set()
        self._removed: set[str] = set()

    def add(self, name: str) -> None:
        """Add a name that is not in the set."""
        if name in self._removed:
            self._removed.remove(name)
        else:
            self._added.add(name)

    def remove(self, name: str) -> None:
        """Remove a name that is in the set."""
        if name in self._added:
            self._added.remove(name)
        else:
            self._removed.add(name)

    def names(self) -> list[str]:
        """Return all names in order. Callers must not change the list. Later changes of the set do not change it."""
        if self._removed or self._added:
            names = self._names.copy()
            if len(self._removed) > len(names) // 64:
                names = [name for name in names if name not in self._removed]
            else:
                for name in self._removed:
                    del names[bisect_left(names, name)]
            if self._added:
                names += self._added
                names.sort()  # Fast, because the list is sorted except for the added names at its end.
            self._names, self._added, self._removed = names, set(), set()
        return self._names
