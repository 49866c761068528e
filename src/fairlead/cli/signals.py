"""Run a coroutine until it ends or a signal stops it, also if user code ignores the cancellation."""

import asyncio
import logging
import signal
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

from fairlead.api.world import SystemClock
from fairlead.cli.shell import unfinished
from fairlead.cli.watchdog import Watchdog
from fairlead.runtime.shutdown import ShutdownBudget
from fairlead.runtime.stacks import log_stack

log = logging.getLogger("fairlead.run")
_clock = SystemClock()


def run(work: Coroutine[Any, Any, Any], watchdog: Watchdog) -> int:
    """Run a coroutine on a new event loop until it ends or a signal stops it, and return the exit status.

    `asyncio.run` waits forever for a task that ignores its cancellation, and for threads. This function adds those that
    do not end to `unfinished` instead. The watchdog ends a process in which not even this function can run.
    """
    runner = asyncio.Runner()
    executor = ThreadPoolExecutor(thread_name_prefix="asyncio")
    runner.get_loop().set_default_executor(executor)
    watchdog.start()
    try:
        return runner.run(run_until_signal(work))
    finally:
        seconds = ShutdownBudget(watchdog.seconds).cancellation
        unfinished.update(runner.run(_cancel_remaining(seconds)))
        if was_stopped():
            executor.shutdown(wait=False, cancel_futures=True)
            unfinished.update(_join_threads(seconds))
        else:
            watchdog.stop()
        if not unfinished:
            runner.close()


_signals_received: list[int] = []


def was_stopped() -> bool:
    """Return whether a signal stopped the work."""
    return bool(_signals_received)


async def run_until_signal(work: Coroutine[Any, Any, Any]) -> int:
    """Run a coroutine and return the exit status. SIGTERM cancels the coroutine and returns 0, Ctrl-C returns 130."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    terminated = asyncio.Event()
    _signals_received.clear()

    def terminate() -> None:
        terminated.set()
        task.cancel()

    def handle(number: int, frame: FrameType | None) -> None:
        _signals_received.append(number)
        loop.call_soon_threadsafe(terminate)

    # Not `loop.add_signal_handler`, which takes the wakeup file descriptor from the watchdog.
    previous = signal.signal(signal.SIGTERM, handle)
    try:
        return await task or 0
    except asyncio.CancelledError:
        if terminated.is_set():
            return 0
        _signals_received.append(signal.SIGINT)
        raise
    finally:
        signal.signal(signal.SIGTERM, previous if previous is not None else signal.SIG_DFL)


def _join_threads(seconds: float) -> set[threading.Thread]:
    """Wait for the threads that would keep the process, and return those that still run after that time."""
    deadline = _clock.monotonic() + seconds
    threads = {thread for thread in threading.enumerate() if not thread.daemon} - {threading.current_thread()}
    for thread in threads:
        thread.join(max(0.0, deadline - _clock.monotonic()))
    running = {thread for thread in threads if thread.is_alive()}
    for thread in running:
        log_stack(log, logging.ERROR, f"thread {thread.name} does not end and is abandoned", thread.ident)
    return running


async def _cancel_remaining(seconds: float) -> set[asyncio.Task[Any]]:
    """Cancel every other task, and return the tasks that did not end within that time."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    return (await asyncio.wait(tasks, timeout=seconds))[1] if tasks else set()
