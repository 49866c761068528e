"""From what was read and what is to change to one JSON patch: tests first, then the changes."""

from collections import Counter
from typing import Any, NamedTuple

from fairlead.writes.jsonpatch import MISSING, Op, Path, at, pointer, same
from fairlead.writes.view import DELETED, Ledger, Noted

_VERSION: Path = ("metadata", "resourceVersion")

# Of a list that much was read of, all may be tested: then the request does not outgrow the list.
MOST_OF_A_LIST = 100
# A server takes 10,000 operations, changes among them: beyond this, the resourceVersion is tested instead.
MOST = 5000


class Patch(NamedTuple):
    """What is to hold, and what is then to change."""

    tests: list[Op]
    changes: list[Op]

    @property
    def ops(self) -> list[Op]:
        return [*self.tests, *self.changes]


def patch_of(ledger: Ledger) -> Patch:
    """The patch that makes the changes if uid, every read, every replaced value and every filled absence still hold.

    Empty when nothing would change: a decision to leave things alone sends nothing and is not checked.
    """
    base = ledger.base
    guards = _Guards(base)
    changes: list[Op] = []
    added: dict[Path, Any] = {}
    for path, new in ledger.edits.items():
        old = at(base, path)
        if old is not MISSING:  # tested also where it is what it is to be: someone may change it meanwhile
            guards.value(path)
            if new is DELETED:
                changes.append({"op": "remove", "path": pointer(path)})
            elif not same(_without_nulls(old), _without_nulls(new)):
                changes.append({"op": "replace", "path": pointer(path), "value": new})
            continue
        first = _first_missing(base, path)
        if isinstance(first[-1], int):
            guards.length(first[:-1])
            changes.append({"op": "add", "path": pointer((*first[:-1], "-")), "value": new})
            continue
        guards.filling(first)
        if new is not DELETED and new is not None:  # null is stored as nothing, and would be sent for ever
            added[first] = _nested(added.get(first), path[len(first) :], new)
    changes += [{"op": "add", "path": pointer(path), "value": value} for path, value in added.items()]
    if not changes:
        return Patch([], [])
    for path, noted in ledger.reads:
        if noted is Noted.VALUE:
            guards.value(path)
        elif noted is Noted.ABSENT:
            guards.absents.add(_first_missing(base, path))
        elif noted is Noted.LENGTH:
            guards.length(path)
    guards.imply({path for path, noted in ledger.reads if noted is Noted.FILLED}, guards.filled)
    guards.imply({path for path, noted in ledger.reads if noted is Noted.PRESENT}, guards.present)
    uid = ("metadata", "uid")
    return Patch([_test(uid, at(base, uid)), *guards.tests()], sorted(changes, key=lambda op: str(op["path"])))


class _Guards:
    def __init__(self, base: dict[str, Any]) -> None:
        self.base = base
        self.values: set[Path] = set()
        self.absents: set[Path] = set()
        self.lengths: set[Path] = set()

    def value(self, path: Path) -> None:
        """Metadata read whole holds the resourceVersion, and that one alone stands for everything."""
        self.values.add(_VERSION if path in ((), ("metadata",)) else path)

    def filling(self, path: Path) -> None:
        """What is put into an item of a list is meant for that very item, wherever it stands by then."""
        inside = [place for place, part in enumerate(path) if isinstance(part, int)]
        if inside:
            self.value(path[: inside[-1] + 1])
        else:
            self.absents.add(path)

    def length(self, path: Path) -> None:
        if at(self.base, path):
            self.lengths.add(path)
        else:
            self.value(path)

    def filled(self, path: Path) -> None:
        """Something that is below is enough; of a list the first item is."""
        known = any(_below(value, path) and at(self.base, value) is not None for value in self.values)
        if not known and path not in self.lengths:
            self.value((*path, 0) if isinstance(at(self.base, path), list) else path)

    def present(self, path: Path) -> None:
        """A map is there exactly when a key that it does not have tests as null; a list has no such key."""
        if path in self.lengths or any(_below(guard, path) for guard in self.values | self.absents | self.lengths):
            return
        found = at(self.base, path)
        if isinstance(found, dict):
            key = ""
            while key in found:
                key += "_"
            self.absents.add((*path, key))
        else:
            self.value((*path, 0) if found else path)

    def imply(self, paths: set[Path], guard: Any) -> None:
        """Guard the deepest first: what is below something implies it. The root is always there."""
        for path in sorted(paths, key=len, reverse=True):
            if path and not self._covered(path):
                guard(path)

    def tests(self) -> list[Op]:
        below = Counter(
            path[:end] for path in self.values | self.absents for end, part in enumerate(path) if isinstance(part, int)
        )
        for path, count in below.items():
            every = path in self.lengths and {(*path, n) for n in range(len(at(self.base, path)))} <= self.values
            if every or count > MOST_OF_A_LIST:
                self.value(path)
        many = len(self.values) + len(self.absents) + 3 * len(self.lengths) > MOST
        if many or _VERSION in self.values or any(_null_in_a_list(at(self.base, path)) for path in self.values):
            self.values, self.absents, self.lengths = {_VERSION}, set(), set()  # it changes whenever anything does
        tests = {
            path: [_test(path, None if path in self.absents else at(self.base, path))]
            for path in self.values | self.absents
            if not self._covered(path[:-1])
        }
        tests |= {path: self._measure(path) for path in self.lengths if not self._covered(path)}
        return [op for path in sorted(tests, key=pointer) for op in tests[path]]

    def _covered(self, path: Path) -> bool:
        """Whether it is tested by value, itself or with what it is in."""
        return any(path[:end] in self.values for end in range(len(path) + 1))

    def _measure(self, path: Path) -> list[Op]:
        """No operation tests a length, but what is added at the end can be found only at the place that it gives."""
        mark, last = {"": at(self.base, ("metadata", "uid"))}, (*path, len(at(self.base, path)))
        add = {"op": "add", "path": pointer((*path, "-")), "value": mark}
        return [add, _test(last, mark), {"op": "remove", "path": pointer(last)}]


def _null_in_a_list(value: Any) -> bool:
    """Whether there is one: a real server gives up a request that tests such a list, without an answer."""
    if isinstance(value, dict):
        return any(map(_null_in_a_list, value.values()))
    return isinstance(value, list) and any(item is None or _null_in_a_list(item) for item in value)


def _test(path: Path, value: Any) -> Op:
    return {"op": "test", "path": pointer(path), "value": value}


def _below(path: Path, top: Path) -> bool:
    return len(path) > len(top) and path[: len(top)] == top


def _first_missing(base: dict[str, Any], path: Path) -> Path:
    """Null counts as missing: a server tells the two apart no better."""
    for end in range(1, len(path)):
        if at(base, path[:end]) in (MISSING, None):
            return path[:end]
    return path


def _without_nulls(value: Any) -> Any:
    """A null in a map is what most servers leave out: one that is set where nothing is would be sent for ever."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _nested(into: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    into = dict(into or {})
    into[path[0]] = _nested(into.get(path[0]), path[1:], value)
    return into
