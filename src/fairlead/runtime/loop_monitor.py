"""Detect code that blocks the event loop, and log its stack."""

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Callable

from fairlead.api.world import World

log = logging.getLogger("fairlead.loop")


class LoopMonitor:
    """A heartbeat task on the event loop, and a thread that notices when the heartbeat stops.

    When a beat is late by `threshold` seconds, the thread logs the stack of the blocking code. `problem` returns a
    message for `remember` seconds afterwards. The monitor needs a real clock, so it does not run in virtual time.
    """

    # Leases and probes tolerate a delay of one second. Ten beats a second have no measurable cost.
    def __init__(
        self,
        world: World,
        *,
        threshold: float = 1.0,
        beat: float = 0.1,
        remember: float = 10.0,
        on_lag: Callable[[float], None] = lambda lag: None,
    ) -> None:
        self._clock = world.clock
        self.threshold = threshold
        self._beat = beat
        self._remember = remember
        self._on_lag = on_lag
        self._last = self._clock.monotonic()
        self._thread_id = 0
        self._stop = threading.Event()
        self.worst = 0.0
        self._worst_at = float("-inf")

    async def run(self) -> None:
        """Run the heartbeat until the task is cancelled."""
        self._last = self._clock.monotonic()
        self._thread_id = threading.get_ident()
        self._stop.clear()
        thread = threading.Thread(target=self._watch_heartbeat, name="fairlead-lag", daemon=True)
        thread.start()
        try:
            while True:
                await asyncio.sleep(self._beat)
                now = self._clock.monotonic()
                lag = max(0.0, now - self._last - self._beat)
                self._last = now
                if lag >= self.threshold:
                    self.worst, self._worst_at = lag, now
                self._on_lag(lag)
        finally:
            self._stop.set()
            thread.join()

    def problem(self) -> str | None:
        """Return a message for the liveness probe if the loop was blocked a moment ago, else None."""
        if self._clock.monotonic() - self._worst_at > self._remember:
            return None
        return f"the event loop was blocked for {self.worst:.1f} s; see the log for the stack"

    def _watch_heartbeat(self) -> None:
        reported = 0.0
        while not self._stop.wait(self._beat):
            last = self._last
            late = self._clock.monotonic() - last - self._beat
            if late < self.threshold or reported == last:
                continue
            reported = last
            frame = sys._current_frames().get(self._thread_id)  # noqa: SLF001 - the only way to read the stack of another thread
            stack = (
                "".join(traceback.format_stack(frame, limit=12)) if frame else "(the thread of the loop has ended)\n"
            )
            log.error(
                "the event loop has been blocked for %.1f s, so nothing else runs. Make this code async, or make the"
                " handler a plain `def`, which runs in a thread:\n%s",
                late,
                stack,
            )
