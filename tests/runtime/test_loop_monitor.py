"""The loop monitor reports code that blocks the event loop while it blocks."""

import asyncio
import logging
import threading

from fairlead.api.world import World
from fairlead.runtime.loop_monitor import LoopMonitor


def block(noticed):
    noticed.wait(10)  # This blocks the loop until the monitor has reported it.


async def test_blocked_loop_is_logged_with_the_blocking_stack(caplog):
    noticed = threading.Event()

    class Noticing(logging.Handler):
        def emit(self, record):
            noticed.set()

    lags, late = [], asyncio.Event()

    def seen(lag):
        lags.append(lag)
        if lag >= 0.05:
            late.set()

    watch = LoopMonitor(World(), threshold=0.05, beat=0.01, on_lag=seen)
    handler = Noticing()
    logger = logging.getLogger("fairlead.loop")
    logger.addHandler(handler)
    task = asyncio.create_task(watch.run())
    try:
        await asyncio.sleep(0.02)
        assert watch.problem() is None
        block(noticed)
        await late.wait()
        await asyncio.sleep(0)
    finally:
        logger.removeHandler(handler)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert noticed.is_set()
    assert "in block" in caplog.text
    assert max(lags) >= 0.05
    assert "blocked" in watch.problem()
    assert "fairlead-lag" not in {thread.name for thread in threading.enumerate()}
