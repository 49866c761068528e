"""A child process that ends this process if it does not stop in time after SIGTERM or Ctrl-C.

User code can block the event loop, and a C function can hold the interpreter lock, so nothing inside this process is
certain to run. Python's C code writes each signal to a pipe at once, without the lock. The child reads that pipe.
"""

import contextlib
import faulthandler
import logging
import mmap
import os
import select
import signal
import struct
import sys
import threading
from typing import NoReturn

from fairlead.api.world import SystemClock

log = logging.getLogger("fairlead.run")
_clock = SystemClock()

POLL_SECONDS = 60.0  # how often the child checks that its parent lives, if a process of the user keeps the pipe open
DUMP_SECONDS = 2.0  # for the stacks, which the parent prints before it ends


class Watchdog:
    """Ends this process if it still runs `seconds` after a signal, and first prints the stack of each thread.

    Does not guarantee: an end in time if user code replaces the wakeup file descriptor of Python's signals.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = mmap.mmap(-1, 8)  # shared with the child
        self.seconds = seconds
        self._child = 0
        self._writer = -1

    @property
    def seconds(self) -> float:
        """The time limit. A change is effective until the signal arrives."""
        (seconds,) = struct.unpack("d", self._seconds[:])
        return float(seconds)

    @seconds.setter
    def seconds(self, seconds: float) -> None:
        self._seconds[:] = struct.pack("d", seconds)

    def start(self) -> None:
        """Start the child process. Call it before any thread is started."""
        if threading.current_thread() is not threading.main_thread() or not hasattr(os, "fork"):
            return
        with contextlib.suppress(OSError):  # There may be no standard error output.
            if not faulthandler.is_enabled() and sys.__stderr__ is not None:
                faulthandler.enable(sys.__stderr__)
        reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        parent = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        self._child = os.fork()
        if self._child == 0:
            os.close(self._writer)
            self._watch(parent, reader)
        os.close(reader)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)

    def stop(self) -> None:
        """End the child process. Without it, the child ends with this process."""
        if self._child:
            signal.set_wakeup_fd(-1)
            os.close(self._writer)
            os.waitpid(self._child, 0)
            self._child = 0

    def _watch(self, parent: int, reader: int) -> NoReturn:
        """Wait for a signal of the parent, then for its end."""
        try:
            for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # sent to the whole group by a terminal
                signal.signal(ignored, signal.SIG_IGN)
            while not {signal.SIGTERM, signal.SIGINT} & set(_read(parent, reader, POLL_SECONDS)):
                pass
            deadline = _clock.monotonic() + self.seconds
            while (seconds_left := deadline - _clock.monotonic()) > 0:
                _read(parent, reader, seconds_left)
            log.error(
                "the operator did not stop within %g s, because user code does not end: ending it now. "
                "The stacks of its threads show that code",
                self.seconds,
            )
            os.kill(parent, signal.SIGABRT)  # faulthandler prints the stacks without the interpreter lock
            deadline = _clock.monotonic() + DUMP_SECONDS
            while (seconds_left := deadline - _clock.monotonic()) > 0:
                _read(parent, reader, seconds_left)
            os.kill(parent, signal.SIGKILL)
        finally:
            os._exit(0)


def _read(parent: int, reader: int, seconds: float) -> bytes:
    """Return the signals that arrive within that time. Exit if the parent has ended."""
    ready = select.select([reader], [], [], seconds)[0]
    data = os.read(reader, 4096) if ready else b""
    if os.getppid() != parent or (ready and not data):
        os._exit(0)
    return data
