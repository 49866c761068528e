"""The deletion journal: one line of JSON before each deletion, and one line with its result."""

import json
import os
from pathlib import Path
from typing import Any, Protocol

from fairlead.api.errors import UserError


class JournalError(UserError):
    """The deletion journal cannot be written, so nothing was deleted."""


class DeletionJournal(Protocol):
    """A record of deletions."""

    def write(self, entry: dict[str, Any]) -> None:
        """Write an entry to stable storage. Raises JournalError."""


class DeletionJournalFile:
    """A journal file that only its owner can read. Lines are appended and synced to the disk.

    A `deleting` line contains the whole object, so that an object deleted by mistake can be recreated.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry, separators=(",", ":")) + "\n"
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(line)
                file.flush()
                os.fsync(handle)
        except OSError as error:
            raise JournalError(
                f"the journal {self.path} cannot be written ({error.strerror}), so nothing more is deleted: free some "
                "space, or choose another folder with --evidence (the journal is beside the evidence)"
            ) from None
