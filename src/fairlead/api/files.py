"""Files that are nobody else's business."""

import os
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, replacing what was there and following no link.

    Whole or not at all, also when the disk is full or the machine stops: until it is on the disk, the old one stays.
    """
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(handle)
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
