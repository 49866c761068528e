"""A file beside the database with the newest version that clients have seen.

SQLite treats a damaged write-ahead log like an unfinished write: it ignores the rest of the log. This file detects
that: if the database ends before the version in the file, it has lost writes.
"""

import os
import zlib
from typing import NamedTuple

from fairlead.server.storage.durable.data_directory import ACKNOWLEDGEMENT_FILE, DataDirectory, DataError

_NUMBERS = "{:020d} {:020d} "


class StateVersion(NamedTuple):
    """The newest version in a database, and the number of secrets in it."""

    version: int
    secrets: int


class AcknowledgementFile:
    """The file with the newest version that clients have seen.

    The file may be behind the database, but never ahead of it, so it needs no fsync.
    """

    def __init__(self, directory: DataDirectory) -> None:
        self._directory = directory
        self._path = directory.path / ACKNOWLEDGEMENT_FILE
        self._file = -1

    def check(self, actual: StateVersion) -> None:
        """Raise DataError if the database has lost writes that clients have seen. A missing file is not an error."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return
        if (acknowledged := _decode(content)) is None:
            raise DataError(
                f"{self._path} is damaged and was not changed: restore the directory from a backup, or remove that "
                "file if you know that nothing else is missing"
            )
        if actual.version < acknowledged.version or actual.secrets < acknowledged.secrets:
            raise DataError(
                f"the state in {self._path.parent} has lost writes: it ends at version {actual.version}, but writes up "
                f"to version {acknowledged.version} were acknowledged. It was not changed. Restore the directory from "
                f"a backup, use another directory, or remove {self._path} to continue without these writes"
            )

    def open(self, version: StateVersion) -> None:
        """Open the file for writing. If the file does not exist, create it with this version. Raises OSError."""
        if not self._path.exists():
            self._create(version)
        self._file = os.open(self._path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def write(self, version: StateVersion) -> None:
        """Replace the version in the file, before clients see that version.

        Raises OSError; the old content stays valid.
        """
        os.pwrite(self._file, _encode(version), 0)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _create(self, version: StateVersion) -> None:
        """Write a new file under another name and rename it, so that the file is never incomplete."""
        new = self._path.with_name(f"{ACKNOWLEDGEMENT_FILE}.new")
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, _encode(version))
            os.fsync(file)
        finally:
            os.close(file)
        self._directory.rename_durably(new.name, ACKNOWLEDGEMENT_FILE)


def _encode(version: StateVersion) -> bytes:
    numbers = _NUMBERS.format(*version).encode()
    return numbers + b"%08x\n" % zlib.crc32(numbers)


def _decode(content: bytes) -> StateVersion | None:
    words = content.split()
    if len(words) != 3 or not (words[0].isdigit() and words[1].isdigit()):
        return None
    version = StateVersion(int(words[0]), int(words[1]))
    return version if _encode(version) == content else None
