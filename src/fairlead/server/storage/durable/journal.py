"""The journal: what the store changed, on its way to the disk.

Whatever was written since the last commit goes into the next one, off the loop (group commit). Who tells a client of a
change waits for it here first. When a commit fails, everything that is not on the disk is undone in memory as well:
nobody has been told of it.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fairlead.server.storage.durable.database import Database, Floor, Revision
from fairlead.server.storage.durable.folder import DataError, Folder
from fairlead.server.storage.store import Change, Event, Store, Table
from fairlead.server.storage.stored import Stored

log = logging.getLogger(__name__)


class NotStored(Exception):
    """A write could not be stored on disk, and was undone."""


class Journal:
    """The durable side of one store. Opening it fills the store with what was acknowledged before.

    Guarantees: what `durable` returned for survives the death of this process, whole requests at a time; after
    NotStored the store is as if what was not kept had never been asked for.
    """

    def __init__(self, path: Path, store: Store, undone: Callable[[], None]) -> None:
        self._store = store
        self._undone = undone  # called after the store was set back
        self._pending: list[Change] = []
        self._flushing: asyncio.Future[None] | None = None
        self._failures = 0
        self._failed: Exception | None = None
        self._folder = Folder(path)
        try:
            self._database = Database(self._folder)
        except BaseException:
            self._folder.close()
            raise
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="fairlead-state")
        self._floors = {(floor.group, floor.plural): floor.version for floor in self._database.floors}
        self._fill()
        self._durable = store.version
        store.journal = self

    def append(self, table: Table, event: Event) -> None:
        """Take note of a change, right after the store made it."""
        self._pending.append((table, event))

    async def durable(self, version: int) -> None:
        """Wait until everything up to a version is on the disk. Raises NotStored when that failed."""
        failures = self._failures
        while self._durable < version:
            if self._flushing is None:
                self._flushing = asyncio.ensure_future(self._flush())
            await asyncio.shield(self._flushing)
            if failures != self._failures:
                raise NotStored(str(self._failed))

    def secret(self, name: str, make: Callable[[], bytes]) -> bytes:
        """A secret that stays the same from one process to the next, made where there is none yet."""
        try:
            return self._database.secret(name, make)
        except sqlite3.Error as error:
            log.error("a secret could not be stored and lasts only as long as this process: %s", error)
            return make()

    def settle(self) -> None:
        """Write, here and now, what a server begins with. Raises DataError."""
        try:
            self._write_pending()
        except sqlite3.Error as error:
            self.close()
            raise DataError(f"cannot write to {self._folder.path}: {error}") from None
        self._durable = self._store.version

    def close(self) -> None:
        """Write what nobody has waited for yet, and let the directory go."""
        self._thread.shutdown()
        try:
            self._write_pending()
        except sqlite3.Error as error:
            log.error("the last changes could not be stored: %s", error)
        self._database.close()
        self._folder.close()

    def _write_pending(self) -> None:
        batch, self._pending = self._pending, []
        if batch:
            self._database.commit(*self._written(batch))

    def _fill(self) -> None:
        database, store = self._database, self._store
        for group, plural, version in database.floors:
            store.table(group, plural).floor = version
            store.version = max(store.version, version)
        for revision in database.revisions:
            stored = Stored(revision.object, revision.version)
            if revision.bytes_differ:
                stored.bytes_differ = True
            store.restore(store.table(revision.group, revision.plural), stored, deleted=revision.deleted)
        database.revisions = []

    async def _flush(self) -> None:
        batch, self._pending = self._pending, []
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._database.commit, *self._written(batch))
        except Exception as error:
            log.error("the state could not be stored, and the writes that asked for it are refused: %s", error)
            self._failed, self._failures = error, self._failures + 1
            changes, self._pending = [*batch, *self._pending], []
            self._store.undo(changes, self._durable)
            self._undone()
        else:
            self._durable = batch[-1][1].version
            for table, _ in batch:
                self._floors[table.key] = max(table.floor, self._floors.get(table.key, 0))
        finally:
            self._flushing = None

    def _written(self, changes: list[Change]) -> tuple[list[Revision], list[Floor]]:
        revisions, floors = [], {}
        for table, event in changes:
            group, plural = table.key
            revisions.append(
                Revision(
                    event.version,
                    group,
                    plural,
                    event.namespace,
                    event.name,
                    event.type == "DELETED",
                    event.stored.bytes_differ,
                    event.stored.object,
                )
            )
            if table.floor > self._floors.get(table.key, self._store.first_version):
                floors[table.key] = Floor(group, plural, table.floor)
        return revisions, list(floors.values())
