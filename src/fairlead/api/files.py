"""Write files that contain secrets."""

import os
from pathlib import Path


def write_private(path: Path, content: str) -> None:
    """Write `content` to a file that only its owner can read (mode 600). An existing file or link is replaced.

    Guarantees: the file is written completely or not at all, also if the disk is full or the machine stops.
    """
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
