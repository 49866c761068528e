"""The draft that a deciding function is handed: reads are noted, writes are collected, the object stays as it is."""

from collections.abc import Iterator, MutableMapping, MutableSequence
from enum import Enum
from typing import Any, overload

import msgspec

from fairlead.writes.jsonpatch import MISSING, Path, at, same


class Noted(Enum):
    """What was learnt about a path."""

    VALUE = "its value"
    ABSENT = "that it is not there"
    PRESENT = "that a map or list is there, not what is in it"
    FILLED = "that a map or list is not empty"


DELETED: Any = type("Deleted", (), {"__repr__": lambda _: "DELETED"})()

# The address of the object and its uid: guarded always, so never worth a note.
_IDENTITY: frozenset[Path] = frozenset(
    {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"), ("metadata", "uid")}
)


class Ledger:
    """An object, what was read of it, and what is to change. `base` is never touched."""

    def __init__(self, base: dict[str, Any]) -> None:
        self.base = base
        self.reads: set[tuple[Path, Noted]] = set()
        self.edits: dict[Path, Any] = {}  # no path in it is below another

    def note(self, path: Path, what: Noted) -> None:
        if path not in _IDENTITY:
            self.reads.add((path, what))

    def lookup(self, path: Path) -> tuple[Any, bool]:
        """The value at the path as it would be now (or MISSING), and whether the function itself put it there."""
        for end in range(len(path) + 1):
            own = self.edits.get(path[:end], MISSING)
            if own is not MISSING:
                return (MISSING if own is DELETED else at(own, path[end:])), True
        return at(self.base, path), False

    def touched(self, path: Path) -> bool:
        """Whether something below the path is to be there that was not."""
        return any(edit is not DELETED for edit in self._below(path).values())

    def read(self, path: Path) -> Any:
        """What the function gets: a scalar, a view, or MISSING; noted as such. What it wrote itself is not noted."""
        value, own = self.lookup(path)
        if own:
            return value
        if isinstance(value, dict):
            self.note(path, Noted.PRESENT)
            return MapView(self, path)
        if isinstance(value, list):
            self.note(path, Noted.PRESENT)
            return ListView(self, path)
        if self.touched(path):
            return MapView(self, path)
        self.note(path, Noted.ABSENT if value is MISSING else Noted.VALUE)
        return value

    def keys(self, path: Path) -> list[str]:
        value, own = self.lookup(path)
        if not own:
            self.note(path, Noted.ABSENT if value is MISSING else Noted.VALUE)
        keys = dict.fromkeys(value if isinstance(value, dict) else ())
        for edited, edit in self._below(path).items():
            key = edited[len(path)]
            if edit is DELETED and len(edited) == len(path) + 1:
                keys.pop(key, None)
            elif edit is not DELETED:
                keys[key] = None
        return list(keys)

    def whole(self, path: Path) -> Any:
        """A plain copy of all that is at the path, noted as a read of its value."""
        value, own = self.lookup(path)
        if not own:
            self.note(path, Noted.ABSENT if value is MISSING else Noted.VALUE)
        value = plain(value)
        for edited, edit in self._below(path).items():
            value = _put(value, edited[len(path) :], edit)
        return value

    def write(self, path: Path, value: Any) -> None:
        """Set the value at the path, or take it away with DELETED. Notes nothing: what is replaced is always tested."""
        for end in range(len(path)):
            if path[:end] in self.edits:
                own = self.edits[path[:end]]
                self.edits[path[:end]] = _put({} if own is DELETED else own, path[end:], value)
                return
        for below in self._below(path):
            del self.edits[below]
        self.edits[path] = value

    def take(self, path: Path) -> list[Any]:
        """The list at the path as the function's own, to be changed in place."""
        value, own = self.lookup(path)
        if not own:
            value = self.whole(path)
            self.write(path, value)
        assert isinstance(value, list)
        return value

    def _below(self, path: Path) -> dict[Path, Any]:
        return {p: edit for p, edit in self.edits.items() if len(p) > len(path) and p[: len(path)] == path}


class MapView(MutableMapping[str, Any]):
    """A map of the object. Reading a key notes that key, present or not; iterating or measuring notes the whole map."""

    __slots__ = ("_ledger", "_path")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, ledger: Ledger, path: Path) -> None:
        self._ledger = ledger
        self._path = path

    def __getitem__(self, key: str) -> Any:
        value = self._ledger.read((*self._path, key))
        if value is MISSING:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        self._ledger.write((*self._path, key), plain(value))

    def __delitem__(self, key: str) -> None:
        if self._ledger.read((*self._path, key)) is MISSING:
            raise KeyError(key)
        self._ledger.write((*self._path, key), DELETED)

    def fill(self, key: str, value: Any) -> None:
        """Set the key if it is not there. Where it is there, nothing is noted: what it is does not matter."""
        if self.unnoted(key) is None:
            self[key] = value

    def unnoted(self, key: str) -> Any:
        """The value at the key, or None. Only for one that is written in any case, and so tested in any case."""
        value, _ = self._ledger.lookup((*self._path, key))
        return None if value is MISSING else value

    def below(self, key: str) -> "MapView | None":
        """The map at the key, an empty one to be filled if there is none, None if something else is there."""
        value, _ = self._ledger.lookup((*self._path, key))
        return (
            MapView(self._ledger, (*self._path, key)) if value in (MISSING, None) or isinstance(value, dict) else None
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._ledger.keys(self._path))

    def __len__(self) -> int:
        return len(self._ledger.keys(self._path))

    def __bool__(self) -> bool:
        return _filled(self._ledger, self._path) or len(self) > 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict | MapView) and same(self.plain(), plain(other))

    def __repr__(self) -> str:
        return f"<map at {'.'.join(map(str, self._path)) or 'the root'}>"  # contents would have to be noted

    def __deepcopy__(self, memo: Any) -> Any:
        return self.plain()

    def plain(self) -> dict[str, Any]:
        """A plain copy; notes the whole map."""
        value = self._ledger.whole(self._path)
        return value if isinstance(value, dict) else {}


