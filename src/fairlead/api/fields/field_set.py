"""FieldSet: an immutable set of field paths."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fairlead.api.fields import tries
from fairlead.api.fields.path_elements import Path, format_path


class FieldSet:
    """An immutable set of field paths, with set operations.

    `|`, `&`, `-`, `<=`, `==`, `in`, `len`, truth and iteration work as for a Python set of paths. Iteration uses the
    order in which an API server writes FieldsV1. The set may contain `.spec.ports` without `.spec`, and the reverse.
    """

    __slots__ = ("_encoded", "_has_large_numbers", "trie")

    def __init__(self, trie: tries.Trie = tries.LEAF) -> None:
        self.trie = trie  # read-only; see tries.py
        self._encoded: tries.Trie | None = None
        self._has_large_numbers: bool | None = None

    @staticmethod
    def of(*paths: Path) -> "FieldSet":
        """Return a FieldSet that contains exactly `paths`."""
        return FieldSet(tries.from_paths(list(paths)))

    @staticmethod
    def decode(fields_v1: dict[str, Any] | None) -> "FieldSet":
        """Return the FieldSet of the `fieldsV1` of a managedFields entry. Raises ValueError for invalid FieldsV1."""
        return FieldSet(tries.decode(fields_v1))

    def encode(self) -> dict[str, Any]:
        """Return the set as `fieldsV1`, in the order of an API server. Do not change the returned dict (cached)."""
        if self._encoded is None:
            self._encoded = tries.encode(self.trie)
        return self._encoded

    @property
    def has_large_numbers(self) -> bool:
        """Whether a path of the set contains an integer that `decode` would round to a float."""
        if self._has_large_numbers is None:
            self._has_large_numbers = tries.has_large_numbers(self.trie)
        return self._has_large_numbers

    def __or__(self, other: "FieldSet") -> "FieldSet":
        return self._reuse(tries.union_of_roots(self.trie, other.trie), other)

    def __and__(self, other: "FieldSet") -> "FieldSet":
        return self._reuse(tries.intersection_of_roots(self.trie, other.trie), other)

    def __sub__(self, other: "FieldSet") -> "FieldSet":
        return self._reuse(tries.difference_of_roots(self.trie, other.trie), other)

    def recursive_difference(self, other: "FieldSet") -> "FieldSet":
        """Return this set without the paths of `other` and without all paths below the paths of `other`."""
        return self._reuse(tries.recursive_difference(self.trie, other.trie), other)

    def leaves(self) -> "FieldSet":
        """Return the paths of this set that have no other path of the set below them."""
        return FieldSet(tries.leaves(self.trie))

    def below(self, path: Path) -> "FieldSet":
        """Return the paths of this set below `path`, relative to `path`: `.spec.ports` below `.spec` is `.ports`."""
        node = tries.find_node(self.trie, path) or tries.LEAF
        return FieldSet({element: child for element, child in node.items() if element != "."} if "." in node else node)

    def within(self, path: Path) -> "FieldSet":
        """Return the paths of this set that are `path` itself or below `path`."""
        return FieldSet(tries.restrict_to(self.trie, path))

    def filter(self, is_kept: Callable[[Path], bool]) -> "FieldSet":
        """Return the paths of this set for which `keep(path)` is true."""
        return FieldSet.of(*[path for path in self if is_kept(path)])

    def __le__(self, other: "FieldSet") -> bool:
        return tries.is_superset_of_root(other.trie, self.trie)

    def __contains__(self, path: Path) -> bool:
        node = tries.find_node(self.trie, path) if path else None
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
        return f"FieldSet({', '.join(format_path(path) for path in self)})"

    def _reuse(self, trie: tries.Trie, other: "FieldSet") -> "FieldSet":
        return self if trie is self.trie else other if trie is other.trie else FieldSet(trie)


def union(sets: Iterable[FieldSet]) -> FieldSet:
    """Return the union of any number of field sets."""
    trie = tries.LEAF
    for field_set in sets:
        trie = tries.union_of_roots(trie, field_set.trie)
    return FieldSet(trie)
