"""The data directory: its owner's alone, one server's at a time, and no links out of it."""

import errno
import fcntl
import os
import stat
from pathlib import Path

from fairlead.api.errors import UserError

FILE = "state.db"
NEW = "state.new"  # a state while it is made; nothing is lost with it
LOCK = "lock"
MARK = "acknowledged"
# SQLite's own, beside each.
SUFFIXES = ("", "-wal", "-shm", "-journal")


class DataError(UserError):
    """A data directory that cannot be used. Nothing in it was changed."""


class Folder:
    """A data directory, made where there is none and held until closed.

    Guarantees: only its owner may enter it, no other server of this machine holds it, and what it holds of ours are
    files, not links. Nothing is said about other machines that share the disk.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            pass
        except OSError as error:
            raise DataError(f"cannot make {path}: {error.strerror}; name another folder") from None
        self._folder = self._opened()
        try:
            self._check()
            self._lock = self._locked()
        except BaseException:
            os.close(self._folder)
            raise

    def close(self) -> None:
        """Let others have it."""
        os.close(self._lock)
        os.close(self._folder)

    def settle(self, new: str, name: str) -> None:
        """Give a finished file its name, for good."""
        os.rename(new, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.fsync(self._folder)

    def _opened(self) -> int:
        try:
            return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise DataError(f"{self.path} is a link or no directory: give a directory of its own") from None
            raise DataError(f"cannot open {self.path}: {error.strerror}") from None

    def _check(self) -> None:
        found = os.fstat(self._folder)
        if found.st_uid != os.geteuid():
            raise DataError(f"{self.path} belongs to someone else: give a directory of your own")
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise DataError(f"{self.path} can be entered by others, and the state holds secrets: chmod 700 {self.path}")
        for name in (LOCK, MARK, *(base + suffix for base in (FILE, NEW) for suffix in SUFFIXES)):
            try:
                mode = os.stat(name, dir_fd=self._folder, follow_symlinks=False).st_mode
            except FileNotFoundError:
                continue
            if not stat.S_ISREG(mode):
                raise DataError(f"{self.path / name} is a link or no file: give another directory")

    def _locked(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            lock = os.open(LOCK, flags, 0o600, dir_fd=self._folder)
        except OSError as error:
            raise DataError(f"cannot write to {self.path}: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise DataError(f"another server holds {self.path}: stop it, or give another directory") from None
        return lock
