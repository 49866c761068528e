"""Build one JSON patch from reads and edits: first the tests that guard it, then the changes."""

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
    """The tests of a JSON patch, and the changes it makes if all of them pass."""

    tests: list[Op]
    changes: list[Op]

    @property
    def ops(self) -> list[Op]:
        return [*self.tests, *self.changes]


def build_guarded_patch(log: AccessLog, edits: dict[Path, Any]) -> GuardedPatch:
    """Return the patch that makes the edits if the uid, every read, every replaced value and every absence still hold.

    The patch is empty if nothing would change. Such a decision sends nothing, so nothing checks its reads.
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
            elif not json_equal(_without_nulls(old), _without_nulls(new)):
                changes.append({"op": "replace", "path": to_pointer(path), "value": new})
            continue
        first = _first_missing(base, path)
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
            guards.absences.add(_first_missing(base, path))
        elif access is Access.LENGTH:
            guards.require_length(path)
    guards.add_implied({path for path, access in log.reads if access is Access.NON_EMPTY}, guards.require_content)
    guards.add_implied({path for path, access in log.reads if access is Access.PRESENT}, guards.require_presence)
    uid = ("metadata", "uid")
    tests = [_test(uid, value_at(base, uid)), *guards.tests()]
    return GuardedPatch(tests, sorted(changes, key=lambda op: str(op["path"])))


class _Guards:
    """What must still hold on the server. `tests` turns it into as few test operations as possible."""

    def __init__(self, base: dict[str, Any]) -> None:
        self.base = base
        self.values: set[Path] = set()
        self.absences: set[Path] = set()
        self.lengths: set[Path] = set()

    def require_value(self, path: Path) -> None:
        """Require the value. For the whole metadata, which include the resourceVersion, test only the latter."""
        self.values.add(_VERSION if path in ((), ("metadata",)) else path)

    def require_gap(self, path: Path) -> None:
        """Require that the key is missing. Inside a list item, require the item, because items may move."""
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
        """Require that the container is not empty. Any tested value below is enough, or the first item of a list."""
        known = any(_is_below(value, path) and value_at(self.base, value) is not None for value in self.values)
        if not known and path not in self.lengths:
            self.require_value((*path, 0) if isinstance(value_at(self.base, path), list) else path)

    def require_presence(self, path: Path) -> None:
        """Require that the container exists.

        A map exists if a key that it lacks tests as null. For a list, test the first item.
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
        """Guard the deepest paths first, because a guard implies that its parents exist. The root always exists."""
        for path in sorted(paths, key=len, reverse=True):
            if path and not self._is_covered(path):
                require(path)

    def tests(self) -> list[Op]:
        """Return the test operations, in the order of their paths."""
        tests_in_list = Counter(
            path[:end] for path in self.values | self.absences for end, part in enumerate(path) if isinstance(part, int)
        )
        for path, count in tests_in_list.items():
            if count > MAX_TESTS_PER_LIST or (path in self.lengths and self._has_all_items(path)):
                self.require_value(path)
        too_many = len(self.values) + len(self.absences) + 3 * len(self.lengths) > MAX_TESTS
        if (
            too_many
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
        """Return whether the path, or a parent of it, is tested by value."""
        return any(path[:end] in self.values for end in range(len(path) + 1))

    def _has_all_items(self, path: Path) -> bool:
        """Return whether every item of the list is tested by value."""
        return {(*path, index) for index in range(len(value_at(self.base, path)))} <= self.values

    def _test_length(self, path: Path) -> list[Op]:
        """Return operations that test a length: append a marker, test it at the expected index, and remove it."""
        marker, last = {"": value_at(self.base, ("metadata", "uid"))}, (*path, len(value_at(self.base, path)))
        add = {"op": "add", "path": to_pointer((*path, "-")), "value": marker}
        return [add, _test(last, marker), {"op": "remove", "path": to_pointer(last)}]


def _has_null_item(value: Any) -> bool:
    """Return whether a list in it contains null: a real server drops the connection if a patch tests such a list."""
    if isinstance(value, dict):
        return any(map(_has_null_item, value.values()))
    return isinstance(value, list) and any(item is None or _has_null_item(item) for item in value)


def _test(path: Path, value: Any) -> Op:
    return {"op": "test", "path": to_pointer(path), "value": value}


def _is_below(path: Path, top: Path) -> bool:
    return len(path) > len(top) and path[: len(top)] == top


def _first_missing(base: dict[str, Any], path: Path) -> Path:
    """Return the topmost missing parent of the path, or the path. Null counts as missing, as it does for a server."""
    for end in range(1, len(path)):
        if value_at(base, path[:end]) in (MISSING, None):
            return path[:end]
    return path


def _without_nulls(value: Any) -> Any:
    """Return the value without nulls in maps. Most servers drop them, so setting one would be sent again every time."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _nest(container: Any, path: Path, value: Any) -> Any:
    """Return a copy of the container with the value at the path."""
    if not path:
        return value
    container = dict(container or {})
    container[path[0]] = _nest(container.get(path[0]), path[1:], value)
    return container
