"""The SQLite database with the revisions of all objects, sorted by version.

The newest revision is the current object. Older revisions and deletions are kept for watches, up to the limit of the
history.
"""

import logging
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from fairlead.server.storage.durable.acknowledgement import AcknowledgementFile, StateVersion
from fairlead.server.storage.durable.data_directory import (
    DATABASE_FILE,
    NEW_DATABASE_FILE,
    SQLITE_SUFFIXES,
    DataDirectory,
    DataError,
)

log = logging.getLogger(__name__)
APPLICATION: Final = 0x6661_6C64  # "fald": SQLite stores it in the header of the file
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
_SET_COMPACTED = "INSERT INTO floors VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET version = excluded.version"
# Up to the compacted version, only the newest revision of objects that still exist is kept.
_COMPACT = """
DELETE FROM revisions WHERE kind_group = :group AND plural = :plural AND version <= :compacted AND (deleted OR EXISTS (
  SELECT 1 FROM revisions AS later WHERE later.kind_group = :group AND later.plural = :plural
  AND later.namespace = revisions.namespace AND later.name = revisions.name
  AND later.version > revisions.version AND later.version <= :compacted))
"""


class Revision(NamedTuple):
    """The state of one object after one write."""

    version: int
    group: str
    plural: str
    namespace: str
    name: str
    is_deleted: bool
    bytes_differ: bool
    object: dict[str, Any]


class CompactedVersion(NamedTuple):
    """The version up to which the history of one kind was removed."""

    group: str
    plural: str
    version: int


