"""Maps and lists of an object whose reads are noted and whose changes are collected; the object stays as it is."""

from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence
from enum import Enum
from functools import cached_property
from typing import Any, overload

from fairlead.writes.errors import WriteError
from fairlead.writes.jsonpatch import MISSING, Path, same
from fairlead.writes.values import finite, scalar, text


class Noted(Enum):
    """What was learnt about a path."""

    VALUE = "its value"
    ABSENT = "that it is not there"
    PRESENT = "that a map or list is there, not what is in it"
    LENGTH = "how many items a list has, not what they are"
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
        self.root = MapView(self, (), base)
        self.closed = False  # the patch is made: what is read from now on is guarded by nothing

    def note(self, path: Path, what: Noted) -> None:
        if self.closed:
            raise WriteError("a part of a draft is read after its function has returned: return a plain copy of it")
        if path not in _IDENTITY:
            self.reads.add((path, what))

    @cached_property
    def edits(self) -> dict[Path, Any]:
        """What is to be at which path, DELETED for nothing; no path is below another. Asked when the function is done.

        A view that was put elsewhere is noted as read whole. What is replaced is not noted: it is always tested.
        """
        edits: dict[Path, Any] = {}
        with finite("what the decision changes"):
            self._gather(self.root, edits)
        return edits

    def _gather(self, view: "MapView | ListView", edits: dict[Path, Any]) -> None:
        changed = view.changed()
        if changed is None:
            edits[view.path] = view.plain()
            return
        for key, value in changed.items():
            place = (*view.path, key)
            if isinstance(value, MapView | ListView) and value.ledger is self and value.path == place:
                self._gather(value, edits)
            else:
                edits[place] = plain(value)


# What views say they are: who asks whether one is a map or list is told so, and encoders that take a map's own memory,
# in which a view has nothing, refuse it with this name in their message.
_MAP: type = type("map of a draft (take its plain() copy)", (dict,), {})
_LIST: type = type("list of a draft (take its plain() copy)", (list,), {})


