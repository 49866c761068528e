"""The journal: one line of JSON for each thing that was about to be deleted, and for what came of it."""

import json
import os
from pathlib import Path
from typing import Any, Protocol

from fairlead.api.errors import UserError


class JournalError(UserError):
    """The journal cannot be written, so nothing may be deleted."""


class Journal(Protocol):
    """Where deletions are written down."""

    def write(self, entry: dict[str, Any]) -> None:
        """Written when this returns. Raises JournalError."""


class JournalFile:
    """A private file that only grows. What is in it has reached the disk.

    A `deleting` line holds the object as it was, so that what went by mistake can be made anew.
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
                f"the journal {self.path} cannot be written ({error.strerror}), so nothing more is deleted: make room, "
                "or name another place with --evidence (the journal stands beside it)"
            ) from None
