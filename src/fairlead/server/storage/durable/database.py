"""The SQLite file: every revision within the history's bounds, in the order of their versions.

An object is its newest revision; older ones and deletions are kept for the watches that have yet to see them.
"""

import logging
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from fairlead.server.storage.durable.folder import FILE, NEW, SUFFIXES, DataError, Folder
from fairlead.server.storage.durable.mark import Mark, Reached

log = logging.getLogger(__name__)
APPLICATION: Final = 0x6661_6C64  # "fald", where SQLite keeps what a file is for
FORMAT: Final = 2
_MAGIC: Final = b"SQLite format 3\x00"
_SCHEMA: Final = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
CREATE TABLE revisions (
  version INTEGER PRIMARY KEY, kind_group TEXT NOT NULL, plural TEXT NOT NULL, namespace TEXT NOT NULL,
  name TEXT NOT NULL, deleted INTEGER NOT NULL, bytes_differ INTEGER NOT NULL, object BLOB NOT NULL,
  checksum INTEGER NOT NULL
);
CREATE INDEX by_name ON revisions (kind_group, plural, namespace, name, version);
CREATE TABLE floors (
  kind_group TEXT, plural TEXT, version INTEGER NOT NULL, PRIMARY KEY (kind_group, plural)
) WITHOUT ROWID;
CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
PRAGMA journal_mode = WAL;
"""
_INSERT = "INSERT INTO revisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_FLOOR = "INSERT INTO floors VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET version = excluded.version"
# Up to the floor only what is still there stays, and only its newest revision.
_COMPACT = """
DELETE FROM revisions WHERE kind_group = :group AND plural = :plural AND version <= :floor AND (deleted OR EXISTS (
  SELECT 1 FROM revisions AS later WHERE later.kind_group = :group AND later.plural = :plural
  AND later.namespace = revisions.namespace AND later.name = revisions.name
  AND later.version > revisions.version AND later.version <= :floor))
"""


class Revision(NamedTuple):
    """One object as one write left it."""

    version: int
    group: str
    plural: str
    namespace: str
    name: str
    deleted: bool
    bytes_differ: bool
    object: dict[str, Any]


class Floor(NamedTuple):
    """Up to which version a kind's history is forgotten."""

    group: str
    plural: str
    version: int