class MapView(MutableMapping[str, Any]):
    """A map of the object. Reading a key notes that key, present or not; iterating or measuring notes the whole map.

    A view is the map itself, not its place: moved, it goes on being the same map, and taken out it is nobody's. What is
    noted is where the object had it.
    """

    __slots__ = ("_base", "_late", "_own", "_views", "ledger", "path")
    __hash__ = None  # type: ignore[assignment]
    __class__ = property(lambda self: _MAP)

    def __init__(self, ledger: Ledger, path: Path, base: Any) -> None:
        self.ledger = ledger
        self.path = path
        self._base: dict[str, Any] | None = base if isinstance(base, dict) else None
        self._own: dict[str, Any] = {}  # set or DELETED by the function
        self._views: dict[str, MapView | ListView] = {}  # handed out, of what the object has
        self._late: dict[str, MapView] = {}  # handed out to be filled, where there is nothing

    def _now(self, key: str) -> tuple[Any, bool]:
        """The value as it would be now (or MISSING), and whether the function itself put it there. Notes nothing."""
        own = self._own.get(key, MISSING)
        if own is not MISSING and own is not DELETED and own is not None:
            return own, True
        late = self._late.get(key)
        if late is not None and late.touched():
            return late, True
        if own is not MISSING:
            return (MISSING if own is DELETED else own), True
        if key in self._views:
            return self._views[key], False
        return (self._base or {}).get(key, MISSING), False

    def _view(self, key: str, value: Any) -> Any:
        """The view of a map or list that the object has; anything else as it is."""
        if isinstance(value, dict | list) and key not in self._views:
            self._views[key] = _view(self.ledger, (*self.path, key), value)
        return self._views.get(key, value)

    def _read(self, key: str) -> Any:
        """What the function gets: a scalar, a view, or MISSING; noted as such. What it wrote itself is not noted."""
        value, own = self._now(key)
        if own:
            return value
        value = self._view(key, value)
        self.ledger.note((*self.path, key), _noted(value))
        return value

    def _keys(self) -> list[str]:
        keys = dict.fromkeys(self._base or ())
        for key in (*self._own, *self._late):
            if self._now(key)[0] is MISSING:
                keys.pop(key, None)
            else:
                keys[key] = None
        return list(keys)

    def _whole(self) -> None:
        self.ledger.note(self.path, Noted.ABSENT if self._base is None else Noted.VALUE)

    def touched(self) -> bool:
        """Whether something is to be in it that was not."""
        return any(value is not DELETED for value in self._own.values()) or any(
            late.touched() for late in self._late.values()
        )

    def changed(self) -> dict[str, Any] | None:
        """By key, what the function set or took away, and the views below, which may have changed."""
        return {**self._views, **self._own, **{key: late for key, late in self._late.items() if late.touched()}}

    def __getitem__(self, key: str) -> Any:
        value = self._read(key)
        if value is MISSING:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        text(key, f"the key {key!r} of {self!r}")
        self._late.pop(key, None)
        self._own[key] = _kept(value)

    def __delitem__(self, key: str) -> None:
        if self._read(key) is MISSING:
            raise KeyError(key)
        self._late.pop(key, None)
        self._own[key] = DELETED

    def fill(self, key: str, value: Any) -> None:
        """Set the key if it is not there. Where it is there, null too, nothing is noted: what it is does not matter."""
        if self._now(key)[0] is MISSING:
            self[key] = value

    def unnoted(self, key: str) -> Any:
        """The value at the key, or None. Only for one that is written in any case, and so tested in any case."""
        value, _ = self._now(key)
        return None if value is MISSING else value

    def null(self, key: str) -> bool:
        """Whether null is what is there; notes nothing."""
        return self._now(key)[0] is None

    def below(self, key: str) -> "MapView | None":
        """The map at the key, an empty one to be filled if there is none, None if something else is there."""
        value, own = self._now(key)
        if value is MISSING or value is None:
            # where the function took something away, there is nothing of the object left to note
            ledger = Ledger({}) if own else self.ledger
            return self._late.setdefault(key, MapView(ledger, (*self.path, key), MISSING))
        value = value if own else self._view(key, value)
        return value if isinstance(value, MapView) else None

    def __iter__(self) -> Iterator[str]:
        self._whole()
        return iter(self._keys())

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self))

    def popitem(self) -> tuple[str, Any]:
        """The last key and what it has, as a dict gives them."""
        if not self:
            raise KeyError("the map is empty")
        key = next(reversed(self))
        return key, self.pop(key)

    def __len__(self) -> int:
        self._whole()
        return len(self._keys())

    def __bool__(self) -> bool:
        if self.touched():
            return True
        if self._base and not self._own:
            self.ledger.note(self.path, Noted.FILLED)
            return True
        return len(self) > 0

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, dict | MapView) and same(self.plain(), plain(other)))

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**self, **other}

    def __ror__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**other, **self}

    def __ior__(self, other: Any) -> "MapView":  # type: ignore[misc]
        self.update(other)
        return self

    def __repr__(self) -> str:
        return f"<map at {'.'.join(map(str, self.path)) or 'the root'}>"  # contents would have to be noted

    def __str__(self) -> str:
        return str(self.plain())

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    copy = __copy__

    def __deepcopy__(self, memo: Any) -> Any:
        return self.plain()

    def plain(self) -> dict[str, Any]:
        """A plain copy; notes the whole map."""
        self._whole()
        return {key: plain(self._now(key)[0]) for key in self._keys()}


