"""Build a JSON patch from the reads and edits of a decision: first `test` operations, then the changes."""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from fairlead.writes.access_log import Access, AccessLog
from fairlead.writes.json_patch import MISSING, Op, Path, json_equal, to_pointer, value_at
from fairlead.writes.tracked import DELETED

_VERSION: Path = ("metadata", "resourceVersion")

# With more tests than this inside one list, the patch tests the whole list, so that the request does not outgrow it.
MAX_TESTS_PER_LIST = 100
# A server accepts 10,000 operations including the changes. With more tests than this, the patch tests the
# resourceVersion instead.
MAX_TESTS = 5000


class GuardedPatch(NamedTuple):
    """A JSON patch in two parts: `test` operations, and the changes that the server makes if all tests pass."""

    tests: list[Op]
    changes: list[Op]

    @property
    def ops(self) -> list[Op]:
        return [*self.tests, *self.changes]


def build_guarded_patch(log: AccessLog, edits: dict[Path, Any]) -> GuardedPatch:
    """Return a patch that makes the edits only if the object still has the uid and the values that were read.

    The patch also tests every replaced value and every field that was absent. If nothing would change, the patch is
    empty: it has no tests either.
    """
    base = log.base
    guards = _Guards(base)
    changes: list[Op] = []
    added: dict[Path, Any] = {}
    for path, new in edits.items():
        old = value_at(base, path)
        if old is not MISSING:  # Tested even if the value is already the new one: someone may change it meanwhile.
            guards.require_value(path)
            if new is DELETED:
                changes.append({"op": "remove", "path": to_pointer(path)})
            elif not json_equal(_remove_nulls(old), _remove_nulls(new)):
                changes.append({"op": "replace", "path": to_pointer(path), "value": new})
            continue
        first = _find_first_missing(base, path)
        if isinstance(first[-1], int):
            guards.require_length(first[:-1])
            changes.append({"op": "add", "path": to_pointer((*first[:-1], "-")), "value": new})
            continue
        guards.require_gap(first)
        if new is not DELETED and new is not None:  # The server drops a null, so it would be sent again every time.
            added[first] = _nest(added.get(first), path[len(first) :], new)
    changes += [{"op": "add", "path": to_pointer(path), "value": value} for path, value in added.items()]
    if not changes:
        return GuardedPatch([], [])
    for path, access in log.reads:
        if access is Access.VALUE:
            guards.require_value(path)
        elif access is Access.ABSENT:
            guards.absences.add(_find_first_missing(base, path))
        elif access is Access.LENGTH:
            guards.require_length(path)
    guards.add_implied({path for path, access in log.reads if access is Access.NON_EMPTY}, guards.require_content)
    guards.add_implied({path for path, access in log.reads if access is Access.PRESENT}, guards.require_presence)
    uid = ("metadata", "uid")
    tests = [_test(uid, value_at(base, uid)), *guards.tests()]
    return GuardedPatch(tests, sorted(changes, key=lambda op: str(op["path"])))


