"""From what was read and what is to change to one JSON patch: tests first, then the changes."""

from typing import Any

from fairlead.writes.jsonpatch import MISSING, Op, Path, at, pointer, same
from fairlead.writes.view import DELETED, Ledger, Noted

_VERSION: Path = ("metadata", "resourceVersion")


def patch_of(ledger: Ledger) -> list[Op]:
    """The patch that makes the changes if uid, every read, every replaced value and every filled absence still hold.

    Empty when nothing would change: a decision to leave things alone sends nothing and is not checked.
    """
    base = ledger.base
    guards = _Guards(base)
    changes: list[Op] = []
    added: dict[Path, Any] = {}
    for path, new in ledger.edits.items():
        old = at(base, path)
        if old is MISSING:
            if new is not DELETED and new is not None:  # null is stored as nothing, and would be sent for ever
                first = _first_missing(base, path)
                guards.absent(first)
                added[first] = _nested(added.get(first), path[len(first) :], new)
        elif new is DELETED:
            guards.value(path)
            changes.append({"op": "remove", "path": pointer(path)})
        elif not same(old, new):
            guards.value(path)
            changes.append({"op": "replace", "path": pointer(path), "value": new})
    changes += [{"op": "add", "path": pointer(path), "value": value} for path, value in added.items()]
    if not changes:
        return []
    for path, noted in ledger.reads:
        if noted is Noted.VALUE:
            guards.value(path)
        elif noted is Noted.ABSENT:
            guards.absent(_first_missing(base, path))
    guards.imply({path for path, noted in ledger.reads if noted is Noted.FILLED}, guards.filled)
    guards.imply({path for path, noted in ledger.reads if noted is Noted.PRESENT}, guards.present)
    uid = {"op": "test", "path": "/metadata/uid", "value": at(base, ("metadata", "uid"))}
    return [uid, *guards.tests(), *sorted(changes, key=lambda op: str(op["path"]))]


class _Guards:
    def __init__(self, base: dict[str, Any]) -> None:
        self.base = base
        self.values: set[Path] = set()
        self.absents: set[Path] = set()

    def value(self, path: Path) -> None:
        """Metadata read whole holds the resourceVersion, and that one alone stands for everything."""
        self.values.add(_VERSION if path in ((), ("metadata",)) else path)

    def absent(self, path: Path) -> None:
        """An absence in an item of a list is one of the list: whose item it is, only the list says."""
        inside = [place for place, part in enumerate(path) if isinstance(part, int)]
        if inside:
            self.value(path[: inside[-1]])
        else:
            self.absents.add(path)

    def filled(self, path: Path) -> None:
        if not any(_below(value, path) and at(self.base, value) is not None for value in self.values):
            self.value(path)

    def present(self, path: Path) -> None:
        """A map is there exactly when a key that it does not have tests as null; a list has no such key."""
        if any(_below(guard, path) for guard in self.values | self.absents):
            return
        found = at(self.base, path)
        if isinstance(found, dict):
            key = ""
            while key in found:
                key += "_"
            self.absent((*path, key))
        else:
            self.value(path)

    def imply(self, paths: set[Path], guard: Any) -> None:
        """Guard the deepest first: what is below something implies it. The root is always there."""
        for path in sorted(paths, key=len, reverse=True):
            if path and not any(path[:end] in self.values for end in range(len(path) + 1)):
                guard(path)

    def tests(self) -> list[Op]:
        if _VERSION in self.values:  # it changes whenever anything does
            self.values, self.absents = {_VERSION}, set()
        tests = [
            {"op": "test", "path": pointer(path), "value": None if path in self.absents else at(self.base, path)}
            for path in self.values | self.absents
            if not any(path[:end] in self.values for end in range(len(path)))
        ]
        return sorted(tests, key=lambda op: str(op["path"]))


def _below(path: Path, top: Path) -> bool:
    return len(path) > len(top) and path[: len(top)] == top


def _first_missing(base: dict[str, Any], path: Path) -> Path:
    """Null counts as missing: a server tells the two apart no better."""
    for end in range(1, len(path)):
        if at(base, path[:end]) in (MISSING, None):
            return path[:end]
    return path


def _nested(into: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    into = dict(into or {})
    into[path[0]] = _nested(into.get(path[0]), path[1:], value)
    return into
