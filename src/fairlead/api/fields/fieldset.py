"""FieldSet: which fields, as a value."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fairlead.api.fields import tries
from fairlead.api.fields.elements import Path, human


class FieldSet:
    """An immutable set of field paths, with set algebra.

    `|`, `&`, `-`, `<=`, `==`, `in`, `len`, truth and iteration (in a server's order) mean what they mean for a set of
    paths: a path's presence says nothing of what is above or below it. Results share structure with their sources.
    """

    __slots__ = ("_encoded", "_exact", "trie")

    def __init__(self, trie: tries.Trie = tries.LEAF) -> None:
        self.trie = trie  # read-only; see tries.py
        self._encoded: tries.Trie | None = None
        self._exact: bool | None = None

    @staticmethod
    def of(*each: Path) -> "FieldSet":
        """The set of these paths (`elements.path` makes one)."""
        return FieldSet(tries.from_paths(list(each)))

    @staticmethod
    def decode(fields_v1: dict[str, Any] | None) -> "FieldSet":
        """The set that a managedFields entry's `fieldsV1` says. Raises ValueError for what is none."""
        return FieldSet(tries.decode(fields_v1))

    def encode(self) -> dict[str, Any]:
        """As `fieldsV1`, in a server's order. The same object each time: do not change it."""
        if self._encoded is None:
            self._encoded = tries.encode(self.trie)
        return self._encoded

    @property
    def exact(self) -> bool:
        """Whether `encode` tells of numbers that `decode` rounds."""
        if self._exact is None:
            self._exact = tries.exact(self.trie)
        return self._exact

    def __or__(self, other: "FieldSet") -> "FieldSet":
        return self._kept(tries.union_of_roots(self.trie, other.trie), other)

    def __and__(self, other: "FieldSet") -> "FieldSet":
        return self._kept(tries.intersection_of_roots(self.trie, other.trie), other)

    def __sub__(self, other: "FieldSet") -> "FieldSet":
        return self._kept(tries.difference_of_roots(self.trie, other.trie), other)

    def without(self, other: "FieldSet") -> "FieldSet":
        """This set less the paths of `other` and everything below them."""
        return self._kept(tries.without(self.trie, other.trie), other)

    def leaves(self) -> "FieldSet":
        """The paths that have none of the set's paths below them."""
        return FieldSet(tries.leaves(self.trie))

    def below(self, path: Path) -> "FieldSet":
        """The paths below `path`, with `path` taken off."""
        node = tries.at(self.trie, path) or tries.LEAF
        return FieldSet({element: each for element, each in node.items() if element != "."} if "." in node else node)

    def within(self, path: Path) -> "FieldSet":
        """The paths at and below `path`."""
        return FieldSet(tries.only_below(self.trie, path))

    def filter(self, keep: Callable[[Path], bool]) -> "FieldSet":
        """The paths for which `keep` holds."""
        return FieldSet.of(*[path for path in self if keep(path)])

    def __le__(self, other: "FieldSet") -> bool:
        return tries.holds_root(other.trie, self.trie)

    def __contains__(self, path: Path) -> bool:
        node = tries.at(self.trie, path) if path else None
        return node is not None and (not node or "." in node)

    def __iter__(self) -> Iterator[Path]:
        return tries.paths(self.trie)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return bool(self.trie)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self.trie == other.trie

    def __hash__(self) -> int:
        return hash(frozenset(self))

    def __repr__(self) -> str:
        return f"FieldSet({', '.join(human(path) for path in self)})"

    def _kept(self, trie: tries.Trie, other: "FieldSet") -> "FieldSet":
        return self if trie is self.trie else other if trie is other.trie else FieldSet(trie)


def union(sets: Iterable[FieldSet]) -> FieldSet:
    """The paths of any of them."""
    trie = tries.LEAF
    for each in sets:
        trie = tries.union_of_roots(trie, each.trie)
    return FieldSet(trie)