class ListView(MutableSequence[Any]):
    """A list of the object.

    Reading an item notes that item at its place; reaching the end and measuring note how long the list is. Adding at
    the end depends on its length too. Whatever moves items notes the whole list. Like a map, a view is the list itself,
    and its items keep their identity when they change places.
    """

    __slots__ = ("_added", "_base", "_items", "_own", "_views", "ledger", "path")
    __hash__ = None  # type: ignore[assignment]
    __class__ = property(lambda self: _LIST)

    def __init__(self, ledger: Ledger, path: Path, base: list[Any]) -> None:
        self.ledger = ledger
        self.path = path
        self._base = base
        self._own: dict[int, Any] = {}  # set by the function, at a place that the object has
        self._added: list[Any] = []  # behind what the object has
        self._views: dict[int, MapView | ListView] = {}
        self._items: list[Any] | None = None  # all of it, once places are no longer those of the object

    def _at(self, index: int) -> Any:
        """The item at a place that the object has; notes nothing."""
        if index in self._own:
            return self._own[index]
        value = self._base[index]
        if isinstance(value, dict | list) and index not in self._views:
            self._views[index] = _view(self.ledger, (*self.path, index), value)
        return self._views.get(index, value)

    def _place(self, index: int) -> int:
        """The place that is meant, counted from the front. Notes the length where that is asked for."""
        if 0 <= index < len(self._base):
            return index
        length = len(self)
        if not -length <= index < length:
            raise IndexError("list index out of range")
        return index % length

    def _read(self, place: int) -> Any:
        """What the function gets, noted. What it put there itself is not noted."""
        if place >= len(self._base):
            return self._added[place - len(self._base)]
        value = self._at(place)
        if place not in self._own:
            self.ledger.note((*self.path, place), _noted(value))
        return value

    def _all(self) -> list[Any]:
        """Every item; notes the whole list."""
        self.ledger.note(self.path, Noted.VALUE)
        if self._items is not None:
            return self._items
        return [*(self._at(index) for index in range(len(self._base))), *self._added]

    def _take(self) -> list[Any]:
        """Every item, to be moved about."""
        self._items = self._all()
        return self._items

    def changed(self) -> dict[int, Any] | None:
        """By place, what the function set, and the views below, which may have changed. None when all of it has."""
        if self._items is not None:
            return None
        return {**self._views, **self._own, **dict(enumerate(self._added, len(self._base)))}

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if self._items is not None:
            return self._all()[index]
        if isinstance(index, slice):
            return [self._read(place) for place in range(*index.indices(len(self)))]
        return self._read(self._place(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            self._take()[index] = map(_kept, value)
        elif self._items is not None:
            self._items[index] = _kept(value)
        elif (place := self._place(index)) < len(self._base):
            self._own[place] = _kept(value)
        else:
            self._added[place - len(self._base)] = _kept(value)

    def __delitem__(self, index: int | slice) -> None:
        del self._take()[index]

    def insert(self, index: int, value: Any) -> None:
        self._take().insert(index, _kept(value))

    def append(self, value: Any) -> None:
        (self._added if self._items is None else self._items).append(_kept(value))

    def sort(self, *, key: Any = None, reverse: bool = False) -> None:
        self._take().sort(key=key, reverse=reverse)

    def __len__(self) -> int:
        if self._items is not None:
            return len(self._items)
        self.ledger.note(self.path, Noted.LENGTH)
        return len(self._base) + len(self._added)

    def __bool__(self) -> bool:
        if self._items is None and self._base:
            self.ledger.note(self.path, Noted.FILLED)
            return True
        return (self._items is None and bool(self._added)) or len(self) > 0

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, list | ListView) and same(self.plain(), plain(other)))

    def __add__(self, other: Any) -> list[Any]:
        return [*self, *other]

    def __radd__(self, other: Any) -> list[Any]:
        return [*other, *self]

    def __repr__(self) -> str:
        return f"<list at {'.'.join(map(str, self.path))}>"

    def __str__(self) -> str:
        return str(self.plain())

    def __copy__(self) -> list[Any]:
        return list(self)

    copy = __copy__

    def __deepcopy__(self, memo: Any) -> Any:
        return self.plain()

    def plain(self) -> list[Any]:
        """A plain copy; notes the whole list."""
        return [plain(item) for item in self._all()]


def plain(value: Any, where: str = "a value") -> Any:
    """A plain copy of a value, views and typed models included; a view is then noted as read whole."""
    if isinstance(value, MapView | ListView):
        return value.plain()
    if isinstance(value, dict):
        return {text(key, f"the key {key!r} of {where}"): plain(item, where) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, where) for item in value]
    if value is MISSING or value is DELETED:
        return value
    return scalar(value, where)


def _view(ledger: Ledger, path: Path, value: dict[str, Any] | list[Any]) -> MapView | ListView:
    return MapView(ledger, path, value) if isinstance(value, dict) else ListView(ledger, path, value)


def _noted(value: Any) -> Noted:
    if isinstance(value, MapView | ListView):
        return Noted.PRESENT
    return Noted.ABSENT if value is MISSING else Noted.VALUE


def _kept(value: Any) -> Any:
    """What the function sets: maps, lists and views themselves, so that it may go on changing them."""
    return value if isinstance(value, dict | list | MapView | ListView) else plain(value)
