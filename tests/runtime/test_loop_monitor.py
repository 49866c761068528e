"""Tests that the loop monitor logs code that blocks the event loop, while the loop is still blocked."""

import asyncio
import logging
import threading

from fairlead.api.world import World
from fairlead.runtime.loop_monitor import LoopMonitor


def block_loop(was_logged):
    was_logged.wait(10)  # This blocks the loop until the monitor has reported it.


async def test_blocked_loop_is_logged_with_the_blocking_stack(caplog):
    was_logged = threading.Event()

    class SignallingHandler(logging.Handler):
        def emit(self, record):
            was_logged.set()

    lags, lag_measured = [], asyncio.Event()

    def record_lag(lag):
        lags.append(lag)
        if lag >= 0.05:
            lag_measured.set()

    watch = LoopMonitor(World(), threshold=0.05, beat=0.01, on_lag=record_lag)
    handler = SignallingHandler()
    logger = logging.getLogger("fairlead.loop")
    logger.addHandler(handler)
    task = asyncio.create_task(watch.run())
    try:
        await asyncio.sleep(0.02)
        assert watch.problem() is None
        block_loop(was_logged)
        await lag_measured.wait()
        await asyncio.sleep(0)
    finally:
        logger.removeHandler(handler)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert was_logged.is_set()
    assert "in block" in caplog.text
    assert max(lags) >= 0.05
    assert "blocked" in watch.problem()
    assert "fairlead-lag" not in {thread.name for thread in threading.enumerate()}