class Database:
    """The open SQLite database.

    Its revisions are loaded once, when it opens. A file that cannot be read is not changed.
    """

    def __init__(self, directory: DataDirectory) -> None:
        self._path = directory.path / DATABASE_FILE
        if not self._path.exists():
            self._create(directory)
        self._check_format()
        self.compacted, self.revisions, self._version = self._load()
        self._acknowledgement = AcknowledgementFile(directory)
        self._acknowledgement.check(self._version)
        self._lock = threading.Lock()  # Secrets are written by the thread of the event loop.
        self._connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            # With FULL, a commit is on the disk before it is acknowledged. With NORMAL, a power failure could lose the
            # commits since the last checkpoint.
            self._connection.execute("PRAGMA synchronous = FULL")
            self._acknowledgement.open(self._version)
        except (sqlite3.Error, OSError) as error:
            self._connection.close()
            raise DataError(f"cannot write to {self._path}: {error}: is the disk full?") from None

    def get_or_create_secret(self, name: str, create: Callable[[], bytes]) -> bytes:
        """Return the stored secret called `name`, or store and return a new one from `create`. Raises sqlite3.Error."""
        with self._lock:
            row = self._connection.execute("SELECT value FROM secrets WHERE name = ?", (name,)).fetchone()
            if row is not None:
                return bytes(row[0])
            secret = create()
            values = (name, secret, _compute_checksum((name,), secret))
            self._connection.execute("INSERT INTO secrets VALUES (?, ?, ?)", values)
            self._acknowledge(self._version._replace(secrets=self._version.secrets + 1))
            return secret

    def commit(self, revisions: list[Revision], compacted: list[CompactedVersion]) -> None:
        """Write all revisions in one transaction. If it raises sqlite3.Error, the database is unchanged."""
        rows = [_build_row(revision) for revision in revisions]
        with self._lock:
            self._commit(rows, compacted)
            self._acknowledge(self._version._replace(version=revisions[-1].version))

    def _acknowledge(self, version: StateVersion) -> None:
        self._version = version
        try:
            self._acknowledgement.write(version)
        except OSError as error:
            log.warning("could not write the acknowledged version: %s", error)

    def _commit(self, rows: list[tuple[Any, ...]], compacted: list[CompactedVersion]) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(_INSERT, rows)
            for item in compacted:
                self._connection.execute(_SET_COMPACTED, item)
                parameters = {"group": item.group, "plural": item.plural, "compacted": item.version}
                self._connection.execute(_COMPACT, parameters)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        self._connection.close()
        self._acknowledgement.close()

    def _create(self, directory: DataDirectory) -> None:
        """Create an empty database under another name and rename it, so that the database is never incomplete."""
        new = directory.path / NEW_DATABASE_FILE
        for suffix in SQLITE_SUFFIXES:
            new.with_name(NEW_DATABASE_FILE + suffix).unlink(missing_ok=True)
        try:
            connection = sqlite3.connect(new)
            try:
                connection.executescript(_SCHEMA)
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise DataError(f"cannot create {self._path}: {error}") from None
        new.chmod(0o600)
        directory.rename_durably(NEW_DATABASE_FILE, DATABASE_FILE)

    def _check_format(self) -> None:
        """Raise DataError if the file's header is not that of our database.

        Reads the file without SQLite, because SQLite may write to a file that it opens.
        """
        with self._path.open("rb") as file:
            file_header = file.read(100)
        if not file_header.startswith(_MAGIC) or int.from_bytes(file_header[68:72], "big") != APPLICATION:
            raise DataError(f"{self._path} is not a database of fairlead and was not changed: use another directory")
        version = int.from_bytes(file_header[60:64], "big")
        if version != FORMAT:
            raise DataError(
                f"{self._path} has format {version}, but this version of fairlead reads format {FORMAT}: use the "
                "version of fairlead that wrote it"
            )

    def _load(self) -> tuple[list[CompactedVersion], list[Revision], StateVersion]:
        try:
            # Without a write-ahead log, "immutable" prevents that SQLite creates files.
            wal = self._path.with_name(DATABASE_FILE + "-wal")
            mode = "mode=ro" if wal.exists() and wal.stat().st_size else "mode=ro&immutable=1"
            connection = sqlite3.connect(f"{self._path.absolute().as_uri()}?{mode}", uri=True)
            try:
                (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                if verdict != "ok":
                    raise sqlite3.DatabaseError(verdict)
                compacted = [CompactedVersion(*row) for row in connection.execute("SELECT * FROM floors")]
                revisions = list(_load_revisions(connection))
                versions = [item.version for item in compacted] + [revision.version for revision in revisions[-1:]]
                return compacted, revisions, StateVersion(max(versions, default=0), _count_secrets(connection))
            finally:
                connection.close()
        except (sqlite3.Error, msgspec.DecodeError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise DataError(
                f"{self._path} is damaged ({reason}) and was not changed: restore a backup, or use another directory"
            ) from None


def _count_secrets(connection: sqlite3.Connection) -> int:
    """Return the number of stored secrets. Raises ValueError if one is damaged."""
    rows = connection.execute("SELECT * FROM secrets").fetchall()
    for name, value, checksum in rows:
        if _compute_checksum((name,), value) != checksum:
            raise ValueError(f"the checksum of the secret {name!r} is wrong")
    return len(rows)


def _build_row(revision: Revision) -> tuple[Any, ...]:
    columns = (*revision[:5], int(revision.is_deleted), int(revision.bytes_differ))
    encoded = msgspec.json.encode(revision.object)
    return *columns, encoded, _compute_checksum(columns, encoded)


def _compute_checksum(columns: tuple[Any, ...], encoded: bytes) -> int:
    """Return a checksum of a row, because SQLite detects damage to its page structure but not to the content."""
    return zlib.crc32(encoded, zlib.crc32(repr(columns).encode()))


def _load_revisions(connection: sqlite3.Connection) -> Iterator[Revision]:
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    for *columns, encoded, checksum in connection.execute("SELECT * FROM revisions ORDER BY version"):
        if _compute_checksum(tuple(columns), encoded) != checksum:
            raise ValueError(f"the checksum of revision {columns[0]} is wrong")
        version, group, plural, namespace, name, deleted, bytes_differ = columns
        yield Revision(version, group, plural, namespace, name, bool(deleted), bool(bytes_differ), decode(encoded))
