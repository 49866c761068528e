"""Log the stack of a thread, as a stack: one line per frame."""

import logging
import sys
import traceback

MAX_FRAMES = 12  # the innermost ones: enough to show the user's code


def log_stack(logger: logging.Logger, level: int, message: str, thread_id: int | None) -> None:
    """Log the message with the current stack of that thread."""
    frame = sys._current_frames().get(thread_id or 0)  # noqa: SLF001 - the only way to read the stack of another thread
    stack = "".join(traceback.format_stack(frame, limit=MAX_FRAMES)) if frame else "(the thread has ended)"
    if logger.isEnabledFor(level):
        record = logger.makeRecord(logger.name, level, "", 0, "%s", (message,), None)
        record.stack_info = stack
        logger.handle(record)
