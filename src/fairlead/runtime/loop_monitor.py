"""Noticing code that blocks the event loop, and saying where it stands."""

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Callable

from fairlead.api.world import World

log = logging.getLogger("fairlead.loop")


class LoopMonitor:
    """A heartbeat on the loop and a thread that sees it stop.

    When a beat is late by `threshold` seconds the thread logs the stack of what blocks, while it blocks; `problem()`
    tells it for `remember` seconds afterwards. It needs a clock that runs by itself, so it is not used in virtual time.
    """

    # A second is what leases and probes can still bear; ten times a second costs nothing that can be measured.
    def __init__(
        self,
        world: World,
        *,
        threshold: float = 1.0,
        beat: float = 0.1,
        remember: float = 10.0,
        seen: Callable[[float], None] = lambda lag: None,
    ) -> None:
        self._clock = world.clock
        self.threshold = threshold
        self._beat = beat
        self._remember = remember
        self._seen = seen
        self._last = self._clock.monotonic()
        self._thread_id = 0
        self._stop = threading.Event()
        self.worst = 0.0
        self._worst_at = float("-inf")

    async def run(self) -> None:
        """Beat until cancelled."""
        self._last = self._clock.monotonic()
        self._thread_id = threading.get_ident()
        self._stop.clear()
        thread = threading.Thread(target=self._look, name="fairlead-lag", daemon=True)
        thread.start()
        try:
            while True:
                await asyncio.sleep(self._beat)
                now = self._clock.monotonic()
                lag = max(0.0, now - self._last - self._beat)
                self._last = now
                if lag >= self.threshold:
                    self.worst, self._worst_at = lag, now
                self._seen(lag)
        finally:
            self._stop.set()
            thread.join()

    def problem(self) -> str | None:
        """What to tell a health probe: None, or that the loop was blocked a moment ago."""
        if self._clock.monotonic() - self._worst_at > self._remember:
            return None
        return f"the event loop was blocked for {self.worst:.1f} s; see the log for the stack"

    def _look(self) -> None:
        told = 0.0
        while not self._stop.wait(self._beat):
            last = self._last
            late = self._clock.monotonic() - last - self._beat
            if late < self.threshold or told == last:
                continue
            told = last
            frame = sys._current_frames().get(self._thread_id)  # noqa: SLF001 - the only way to see another thread
            stack = "".join(traceback.format_stack(frame, limit=12)) if frame else "(the loop's thread is gone)\n"
            log.error(
                "the event loop is blocked for %.1f s already: nothing else runs. Make that code async, or the function"
                " a plain `def`, which runs in a thread. It stands at:\n%s",
                late,
                stack,
            )
