"""Names in order, for lists that start anywhere among them."""

from bisect import bisect_left


class Order:
    """A sorted set of names.

    A change costs the same however many there are; whoever reads after changes pays for those, not for all names.
    """

    __slots__ = ("_added", "_names", "_removed")

    def __init__(self) -> None:
        self._names: list[str] = []
        self._added: set[str] = set()
        self._removed: set[str] = set()

    def add(self, name: str) -> None:
        """Take in a name that is not there."""
        if name in self._removed:
            self._removed.remove(name)
        else:
            self._added.add(name)

    def remove(self, name: str) -> None:
        """Let a name go that is there."""
        if name in self._added:
            self._added.remove(name)
        else:
            self._removed.add(name)

    def names(self) -> list[str]:
        """All of them in order. A later change makes a new list: go through this one at leisure, do not change it."""
        if self._removed or self._added:
            names = self._names.copy()
            if len(self._removed) > len(names) // 64:
                names = [name for name in names if name not in self._removed]
            else:
                for name in self._removed:
                    del names[bisect_left(names, name)]
            if self._added:
                names += self._added
                names.sort()  # an ordered run with a few more behind it: hardly more than a copy
            self._names, self._added, self._removed = names, set(), set()
        return self._names
