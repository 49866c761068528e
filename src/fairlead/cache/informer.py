"""The informer: the cached objects of one watch plus our own writes. It calls handlers with each change."""

import asyncio
import heapq
import itertools
import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from fairlead.api.objects import Object, as_integer, is_removed
from fairlead.cache import indexes
from fairlead.cache.entries import CacheEntry, EntryCodec, OwnerReference, owner_references
from fairlead.cache.indexes import ObjectKey
from fairlead.cache.overlay import Overlay, PendingWrite
from fairlead.cache.own_versions import OwnVersions
from fairlead.cache.scope import Scope
from fairlead.cache.store import EntriesByNamespace, ObjectStore

log = logging.getLogger("fairlead.cache")

# A large first list calls the handlers for a long time. The event loop runs other tasks after each batch.
_HANDLER_BATCH = 500


class VersionWentBackwards(Exception):
    """The server reported an older version than before, because it was restored from a backup. List again."""


class Snapshot:
    """A cached object at one resourceVersion. `object()` decodes it."""

    __slots__ = ("_codec", "_entry")

    def __init__(self, codec: EntryCodec, entry: CacheEntry) -> None:
        self._codec = codec
        self._entry = entry

    @property
    def uid(self) -> str:
        return self._entry.uid

    @property
    def version(self) -> int:
        """The resourceVersion as a number, or 0 if the server's versions are not numbers."""
        return self._entry.version

    def owners(self) -> list[OwnerReference]:
        """Return the object's ownerReferences. Only they are decoded."""
        return owner_references(self._entry)

    def object(self) -> Object:
        """Decode the object. Each call returns a new one, which the caller may change."""
        return self._codec.decode(self._entry)


class Change:
    """A change of one object.

    `old` is None if the object was created, `new` is None if it was deleted. A deletion and a creation under the same
    name are two changes. `initial` is True if the object existed already when the watch or the handler started.
    """

    __slots__ = ("_overlay", "_own_versions", "initial", "name", "namespace", "new", "old")

    def __init__(
        self,
        key: ObjectKey,
        old: Snapshot | None,
        new: Snapshot | None,
        initial: bool,
        own_versions: OwnVersions,
        overlay: Overlay,
    ) -> None:
        self.namespace = key[0] or None
        self.name = key[1]
        self.old = old
        self.new = new
        self.initial = initial
        self._own_versions = own_versions
        self._overlay = overlay

    @property
    def is_own(self) -> bool:
        """Whether this process made the change. Ask late: the event of a write may arrive before its answer."""
        if self.new is not None:
            return (self.new.uid, str(self.new.version)) in self._own_versions
        return self.old is not None and (self.old.uid, "") in self._own_versions

    def call_when_answered(self, callback: Callable[[], None]) -> None:
        """Call back when `is_own` is final: when our writes that may have made the change have been answered."""
        self._overlay.call_when_answered(callback)


Handler = Callable[[Change], None]


