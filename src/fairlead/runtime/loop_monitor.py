"""Detect code that blocks the event loop, and log its stack."""

import asyncio
import logging
import threading
from collections.abc import Callable

from fairlead.api.world import World
from fairlead.runtime.stacks import log_stack

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
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = threading.Event()
        self.worst = 0.0
        self._worst_at = float("-inf")

    async def run(self) -> None:
        """Run the heartbeat until the task is cancelled."""
        self._last = self._clock.monotonic()
        self._thread_id = threading.get_ident()
        self._loop = asyncio.get_running_loop()
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
            task = asyncio.current_task(self._loop)
            during = f" by {task.get_name()}" if task is not None else ""
            log_stack(
                log,
                logging.ERROR,
                f"the event loop has been blocked for {late:.1f} s{during}, so nothing else runs. Make this code async,"
                " or make the handler a plain `def`, which runs in a thread",
                self._thread_id,
            )
