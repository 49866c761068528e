"""The maps and lists of a draft. They record reads in an access log, and keep changes apart from the object."""

from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence
from typing import Any, overload

from fairlead.writes.access_log import Access, AccessLog
from fairlead.writes.json_patch import MISSING, Path, json_equal
from fairlead.writes.json_values import reject_cycles, require_text, to_json

DELETED: Any = type("Deleted", (), {"__repr__": lambda _: "DELETED"})()

# The classes that tracked containers claim to be, so that isinstance(value, dict) and isinstance(value, list) are true.
# Encoders written in C would read the empty memory of a dict. They raise instead, with this name in their message.
_MAP: type = type("map of a draft (take its plain() copy)", (dict,), {})
_LIST: type = type("list of a draft (take its plain() copy)", (list,), {})


class TrackedMap(MutableMapping[str, Any]):
    """A map in a draft. It records the keys that the decision function reads, and the changes of the function.

    Reading a key records that key, present or not. Iterating and len() record the whole map. If the function moves the
    map to another key, reads are still recorded at the original path.
    """

    __slots__ = ("_base", "_children", "_placeholders", "_updates", "log", "path")
    __hash__ = None  # type: ignore[assignment]
    __class__ = property(lambda self: _MAP)

    def __init__(self, log: AccessLog, path: Path, base: Any) -> None:
        self.log = log
        self.path = path
        self._base: dict[str, Any] | None = base if isinstance(base, dict) else None
        self._updates: dict[str, Any] = {}  # Values that the function set, or DELETED.
        self._children: dict[str, TrackedMap | TrackedList] = {}  # Tracked maps and lists of the object.
        self._placeholders: dict[str, TrackedMap] = {}  # Empty maps for missing keys; they exist once they are filled.

    def _current(self, key: str) -> tuple[Any, bool]:
        """Return (value or MISSING, whether the decision function set it). The read is not recorded."""
        update = self._updates.get(key, MISSING)
        if update is not MISSING and update is not DELETED and update is not None:
            return update, True
        placeholder = self._placeholders.get(key)
        if placeholder is not None and placeholder.has_content():
            return placeholder, True
        if update is not MISSING:
            return (MISSING if update is DELETED else update), True
        if key in self._children:
            return self._children[key], False
        return (self._base or {}).get(key, MISSING), False

    def _track(self, key: str, value: Any) -> Any:
        """Return the TrackedMap or TrackedList of a map or list, and any other value unchanged."""
        if isinstance(value, dict | list) and key not in self._children:
            self._children[key] = _track(self.log, (*self.path, key), value)
        return self._children.get(key, value)

    def _read(self, key: str) -> Any:
        """Return the value of a key, or MISSING. Record the read unless the decision function set the value."""
        value, is_own = self._current(key)
        if is_own:
            return value
        value = self._track(key, value)
        self.log.record((*self.path, key), _get_access_kind(value))
        return value

    def _keys(self) -> list[str]:
        keys = dict.fromkeys(self._base or ())
        for key in (*self._updates, *self._placeholders):
            if self._current(key)[0] is MISSING:
                keys.pop(key, None)
            else:
                keys[key] = None
        return list(keys)

    def _record_all(self) -> None:
        self.log.record(self.path, Access.ABSENT if self._base is None else Access.VALUE)

    def has_content(self) -> bool:
        """Return whether the decision function set a key of this map, or of a placeholder map below it."""
        return any(value is not DELETED for value in self._updates.values()) or any(
            placeholder.has_content() for placeholder in self._placeholders.values()
        )

    def changes(self) -> dict[str, Any] | None:
        """Return the keys that the function set or deleted, and the tracked children, which may have changed."""
        filled = {key: value for key, value in self._placeholders.items() if value.has_content()}
        return {**self._children, **self._updates, **filled}

    def __getitem__(self, key: str) -> Any:
        value = self._read(key)
        if value is MISSING:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        require_text(key, f"the key {key!r} of {self!r}")
        self._placeholders.pop(key, None)
        self._updates[key] = _to_stored(value)

    def __delitem__(self, key: str) -> None:
        if self._read(key) is MISSING:
            raise KeyError(key)
        self._placeholders.pop(key, None)
        self._updates[key] = DELETED

    def set_if_missing(self, key: str, value: Any) -> None:
        """Set the key if it is missing. If the key exists, even with null, nothing is recorded."""
        if self._current(key)[0] is MISSING:
            self[key] = value

    def get_unrecorded(self, key: str) -> Any:
        """Return the value of a key, or None, without recording the read.

        Only for a key that the caller always writes: the patch tests the old value of a written key.
        """
        value, _ = self._current(key)
        return None if value is MISSING else value

    def is_null(self, key: str) -> bool:
        """Return whether the value of a key is null, without recording the read."""
        return self._current(key)[0] is None

    def get_map(self, key: str) -> "TrackedMap | None":
        """Return the map at a key, an empty map if the key is missing, or None if the value is not a map."""
        value, is_own = self._current(key)
        if value is MISSING or value is None:
            # If the function deleted the value, the new map has nothing of the object to record.
            log = AccessLog({}) if is_own else self.log
            return self._placeholders.setdefault(key, TrackedMap(log, (*self.path, key), MISSING))
        value = value if is_own else self._track(key, value)
        return value if isinstance(value, TrackedMap) else None

    def assigned_map(self, key: str) -> dict[str, Any] | None:
        """Return the map that the decision function set at a key, or None."""
        value = self._updates.get(key)
        return value if isinstance(value, dict) else None

    def __iter__(self) -> Iterator[str]:
        self._record_all()
        return iter(self._keys())

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self))

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last key and its value, like dict.popitem."""
        if not self:
            raise KeyError("the map is empty")
        key = next(reversed(self))
        return key, self.pop(key)

    def __len__(self) -> int:
        self._record_all()
        return len(self._keys())

    def __bool__(self) -> bool:
        if self.has_content():
            return True
        if self._base and not self._updates:
            self.log.record(self.path, Access.NON_EMPTY)
            return True
        return len(self) > 0

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, dict | TrackedMap) and json_equal(self.plain(), plain(other)))

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**self, **other}

    def __ror__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**other, **self}

    def __ior__(self, other: Any) -> "TrackedMap":  # type: ignore[misc]
        self.update(other)
        return self

    def __repr__(self) -> str:
        # Without the contents, because showing them would be a read of the whole map.
        return f"<map at {'.'.join(map(str, self.path)) or 'the root'}>"

    def __str__(self) -> str:
        return str(self.plain())

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    copy = __copy__

    def __deepcopy__(self, memo: Any) -> Any:
        return self.plain()

    def plain(self) -> dict[str, Any]:
        """Return a copy as a dict, and record the whole map as read."""
        self._record_all()
        return {key: plain(self._current(key)[0]) for key in self._keys()}


class TrackedList(MutableSequence[Any]):
    """A list in a draft. It records the items that the decision function reads, and the changes of the function.

    Reading an item records that item. len(), append() and an iteration to the end record the length. Operations that
    move items, such as sort() and insert(), record the whole list.
    """

    __slots__ = ("_added", "_base", "_children", "_items", "_updates", "log", "path")
    __hash__ = None  # type: ignore[assignment]
    __class__ = property(lambda self: _LIST)

    def __init__(self, log: AccessLog, path: Path, base: list[Any]) -> None:
        self.log = log
        self.path = path
        self._base = base
        self._updates: dict[int, Any] = {}  # Values that the function set, at an index of the object's list.
        self._added: list[Any] = []  # Items after the end of the object's list.
        self._children: dict[int, TrackedMap | TrackedList] = {}
        self._items: list[Any] | None = None  # The whole list, once its indexes differ from the object's.

    def _current(self, index: int) -> Any:
        """Return the item at an index of the object's list, with the function's changes. The read is not recorded."""
        if index in self._updates:
            return self._updates[index]
        value = self._base[index]
        if isinstance(value, dict | list) and index not in self._children:
            self._children[index] = _track(self.log, (*self.path, index), value)
        return self._children.get(index, value)

    def _resolve(self, index: int) -> int:
        """Return a negative index as a positive one. Record the length of the list if the result depends on it."""
        if 0 <= index < len(self._base):
            return index
        length = len(self)
        if not -length <= index < length:
            raise IndexError("list index out of range")
        return index % length

    def _read(self, index: int) -> Any:
        """Return the item at an index. Record the read unless the decision function set the item."""
        if index >= len(self._base):
            return self._added[index - len(self._base)]
        value = self._current(index)
        if index not in self._updates:
            self.log.record((*self.path, index), _get_access_kind(value))
        return value

    def _read_all(self) -> list[Any]:
        """Return every item, and record the whole list as read."""
        self.log.record(self.path, Access.VALUE)
        if self._items is not None:
            return self._items
        return [*(self._current(index) for index in range(len(self._base))), *self._added]

    def _detach(self) -> list[Any]:
        """Return a list of every item that the caller may reorder. The list is then written as a whole."""
        self._items = self._read_all()
        return self._items

    def changes(self) -> dict[int, Any] | None:
        """Return the items that the function set, and the tracked children, which may have changed, by index.

        Return None if the list must be written as a whole.
        """
        if self._items is not None:
            return None
        return {**self._children, **self._updates, **dict(enumerate(self._added, len(self._base)))}

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if self._items is not None:
            return self._read_all()[index]
        if isinstance(index, slice):
            return [self._read(position) for position in range(*index.indices(len(self)))]
        return self._read(self._resolve(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            self._detach()[index] = map(_to_stored, value)
        elif self._items is not None:
            self._items[index] = _to_stored(value)
        elif (position := self._resolve(index)) < len(self._base):
            self._updates[position] = _to_stored(value)
        else:
            self._added[position - len(self._base)] = _to_stored(value)

    def __delitem__(self, index: int | slice) -> None:
        del self._detach()[index]

    def insert(self, index: int, value: Any) -> None:
        self._detach().insert(index, _to_stored(value))

    def append(self, value: Any) -> None:
        (self._added if self._items is None else self._items).append(_to_stored(value))

    def sort(self, *, key: Any = None, reverse: bool = False) -> None:
        self._detach().sort(key=key, reverse=reverse)

    def __len__(self) -> int:
        if self._items is not None:
            return len(self._items)
        self.log.record(self.path, Access.LENGTH)
        return len(self._base) + len(self._added)

    def __bool__(self) -> bool:
        if self._items is None and self._base:
            self.log.record(self.path, Access.NON_EMPTY)
            return True
        return (self._items is None and bool(self._added)) or len(self) > 0

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, list | TrackedList) and json_equal(self.plain(), plain(other)))

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
        """Return a copy as a list, and record the whole list as read."""
        return [plain(item) for item in self._read_all()]


def plain(value: Any, field_name: str = "a value") -> Any:
    """Return a copy of a value as dicts, lists and scalars. Tracked maps and lists and typed models are converted.

    A tracked map or list is recorded as read completely.
    """
    if isinstance(value, TrackedMap | TrackedList):
        return value.plain()
    if isinstance(value, dict):
        return {
            require_text(key, f"the key {key!r} of {field_name}"): plain(item, field_name)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [plain(item, field_name) for item in value]
    if value is MISSING or value is DELETED:
        return value
    return to_json(value, field_name)


def collect_edits(root: TrackedMap) -> dict[Path, Any]:
    """Return a dict of the changed paths with their new values, or DELETED. No path is below another path.

    Call this after the decision function returned. A tracked map or list that the function moved is recorded as read
    completely. A replaced value is not recorded, because every patch tests it.
    """
    edits: dict[Path, Any] = {}
    with reject_cycles("the result of the decision"):
        _collect(root, edits)
    return edits


def _collect(container: TrackedMap | TrackedList, edits: dict[Path, Any]) -> None:
    changes = container.changes()
    if changes is None:
        edits[container.path] = container.plain()
        return
    for key, value in changes.items():
        path = (*container.path, key)
        is_tracked = isinstance(value, TrackedMap | TrackedList)
        if is_tracked and value.log is container.log and value.path == path:
            _collect(value, edits)
        else:
            edits[path] = plain(value)


def _track(log: AccessLog, path: Path, value: dict[str, Any] | list[Any]) -> TrackedMap | TrackedList:
    return TrackedMap(log, path, value) if isinstance(value, dict) else TrackedList(log, path, value)


def _get_access_kind(value: Any) -> Access:
    if isinstance(value, TrackedMap | TrackedList):
        return Access.PRESENT
    return Access.ABSENT if value is MISSING else Access.VALUE


def _to_stored(value: Any) -> Any:
    """Return a map or list unchanged, because the function may go on changing it, and a copy of any other value."""
    return value if isinstance(value, dict | list | TrackedMap | TrackedList) else plain(value)