class Database:
    """The open file. Reading happens once, before anything is written; a file that cannot be read is not touched."""

    def __init__(self, folder: Folder) -> None:
        self._path = folder.path / FILE
        if not self._path.exists():
            self._make(folder)
        self._recognise()
        self.floors, self.revisions, self._reached = self._load()
        self._mark = Mark(folder)
        self._mark.check(self._reached)
        self._turn = threading.Lock()  # secrets are asked for on the loop
        self._connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            # FULL: a commit is on the disk before it is acknowledged. NORMAL would survive a kill too, but not the
            # power going: what was acknowledged since the last checkpoint would be gone.
            self._connection.execute("PRAGMA synchronous = FULL")
            self._mark.open(self._reached)
        except (sqlite3.Error, OSError) as error:
            self._connection.close()
            raise DataError(f"cannot write to {self._path}: {error}: is the disk full?") from None

    def secret(self, name: str, make: Callable[[], bytes]) -> bytes:
        """A secret of this state's own, made once. Raises sqlite3.Error."""
        with self._turn:
            found = self._connection.execute("SELECT value FROM secrets WHERE name = ?", (name,)).fetchone()
            if found is not None:
                return bytes(found[0])
            made = make()
            self._connection.execute("INSERT INTO secrets VALUES (?, ?, ?)", (name, made, _checksum((name,), made)))
            self._note(self._reached._replace(secrets=self._reached.secrets + 1))
            return made

    def commit(self, revisions: list[Revision], floors: list[Floor]) -> None:
        """Write all of it or nothing. Raises sqlite3.Error, and is as before then."""
        rows = [_row(revision) for revision in revisions]
        with self._turn:
            self._commit(rows, floors)
            self._note(self._reached._replace(version=revisions[-1].version))

    def _note(self, reached: Reached) -> None:
        self._reached = reached
        try:
            self._mark.note(reached)
        except OSError as error:
            log.warning("it could not be noted how far the state was acknowledged: %s", error)

    def _commit(self, rows: list[tuple[Any, ...]], floors: list[Floor]) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(_INSERT, rows)
            for floor in floors:
                self._connection.execute(_FLOOR, floor)
                self._connection.execute(
                    _COMPACT, {"group": floor.group, "plural": floor.plural, "floor": floor.version}
                )
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        self._connection.close()
        self._mark.close()

    def _make(self, folder: Folder) -> None:
        """Make an empty state beside its place and move it there whole, so that there is never half of one."""
        new = folder.path / NEW
        for suffix in SUFFIXES:
            new.with_name(NEW + suffix).unlink(missing_ok=True)
        try:
            connection = sqlite3.connect(new)
            try:
                connection.executescript(_SCHEMA)
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise DataError(f"cannot make {self._path}: {error}") from None
        new.chmod(0o600)
        folder.settle(NEW, FILE)

    def _recognise(self) -> None:
        """Look at the file's first bytes alone: SQLite may write to what it opens."""
        with self._path.open("rb") as file:
            head = file.read(100)
        ours = head.startswith(_MAGIC) and int.from_bytes(head[68:72], "big") == APPLICATION
        if not ours:
            raise DataError(f"{self._path} is not fairlead's, and was left as it is: give another directory")
        written = int.from_bytes(head[60:64], "big")
        if written != FORMAT:
            raise DataError(
                f"{self._path} has format {written}, and this fairlead knows {FORMAT}: use the one that wrote it"
            )

    def _load(self) -> tuple[list[Floor], list[Revision], Reached]:
        try:
            # Without a log to read along, SQLite need not even put its own files beside.
            log = self._path.with_name(FILE + "-wal")
            how = "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
            connection = sqlite3.connect(f"{self._path.absolute().as_uri()}?{how}", uri=True)
            try:
                (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                if verdict != "ok":
                    raise sqlite3.DatabaseError(verdict)
                floors = [Floor(*row) for row in connection.execute("SELECT * FROM floors")]
                revisions = list(_revisions(connection))
                newest = max([floor.version for floor in floors] + [one.version for one in revisions[-1:]], default=0)
                return floors, revisions, Reached(newest, _secrets(connection))
            finally:
                connection.close()
        except (sqlite3.Error, msgspec.DecodeError, TypeError, ValueError) as error:
            told = " ".join(str(error).split())
            raise DataError(
                f"{self._path} is damaged ({told}) and was left as it is: put a copy back, or give another directory"
            ) from None


def _secrets(connection: sqlite3.Connection) -> int:
    """How many secrets there are, each as it was written."""
    rows = connection.execute("SELECT * FROM secrets").fetchall()
    for name, value, checksum in rows:
        if _checksum((name,), value) != checksum:
            raise ValueError(f"the secret {name!r} is not what was written")
    return len(rows)


def _row(revision: Revision) -> tuple[Any, ...]:
    about = (*revision[:5], int(revision.deleted), int(revision.bytes_differ))
    encoded = msgspec.json.encode(revision.object)
    return *about, encoded, _checksum(about, encoded)


def _checksum(about: tuple[Any, ...], encoded: bytes) -> int:
    """SQLite finds damage to its pages' structure, not to what they hold."""
    return zlib.crc32(encoded, zlib.crc32(repr(about).encode()))


def _revisions(connection: sqlite3.Connection) -> Iterator[Revision]:
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    for *about, encoded, checksum in connection.execute("SELECT * FROM revisions ORDER BY version"):
        if _checksum(tuple(about), encoded) != checksum:
            raise ValueError(f"revision {about[0]} is not what was written")
        version, group, plural, namespace, name, deleted, bytes_differ = about
        yield Revision(version, group, plural, namespace, name, bool(deleted), bool(bytes_differ), decode(encoded))
