"""Run a coroutine until it ends or a signal stops it, also if user code ignores the cancellation."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

from fairlead.cli.shell import unfinished_tasks

CANCEL_TIMEOUT = 1.0
"""Seconds that cancelled tasks get to end. Longer would keep a user waiting after Ctrl-C."""


def run(work: Coroutine[Any, Any, Any]) -> int:
    """Run a coroutine on a new event loop until it ends or a signal stops it, and return the exit status.

    `asyncio.run` waits forever for a task that ignores its cancellation. This function adds such a task to
    `unfinished_tasks` instead.
    """
    runner = asyncio.Runner()
    try:
        return runner.run(run_until_signal(work))
    finally:
        unfinished_tasks.update(runner.run(_cancel_remaining()))
        if not unfinished_tasks:
            runner.close()


async def run_until_signal(work: Coroutine[Any, Any, Any]) -> int:
    """Run a coroutine and return the exit status. SIGTERM cancels the coroutine and returns 0, Ctrl-C returns 130."""
    task = asyncio.ensure_future(work)
    terminated = asyncio.Event()

    def terminate() -> None:
        terminated.set()
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminate)
    try:
        return await task or 0
    except asyncio.CancelledError:
        if terminated.is_set():
            return 0
        raise


async def _cancel_remaining() -> set[asyncio.Task[Any]]:
    """Cancel every other task, and return the tasks that did not end within CANCEL_TIMEOUT."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    return (await asyncio.wait(tasks, timeout=CANCEL_TIMEOUT))[1] if tasks else set()