class _Guards:
    """The conditions that the stored object must meet. `tests` returns as few test operations as possible for them."""

    def __init__(self, base: dict[str, Any]) -> None:
        self.base = base
        self.values: set[Path] = set()
        self.absences: set[Path] = set()
        self.lengths: set[Path] = set()

    def require_value(self, path: Path) -> None:
        """Require the value at `path`. For the whole object or metadata, test only the resourceVersion."""
        self.values.add(_VERSION if path in ((), ("metadata",)) else path)

    def require_gap(self, path: Path) -> None:
        """Require that the key at `path` is missing. Inside a list item, require the item, because items may move."""
        indexes = [position for position, part in enumerate(path) if isinstance(part, int)]
        if indexes:
            self.require_value(path[: indexes[-1] + 1])
        else:
            self.absences.add(path)

    def require_length(self, path: Path) -> None:
        if value_at(self.base, path):
            self.lengths.add(path)
        else:
            self.require_value(path)

    def require_content(self, path: Path) -> None:
        """Require that the map or list at `path` is not empty, by a test of a value in it."""
        has_tested_value = any(
            _is_below(value, path) and value_at(self.base, value) is not None for value in self.values
        )
        if not has_tested_value and path not in self.lengths:
            self.require_value((*path, 0) if isinstance(value_at(self.base, path), list) else path)

    def require_presence(self, path: Path) -> None:
        """Require that the map or list at `path` exists.

        For a map, test that a missing key is null: the test fails without the map. For a list, test the first item.
        """
        guards = self.values | self.absences | self.lengths
        if path in self.lengths or any(_is_below(guard, path) for guard in guards):
            return
        container = value_at(self.base, path)
        if isinstance(container, dict):
            key = ""
            while key in container:
                key += "_"
            self.absences.add((*path, key))
        else:
            self.require_value((*path, 0) if container else path)

    def add_implied(self, paths: set[Path], require: Callable[[Path], None]) -> None:
        """Call `require` for the paths that no test covers yet. The deepest come first: they imply their parents."""
        for path in sorted(paths, key=len, reverse=True):
            if path and not self._is_covered(path):
                require(path)

    def tests(self) -> list[Op]:
        """Return the `test` operations, sorted by path."""
        tests_in_list = Counter(
            path[:end] for path in self.values | self.absences for end, part in enumerate(path) if isinstance(part, int)
        )
        for path, count in tests_in_list.items():
            if count > MAX_TESTS_PER_LIST or (path in self.lengths and self._has_all_items(path)):
                self.require_value(path)
        has_too_many = len(self.values) + len(self.absences) + 3 * len(self.lengths) > MAX_TESTS
        if (
            has_too_many
            or _VERSION in self.values
            or any(_has_null_item(value_at(self.base, path)) for path in self.values)
        ):
            # The resourceVersion changes with every write, so it covers everything else.
            self.values, self.absences, self.lengths = {_VERSION}, set(), set()
        tests = {
            path: [_test(path, None if path in self.absences else value_at(self.base, path))]
            for path in self.values | self.absences
            if not self._is_covered(path[:-1])
        }
        tests |= {path: self._test_length(path) for path in self.lengths if not self._is_covered(path)}
        return [op for path in sorted(tests, key=to_pointer) for op in tests[path]]

    def _is_covered(self, path: Path) -> bool:
        """Return whether a test already compares the value at the path, or at a parent of the path."""
        return any(path[:end] in self.values for end in range(len(path) + 1))

    def _has_all_items(self, path: Path) -> bool:
        """Return whether the tests already compare every item of the list at `path`."""
        return {(*path, index) for index in range(len(value_at(self.base, path)))} <= self.values

    def _test_length(self, path: Path) -> list[Op]:
        """Return operations that test the length of a list: append a marker, test it at the last index, remove it."""
        marker, last = {"": value_at(self.base, ("metadata", "uid"))}, (*path, len(value_at(self.base, path)))
        add = {"op": "add", "path": to_pointer((*path, "-")), "value": marker}
        return [add, _test(last, marker), {"op": "remove", "path": to_pointer(last)}]


def _has_null_item(value: Any) -> bool:
    """Return whether the value contains a list with a null item.

    A real API server drops the connection if a patch tests such a list.
    """
    if isinstance(value, dict):
        return any(map(_has_null_item, value.values()))
    return isinstance(value, list) and any(item is None or _has_null_item(item) for item in value)


def _test(path: Path, value: Any) -> Op:
    return {"op": "test", "path": to_pointer(path), "value": value}


def _is_below(path: Path, top: Path) -> bool:
    return len(path) > len(top) and path[: len(top)] == top


def _find_first_missing(base: dict[str, Any], path: Path) -> Path:
    """Return the shortest part of `path` that is missing in `base`: `spec.a` for `spec.a.b` without `spec.a`.

    A null value counts as missing, as for an API server.
    """
    for end in range(1, len(path)):
        if value_at(base, path[:end]) in (MISSING, None):
            return path[:end]
    return path


def _remove_nulls(value: Any) -> Any:
    """Return the value without the null values of maps.

    A server usually drops these nulls, so each decision would see them missing and write them again.
    """
    if isinstance(value, dict):
        return {key: _remove_nulls(item) for key, item in value.items() if item is not None}
    return [_remove_nulls(item) for item in value] if isinstance(value, list) else value


def _nest(container: Any, path: Path, value: Any) -> Any:
    """Return a copy of `container` with `value` at `path`. Missing maps are created."""
    if not path:
        return value
    container = dict(container or {})
    container[path[0]] = _nest(container.get(path[0]), path[1:], value)
    return container