class Informer:
    """The local copy of the objects in one scope. A reflector fills it. Any task on the same event loop may read it.

    Guarantees:
    - Eventual consistency: if the objects stop changing and the server can be reached, the informer ends with the
      server's state. Reads never block and never ask the server.
    - Own writes: after an own write was recorded, every read shows that version or a newer one. After an own write
      that removed the object, reads do not show the object. Older events change neither.
    - Order: the informer applies the changes in the order of the server's versions, and `position` never decreases,
      except after the server was restored from a backup. `wait_until` returns when `position` reached a version.
    - Handlers: each handler is called with every change that the watch reports, one at a time, in order, and after
      reads show the change. A new handler is first called with every object that already exists, as `initial`
      changes. `synced` is set when the first list was stored and every handler was called with it.
    - Isolation: each decoded object belongs to the caller. Changing it does not change the cache.

    Does not guarantee:
    - Every intermediate state: two updates between a broken connection and the next list are one change. A relist
      reports an object that was deleted and recreated meanwhile as a deletion and a creation.
    - A change for an own write when it is recorded: handlers are called when the watch reports it.
    - Completeness before `synced`, and any bound on how far the informer lags behind the server.
    - The order of changes between two informers.
    - A second call if a handler raises: the error is logged, and the next change follows.
    - Use from another thread.

    Handlers run on the event loop and must return quickly: the watch waits for them.

    Raises: `index` raises ValueError if the name has another function; `indexed` raises LookupError if the index does
    not exist; `wait_until` raises ValueError if the versions are not numbers; `apply_event` and `apply_bookmark` raise
    `VersionWentBackwards`.

    Example:
        informer = Informer(Scope(ConfigMap, namespace="default"))
        informer.subscribe(lambda change: queue.add(change.name))
        task = asyncio.create_task(Reflector(client, informer, world).run())
        await informer.synced.wait()
        snapshot = informer.get("settings", "default")
    """

    def __init__(
        self, scope: Scope, field_managers: frozenset[str] = frozenset(), own_versions: OwnVersions | None = None
    ) -> None:
        self.scope = scope
        self._own_versions = own_versions if own_versions is not None else OwnVersions()
        self.codec = EntryCodec(scope.kind, field_managers=field_managers, transform=scope.transform)
        self.store = ObjectStore()
        self.overlay = Overlay()
        self.synced = asyncio.Event()
        self._is_filled = False
        self.position = 0  # the watch has reported everything up to this version
        self.resource_version = ""  # the same version, as the server wrote it
        self._index_functions: dict[str, Callable[[Object], Iterable[str]]] = {}
        self._handlers: list[Handler] = []
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []  # a heap
        self._waiter_order = itertools.count()

    # Reading

    def get(self, name: str, namespace: str | None = None) -> Snapshot | None:
        """Return the cached object, with our own writes, or None if there is none."""
        key = (namespace or "", name)
        entry = self.store.get(key)
        if self.overlay:
            entry = self.overlay.resolve(key, entry)
        return None if entry is None else Snapshot(self.codec, entry)

    def list(self, namespace: str | None = None) -> Iterator[Snapshot]:
        """Yield every cached object of one namespace, or of all."""
        return self._snapshots(self.store.items(namespace), self.overlay.keys(namespace))

    def index(self, name: str, function: Callable[[Object], Iterable[str]]) -> None:
        """Add an index of the values that `function` computes from an object. It may use only the object.

        Raises ValueError if there is another index of that name.
        """
        if self._index_functions.setdefault(name, function) is not function:
            raise ValueError(f"{self.scope} already has another index {name!r}: choose another name")
        self.store.ensure_index(name, indexes.decoding_index_function(self.codec, function))

    def indexed(self, name: str, value: str) -> Iterator[Snapshot]:
        """Yield the objects for which the index function `name` returned `value`. Raises LookupError."""
        return self._find_indexed(self.store.get_index(name), value)

    def owned_by(self, uid: str, exclude: Container[ObjectKey] = ()) -> Iterator[Snapshot]:
        """Yield the objects that have an ownerReference with that uid, except those with a key in `exclude`."""
        return self._find_indexed(self.store.ensure_index("", indexes.owner_uids), uid, exclude)

    def _find_indexed(self, index: indexes.Index, value: str, exclude: Container[ObjectKey] = ()) -> Iterator[Snapshot]:
        keys = (key for key in index.keys(value) if key not in exclude)
        stored = ((key, entry) for key in keys if (entry := self.store.get(key)) is not None)
        own_keys = (key for key in self.overlay.find_indexed(index.function, value) if key not in exclude)
        return self._snapshots(stored, own_keys)

    def _snapshots(
        self, stored: Iterable[tuple[ObjectKey, CacheEntry]], own_keys: Iterable[ObjectKey]
    ) -> Iterator[Snapshot]:
        """Yield the objects that readers see: stored entries that no own write hides or replaces, then own writes."""
        overlay = self.overlay
        for key, entry in stored:
            if not overlay or (key not in overlay and overlay.resolve(key, entry) is not None):
                yield Snapshot(self.codec, entry)
        for key in own_keys:
            own_entry = overlay.resolve(key, None)
            if own_entry is not None:
                yield Snapshot(self.codec, own_entry)

    async def wait_until(self, resource_version: str) -> None:
        """Wait until the watch has reported all changes up to that resourceVersion.

        The version of another object or kind is reached only with the next event or bookmark of this kind, which may
        take a minute. Bound the wait with `asyncio.timeout`. Raises ValueError if the version is not a number.
        """
        version = as_integer(resource_version)
        if not version or self.overlay.disabled:
            raise ValueError(f"cannot wait for a version of {self.scope.kind}: {resource_version!r} is not a number")
        if version > self.position:
            waiter = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiters, (version, next(self._waiter_order), waiter))
            await waiter

    def subscribe(self, handler: Handler) -> None:
        """Call `handler` with every object that already exists, then with each later change.

        The handler must return quickly: the watch waits for it. Errors that it raises are logged.
        """
        for key, entry in self.store.items() if self._is_filled else ():
            self._call_handlers((handler,), key, None, entry, is_initial=True)
        self._handlers.append(handler)

    # Own writes

    def record_write(self, write: PendingWrite, answer: Mapping[str, Any]) -> None:
        """Record an own write, so that reads show it. `answer` is the object in the response of the write."""
        selected = self.scope.matches(answer)
        obj = {"metadata": answer["metadata"]} if self.scope.metadata_only else answer
        namespace, name, version, entry = self.codec.encode(msgspec.json.encode(obj))
        if is_removed(answer):
            self._record_removal(write, (namespace, name), entry.uid, entry.version)
        elif selected is not None and as_integer(version):
            self.overlay.record(write, (namespace, name), entry, self.position, is_selected=selected)

    def record_delete(self, write: PendingWrite, key: ObjectKey, uid: str, answer: Mapping[str, Any] | None) -> None:
        """Record an own DELETE, so that reads show it. `answer` is the object in the response, or None without one."""
        if answer is not None and not is_removed(answer, is_deletion=True):
            self.record_write(write, answer)
        else:
            metadata = (answer or {}).get("metadata") or {}
            self._record_removal(write, key, uid, as_integer(metadata.get("resourceVersion") or ""))

    def _record_removal(self, write: PendingWrite, key: ObjectKey, uid: str, version: int) -> None:
        # The tombstone stays until the watch reports the deletion. If the object is unknown here, the watch may have
        # reported its deletion already, or may never report it.
        stored = self.store.get(key)
        visible = self.overlay.resolve(key, stored)
        if not self._is_filled or (stored and stored.uid == uid) or (visible and visible.uid == uid):
            self.overlay.record_removal(write, uid, version)

    # Events of the watch, called by the reflector

    async def replace(self, objects: EntriesByNamespace, resource_version: str) -> None:
        """Replace all cached objects by a list from the server, and call the handlers with the differences."""
        position = as_integer(resource_version)
        if position < self.position:
            self.overlay.clear()
        self.overlay.disabled = not position
        removed_uids, changes = self.store.replace(objects)
        for uid in removed_uids:
            self.overlay.on_deleted(uid)
        self.overlay.on_relist(position, objects)
        self.position, self.resource_version = position, resource_version
        initial, self._is_filled = not self._is_filled, True
        self._wake_waiters()
        handlers = tuple(self._handlers)
        for count, (key, old, new) in enumerate(changes if handlers else ()):
            self._call_handlers(handlers, key, old, new, is_initial=initial)
            if count % _HANDLER_BATCH == _HANDLER_BATCH - 1:
                await asyncio.sleep(0)
        self.synced.set()

    def apply_event(self, kind: str, raw: bytes) -> None:
        """Apply a watch event (ADDED, MODIFIED or DELETED) with the object's JSON."""
        namespace, name, resource_version, entry = self.codec.encode(raw)
        if entry.version < self.position:
            raise VersionWentBackwards(f"{self.scope}: version {entry.version} after {self.position}")
        key = (namespace, name)
        old = self.store.get(key)
        new: CacheEntry | None = entry
        if kind == "DELETED":
            self.overlay.on_deleted(entry.uid)
            new = None
            if old is not None and old.uid == entry.uid:
                self.store.remove(key)
            else:
                old = None  # the deleted object was never in the cache
        else:
            if old is not None and old.uid != entry.uid:
                self.overlay.on_deleted(old.uid)
            self.store.put(key, entry)
        self._advance(entry.version, resource_version)
        if self._handlers and (old is not None or new is not None):
            self._call_handlers(tuple(self._handlers), key, old, new, is_initial=False)

    def apply_bookmark(self, resource_version: str) -> None:
        """Advance `position` to the version of a bookmark. A bookmark says that no other changes happened up to it."""
        position = as_integer(resource_version)
        if position < self.position:
            raise VersionWentBackwards(f"{self.scope}: version {position} after {self.position}")
        self._advance(position, resource_version)

    def _advance(self, position: int, resource_version: str) -> None:
        self.position, self.resource_version = position, resource_version
        if self.overlay:
            self.overlay.advance(position)
        if self._waiters:
            self._wake_waiters()

    def _wake_waiters(self) -> None:
        while self._waiters and self._waiters[0][0] <= self.position:
            waiter = heapq.heappop(self._waiters)[2]
            if not waiter.done():
                waiter.set_result(None)

    def _call_handlers(
        self,
        handlers: tuple[Handler, ...],
        key: ObjectKey,
        old: CacheEntry | None,
        new: CacheEntry | None,
        *,
        is_initial: bool,
    ) -> None:
        before = None if old is None else Snapshot(self.codec, old)
        after = None if new is None else Snapshot(self.codec, new)
        if before is not None and after is not None and before.uid != after.uid:
            sides = [(before, None), (None, after)]
        else:
            sides = [(before, after)]
        changes = [Change(key, *side, is_initial, self._own_versions, self.overlay) for side in sides]
        for handler in handlers:
            for change in changes:
                try:
                    handler(change)
                except Exception:
                    log.exception("a handler of changes to %s failed on %s/%s", self.scope, *key)
