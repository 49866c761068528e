"""The data directory: readable by its owner only, used by one server at a time, without symbolic links."""

import errno
import fcntl
import os
import stat
from pathlib import Path

from fairlead.api.errors import UserError

DATABASE_FILE = "state.db"
NEW_DATABASE_FILE = "state.new"  # an incomplete new database, which can be deleted
LOCK_FILE = "lock"
ACKNOWLEDGEMENT_FILE = "acknowledged"
# The suffixes of the files that SQLite creates for a database.
SQLITE_SUFFIXES = ("", "-wal", "-shm", "-journal")


class DataError(UserError):
    """Raised if a data directory cannot be used. The directory was not changed."""


class DataDirectory:
    """A locked data directory. It is created if it does not exist.

    Guarantees:
        Only its owner can enter it. No other server on this machine uses it. Our files in it are regular files.

    Does not guarantee:
        The lock does not work between machines that share the disk.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            pass
        except OSError as error:
            raise DataError(f"cannot create {path}: {error.strerror}; use another directory") from None
        self._fd = self._open()
        try:
            self._check()
            self._lock = self._acquire_lock()
        except BaseException:
            os.close(self._fd)
            raise

    def close(self) -> None:
        """Unlock the directory, so that another server can use it."""
        os.close(self._lock)
        os.close(self._fd)

    def rename_durably(self, new: str, name: str) -> None:
        """Rename the file `new` to `name`, and wait until the disk has the new name."""
        os.rename(new, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        os.fsync(self._fd)

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise DataError(f"{self.path} is a symbolic link or not a directory: use a directory") from None
            raise DataError(f"cannot open {self.path}: {error.strerror}") from None

    def _check(self) -> None:
        status = os.fstat(self._fd)
        if status.st_uid != os.geteuid():
            raise DataError(f"{self.path} belongs to another user: use a directory of your own")
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise DataError(
                f"{self.path} is accessible to other users, but contains secrets: run chmod 700 {self.path}"
            )
        for name in (
            LOCK_FILE,
            ACKNOWLEDGEMENT_FILE,
            *(base + suffix for base in (DATABASE_FILE, NEW_DATABASE_FILE) for suffix in SQLITE_SUFFIXES),
        ):
            try:
                mode = os.stat(name, dir_fd=self._fd, follow_symlinks=False).st_mode
            except FileNotFoundError:
                continue
            if not stat.S_ISREG(mode):
                raise DataError(f"{self.path / name} is not a regular file: use another directory")

    def _acquire_lock(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            lock = os.open(LOCK_FILE, flags, 0o600, dir_fd=self._fd)
        except OSError as error:
            raise DataError(f"cannot write to {self.path}: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise DataError(f"another server uses {self.path}: stop it, or use another directory") from None
        return lock
