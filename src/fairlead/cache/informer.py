"""One stream's view: what it told, our own writes over it, and those who want to know."""

import asyncio
import heapq
import itertools
import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from fairlead.api.objects import Object, as_integer, is_removed
from fairlead.cache import indexes
from fairlead.cache.entries import Entries, Entry, OwnerReference, owner_references
from fairlead.cache.indexes import Key
from fairlead.cache.overlay import Flight, Overlay
from fairlead.cache.scope import Scope
from fairlead.cache.store import Objects, Store

log = logging.getLogger("fairlead.cache")

# Telling a handler of a large first list takes a while; the loop gets a turn now and then.
_TOLD_AT_ONCE = 500


class WentBackwards(Exception):
    """The server tells an older version than it did before: it was restored. List again."""


class Snapshot:
    """An object at one version, not decoded yet."""

    __slots__ = ("_entries", "_entry")

    def __init__(self, entries: Entries, entry: Entry) -> None:
        self._entries = entries
        self._entry = entry

    @property
    def uid(self) -> str:
        return self._entry.uid

    @property
    def version(self) -> int:
        """Its resourceVersion as a number; 0 where the server's are not numbers."""
        return self._entry.version

    def owners(self) -> list[OwnerReference]:
        """Its owner references, without decoding the rest."""
        return owner_references(self._entry)

    def object(self) -> Object:
        """The object, decoded afresh each time."""
        return self._entries.object(self._entry)


class Change:
    """What happened to one object: `old` is None when it was not there, `new` is None when it is gone.

    An object that was deleted and made again is two changes. `initial` is what was there when watching began.
    """

    __slots__ = ("initial", "name", "namespace", "new", "old")

    def __init__(self, key: Key, old: Snapshot | None, new: Snapshot | None, initial: bool) -> None:
        self.namespace = key[0] or None
        self.name = key[1]
        self.old = old
        self.new = new
        self.initial = initial


Handler = Callable[[Change], None]


