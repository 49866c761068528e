"""How far the state was acknowledged, noted beside it.

SQLite takes a damaged write-ahead log for one whose last write never finished, and goes on without the rest. What is
noted here after each commit tells the two apart: a state that ends before it has lost something.
"""

import os
import zlib
from typing import NamedTuple

from fairlead.server.storage.durable.folder import MARK, DataError, Folder

_NUMBERS = "{:020d} {:020d} "


class Reached(NamedTuple):
    """The newest version that a state holds, and how many secrets."""

    version: int
    secrets: int


class Mark:
    """The note. It is never ahead of the state, so that it takes no sync of its own; it may be behind."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._path = folder.path / MARK
        self._file = -1

    def check(self, found: Reached) -> None:
        """Refuse a state that has not reached what was noted. Without a note nothing is known. Raises DataError."""
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return
        if (noted := _read(text)) is None:
            raise DataError(
                f"{self._path} is damaged and was left as it is: put a copy of the directory back, or remove that file "
                "if you know that nothing else is missing"
            )
        if found.version < noted.version or found.secrets < noted.secrets:
            raise DataError(
                f"the state in {self._path.parent} has lost writes (it ends at version {found.version}, and up to "
                f"{noted.version} was acknowledged) and was left as it is: put a copy of the directory back, give "
                f"another directory, or remove {self._path} to go on without them"
            )

    def open(self, reached: Reached) -> None:
        """Make ready to note, from where the state is. Raises OSError."""
        if not self._path.exists():
            self._make(reached)
        self._file = os.open(self._path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def note(self, reached: Reached) -> None:
        """Note what is on the disk, before anyone is told of it. Raises OSError; the older note stays good then."""
        os.pwrite(self._file, _written(reached), 0)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _make(self, reached: Reached) -> None:
        """Make the file beside its place and move it there whole: there is never half of one."""
        new = self._path.with_name(f"{MARK}.new")
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, _written(reached))
            os.fsync(file)
        finally:
            os.close(file)
        self._folder.settle(new.name, MARK)


def _written(reached: Reached) -> bytes:
    numbers = _NUMBERS.format(*reached).encode()
    return numbers + b"%08x\n" % zlib.crc32(numbers)


def _read(text: bytes) -> Reached | None:
    words = text.split()
    if len(words) != 3 or not (words[0].isdigit() and words[1].isdigit()):
        return None
    noted = Reached(int(words[0]), int(words[1]))
    return noted if _written(noted) == text else None
