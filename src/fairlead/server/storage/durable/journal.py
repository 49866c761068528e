"""The journal: it writes the changes of the store to the database.

A commit runs in another thread and contains all changes since the previous commit (group commit). A response waits
until the changes that it shows are committed. If a commit fails, all changes that are not on disk are undone in memory
too: no client has seen them.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fairlead.server.storage.durable.data_directory import DataDirectory, DataError
from fairlead.server.storage.durable.database import CompactedVersion, Database, Revision
from fairlead.server.storage.store import ChangeEvent, ObjectTable, RecordedChange, Store
from fairlead.server.storage.stored import Stored

log = logging.getLogger(__name__)


class WriteNotStored(Exception):
    """Raised if a write could not be stored on disk. The write was undone in memory."""


class DurableJournal:
    """Writes the changes of a Store to a data directory.

    Opening the journal loads the stored objects into the Store.

    Guarantees:
        Changes survive the end of the process once `wait_until_stored` has returned for their version. A request is
        stored as a whole or not at all. After WriteNotStored, the store is as if the write had never happened.
    """

    def __init__(self, path: Path, store: Store, on_undo: Callable[[], None]) -> None:
        self._store = store
        self._on_undo = on_undo  # called after changes were undone
        self._pending: list[RecordedChange] = []  # recorded, but not yet committed
        self._flushing: asyncio.Future[None] | None = None
        self._failures = 0
        self._last_error: Exception | None = None
        self._directory = DataDirectory(path)
        try:
            self._database = Database(self._directory)
        except BaseException:
            self._directory.close()
            raise
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="fairlead-state")
        self._compacted = {(item.group, item.plural): item.version for item in self._database.compacted}
        self._restore()
        self._stored_version = store.version
        store.listener = self

    def on_change(self, table: ObjectTable, event: ChangeEvent) -> None:
        """Add a change of the store to the next commit."""
        self._pending.append((table, event))

    async def wait_until_stored(self, version: int) -> None:
        """Wait until all changes up to a version are on disk. Raises WriteNotStored if a commit failed."""
        failures = self._failures
        while self._stored_version < version:
            if self._flushing is None:
                self._flushing = asyncio.ensure_future(self._flush())
            await asyncio.shield(self._flushing)
            if failures != self._failures:
                raise WriteNotStored(str(self._last_error))

    def get_or_create_secret(self, name: str, create: Callable[[], bytes]) -> bytes:
        """Return the stored secret called `name`, or store and return a new one from `create`."""
        try:
            return self._database.get_or_create_secret(name, create)
        except sqlite3.Error as error:
            log.error("could not store a secret, so it will change when the server restarts: %s", error)
            return create()

    def store_initial_objects(self) -> None:
        """Commit the objects that a new server creates, and return when they are on disk. Raises DataError."""
        try:
            self._write_pending()
        except sqlite3.Error as error:
            self.close()
            raise DataError(f"cannot write to {self._directory.path}: {error}") from None
        self._stored_version = self._store.version

    def close(self) -> None:
        """Commit the remaining changes and unlock the data directory."""
        self._thread.shutdown()
        try:
            self._write_pending()
        except sqlite3.Error as error:
            log.error("could not store the last changes: %s", error)
        self._database.close()
        self._directory.close()

    def _write_pending(self) -> None:
        batch, self._pending = self._pending, []
        if batch:
            self._database.commit(*self._build_rows(batch))

    def _restore(self) -> None:
        database, store = self._database, self._store
        for group, plural, version in database.compacted:
            store.table(group, plural).compacted_version = version
            store.version = max(store.version, version)
        for revision in database.revisions:
            stored = Stored(revision.object, revision.version)
            stored.bytes_differ = revision.bytes_differ
            store.restore(store.table(revision.group, revision.plural), stored, is_deleted=revision.is_deleted)
        database.revisions = []

    async def _flush(self) -> None:
        batch, self._pending = self._pending, []
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._database.commit, *self._build_rows(batch))
        except Exception as error:
            log.error("could not store changes, so their writes are undone and rejected: %s", error)
            self._last_error, self._failures = error, self._failures + 1
            changes, self._pending = [*batch, *self._pending], []
            self._store.undo(changes, self._stored_version)
            self._on_undo()
        else:
            self._stored_version = batch[-1][1].version
            for table, _ in batch:
                self._compacted[table.key] = max(table.compacted_version, self._compacted.get(table.key, 0))
        finally:
            self._flushing = None

    def _build_rows(self, changes: list[RecordedChange]) -> tuple[list[Revision], list[CompactedVersion]]:
        revisions, compacted = [], {}
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
            if table.compacted_version > self._compacted.get(table.key, self._store.first_version):
                compacted[table.key] = CompactedVersion(group, plural, table.compacted_version)
        return revisions, list(compacted.values())