class ListView(MutableSequence[Any]):
    """A list of the object.

    Reading an item notes that item at its place. Reaching the end, measuring, adding and removing note the whole list.
    """

    __slots__ = ("_ledger", "_path")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, ledger: Ledger, path: Path) -> None:
        self._ledger = ledger
        self._path = path

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        value, own = self._ledger.lookup(self._path)
        if own:
            return value[index]
        if isinstance(index, slice):
            return self.plain()[index]
        if index < 0:
            self._ledger.note(self._path, Noted.VALUE)  # counted from the end: the length was read
            index += len(value)
        if not 0 <= index < len(value):
            self._ledger.note(self._path, Noted.VALUE)
            raise IndexError(index)
        return self._ledger.read((*self._path, index))

    def __setitem__(self, index: Any, value: Any) -> None:
        current, own = self._ledger.lookup(self._path)
        if not own and isinstance(index, int) and 0 <= index < len(current):
            self._ledger.write((*self._path, index), plain(value))
        else:
            self._ledger.take(self._path)[index] = plain(value)

    def __delitem__(self, index: int | slice) -> None:
        del self._ledger.take(self._path)[index]

    def insert(self, index: int, value: Any) -> None:
        self._ledger.take(self._path).insert(index, plain(value))

    def __len__(self) -> int:
        return len(self.plain())

    def __bool__(self) -> bool:
        return _filled(self._ledger, self._path) or len(self) > 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list | ListView) and same(self.plain(), plain(other))

    def __repr__(self) -> str:
        return f"<list at {'.'.join(map(str, self._path))}>"

    def __deepcopy__(self, memo: Any) -> Any:
        return self.plain()

    def plain(self) -> list[Any]:
        """A plain copy; notes the whole list."""
        value = self._ledger.whole(self._path)
        return value if isinstance(value, list) else []


class Draft(MapView):
    """The whole object, with the properties that an Object has.

    A property of a part that is missing is an empty map that can be written to; `draft.get("status")` is None then.
    """

    __slots__ = ()

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger, ())

    @property
    def metadata(self) -> MapView:
        return MapView(self._ledger, ("metadata",))

    @property
    def labels(self) -> MapView:
        return MapView(self._ledger, ("metadata", "labels"))

    @property
    def annotations(self) -> MapView:
        return MapView(self._ledger, ("metadata", "annotations"))

    @property
    def spec(self) -> MapView:
        return MapView(self._ledger, ("spec",))

    @property
    def status(self) -> MapView:
        return MapView(self._ledger, ("status",))

    @property
    def name(self) -> str:
        return str(self.metadata.get("name") or "")

    @property
    def namespace(self) -> str | None:
        return self.metadata.get("namespace") or None

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid") or "")

    @property
    def generation(self) -> int:
        return int(self.metadata.get("generation") or 0)

    @property
    def deleting(self) -> bool:
        return bool(self.metadata.get("deletionTimestamp"))

    def condition(self, type: str) -> Any:  # noqa: A002 - the API's own word
        """The condition of that type, or None. Notes the types up to it; the whole list when there is none."""
        for condition in self.status.get("conditions") or ():
            if condition.get("type") == type:
                return condition
        return None

    def is_true(self, type: str) -> bool:  # noqa: A002 - the API's own word
        condition = self.condition(type)
        return condition is not None and condition.get("status") == "True"


def plain(value: Any) -> Any:
    """A plain copy of a value, views and typed models included; a view is then noted as read whole."""
    if isinstance(value, MapView | ListView):
        return value.plain()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or value is MISSING or isinstance(value, str | int | float):
        return value
    return msgspec.to_builtins(value, str_keys=True)


def _filled(ledger: Ledger, path: Path) -> bool:
    value, own = ledger.lookup(path)
    if own or ledger.touched(path):
        return bool(value) or ledger.touched(path)
    if value:
        ledger.note(path, Noted.FILLED)
    return bool(value)


def _put(value: Any, path: Path, new: Any) -> Any:
    """`value` with `new` at the path, maps made on the way, changed in place where it can be."""
    if not path:
        return new
    key = path[0]
    if isinstance(value, list):
        value[int(key)] = _put(value[int(key)], path[1:], new)
        return value
    value = value if isinstance(value, dict) else {}
    if len(path) == 1 and new is DELETED:
        value.pop(key, None)
    else:
        value[key] = _put(value.get(key), path[1:], new)
    return value