class Informer:
    """The objects of one scope. Filled by its reflector, read by anyone on the same loop."""

    def __init__(self, scope: Scope, field_managers: frozenset[str] = frozenset()) -> None:
        self.scope = scope
        self.entries = Entries(scope.kind, field_managers=field_managers, transform=scope.transform)
        self.store = Store()
        self.overlay = Overlay()
        self.synced = asyncio.Event()  # filled, and every handler told so
        self._filled = False
        self.position = 0  # the stream told everything up to here
        self.resource_version = ""  # the same, in the server's words
        self._indexed_by: dict[str, Callable[[Object], Iterable[str]]] = {}
        self._handlers: list[Handler] = []
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []  # a heap
        self._order = itertools.count()

    # Reading

    def look(self, name: str, namespace: str | None = None) -> Snapshot | None:
        """The object as far as it is known here, our own writes included."""
        key = (namespace or "", name)
        entry = self.store.get(key)
        if self.overlay:
            entry = self.overlay.look(key, entry)
        return None if entry is None else Snapshot(self.entries, entry)

    def list(self, namespace: str | None = None) -> Iterator[Snapshot]:
        """Every object, or every one in a namespace."""
        return self._snapshots(self.store.items(namespace), self.overlay.keys(namespace))

    def index(self, name: str, values: Callable[[Object], Iterable[str]]) -> None:
        """Keep an index by what `values` finds in an object. It must depend on nothing else."""
        if self._indexed_by.setdefault(name, values) is not values:
            raise ValueError(f"{self.scope} has another index {name!r} already: choose another name")
        self.store.index(name, indexes.by_function(self.entries, values))

    def indexed(self, name: str, value: str) -> Iterator[Snapshot]:
        """The objects in which that index found `value`."""
        return self._indexed(self.store.indexed(name), value)

    def owned_by(self, uid: str, but: Container[Key] = ()) -> Iterator[Snapshot]:
        """The objects with an owner of that uid, except those at the keys in `but`."""
        return self._indexed(self.store.index("", indexes.owners), uid, but)

    def _indexed(self, index: indexes.Index, value: str, but: Container[Key] = ()) -> Iterator[Snapshot]:
        keys = (key for key in index.keys(value) if key not in but)
        found = ((key, entry) for key in keys if (entry := self.store.get(key)) is not None)
        own = (key for key in self.overlay.indexed(index.of, value) if key not in but)
        return self._snapshots(found, own)

    def _snapshots(self, told: Iterable[tuple[Key, Entry]], own: Iterable[Key]) -> Iterator[Snapshot]:
        """What the stream told, except where we know better, and then what we know ourselves."""
        overlay = self.overlay
        for key, entry in told:
            if not overlay or (key not in overlay and overlay.look(key, entry) is not None):
                yield Snapshot(self.entries, entry)
        for key in own:
            known = overlay.look(key, None)
            if known is not None:
                yield Snapshot(self.entries, known)

    async def wait_until(self, resource_version: str) -> None:
        """Wait until the stream has told everything up to that version.

        Another object's or kind's version is reached only with this kind's next event or bookmark, so it may take a
        minute: bound it with `asyncio.timeout`.
        """
        version = as_integer(resource_version)
        if not version or self.overlay.off:
            raise ValueError(f"{self.scope.kind} has no versions to wait for: {resource_version!r} is not a number")
        if version > self.position:
            waiter = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiters, (version, next(self._order), waiter))
            await waiter

    def subscribe(self, handler: Handler) -> None:
        """Call `handler` with each change, in order, after it can be read here; first with all that is there now.

        It must return soon: the stream waits for it.
        """
        for key, entry in self.store.items() if self._filled else ():
            self._tell((handler,), key, None, entry, initial=True)
        self._handlers.append(handler)

    # Own writes

    def wrote(self, flight: Flight, answer: Mapping[str, Any]) -> None:
        """A write was answered with this object."""
        selected = self.scope.selects(answer)
        shown = {"metadata": answer["metadata"]} if self.scope.metadata_only else answer
        namespace, name, version, entry = self.entries.read(msgspec.json.encode(shown))
        if is_removed(answer):
            self._gone(flight, (namespace, name), entry.uid, entry.version)
        elif selected is not None and as_integer(version):
            self.overlay.wrote(flight, (namespace, name), entry, self.position, selected=selected)

    def deleted(self, flight: Flight, key: Key, uid: str, answer: Mapping[str, Any] | None) -> None:
        """A delete was answered: with the object while it stays for a while, with anything else once it is gone."""
        if answer is not None and not is_removed(answer, by_delete=True):
            self.wrote(flight, answer)
        else:
            metadata = (answer or {}).get("metadata") or {}
            self._gone(flight, key, uid, as_integer(metadata.get("resourceVersion") or ""))

    def _gone(self, flight: Flight, key: Key, uid: str, version: int) -> None:
        # A tombstone waits for the stream to tell the deletion, so it must be of something that it tells: of what is
        # not known here, the stream may have told the end already, or may never tell anything.
        told = self.store.get(key)
        known = self.overlay.look(key, told)
        if not self._filled or (told and told.uid == uid) or (known and known.uid == uid):
            self.overlay.gone(flight, uid, version)

    # What the stream tells

    async def replace(self, objects: Objects, resource_version: str) -> None:
        """This is all there is at that version: changes and deletes follow from it."""
        position = as_integer(resource_version)
        if position < self.position:
            self.overlay.clear()
        self.overlay.off = not position
        gone, differences = self.store.replace(objects)
        for uid in gone:
            self.overlay.deleted(uid)
        self.overlay.relisted(position, objects)
        self.position, self.resource_version = position, resource_version
        initial, self._filled = not self._filled, True
        self._wake()
        handlers = tuple(self._handlers)
        for count, (key, old, new) in enumerate(differences if handlers else ()):
            self._tell(handlers, key, old, new, initial=initial)
            if count % _TOLD_AT_ONCE == _TOLD_AT_ONCE - 1:
                await asyncio.sleep(0)
        self.synced.set()

    def event(self, kind: str, raw: bytes) -> None:
        """ADDED, MODIFIED or DELETED, and the object."""
        namespace, name, resource_version, entry = self.entries.read(raw)
        if entry.version < self.position:
            raise WentBackwards(f"{self.scope}: version {entry.version} after {self.position}")
        key = (namespace, name)
        old = self.store.get(key)
        new: Entry | None = entry
        if kind == "DELETED":
            self.overlay.deleted(entry.uid)
            new = None
            if old is not None and old.uid == entry.uid:
                self.store.remove(key)
            else:
                old = None  # that one was never here
        else:
            if old is not None and old.uid != entry.uid:
                self.overlay.deleted(old.uid)
            self.store.put(key, entry)
        self._advance(entry.version, resource_version)
        if self._handlers and (old is not None or new is not None):
            self._tell(tuple(self._handlers), key, old, new, initial=False)

    def bookmark(self, resource_version: str) -> None:
        """Nothing happened up to that version."""
        position = as_integer(resource_version)
        if position < self.position:
            raise WentBackwards(f"{self.scope}: version {position} after {self.position}")
        self._advance(position, resource_version)

    def _advance(self, position: int, resource_version: str) -> None:
        self.position, self.resource_version = position, resource_version
        if self.overlay:
            self.overlay.passed(position)
        if self._waiters:
            self._wake()

    def _wake(self) -> None:
        while self._waiters and self._waiters[0][0] <= self.position:
            waiter = heapq.heappop(self._waiters)[2]
            if not waiter.done():
                waiter.set_result(None)

    def _tell(
        self, handlers: tuple[Handler, ...], key: Key, old: Entry | None, new: Entry | None, *, initial: bool
    ) -> None:
        before = None if old is None else Snapshot(self.entries, old)
        after = None if new is None else Snapshot(self.entries, new)
        if before is not None and after is not None and before.uid != after.uid:
            changes = [Change(key, before, None, initial), Change(key, None, after, initial)]
        else:
            changes = [Change(key, before, after, initial)]
        for handler in handlers:
            for change in changes:
                try:
                    handler(change)
                except Exception:
                    log.exception("a handler of changes to %s failed on %s/%s", self.scope, *key)
