"""How a command that runs until it is told to stop is told, and how it stops also when user code does not."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

from fairlead.cli.shell import left_behind


def run(work: Coroutine[Any, Any, Any]) -> int:
    """Run it until it ends or is told to, on a loop of its own, as `asyncio.run` would.

    That one waits for ever for a task that takes no notice of being cancelled; here it is among the `left_behind`.
    """
    runner = asyncio.Runner()
    try:
        return runner.run(until_told(work))
    finally:
        left_behind.update(runner.run(_rest()))
        if not left_behind:
            runner.close()


async def until_told(work: Coroutine[Any, Any, Any]) -> int:
    """Run it; SIGTERM ends it gracefully and is no failure. Ctrl-C cancels it as well, and leaves with 130."""
    task = asyncio.ensure_future(work)
    told = asyncio.Event()

    def tell() -> None:
        told.set()
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, tell)
    try:
        return await task or 0
    except asyncio.CancelledError:
        if told.is_set():
            return 0
        raise


async def _rest() -> set[asyncio.Task[Any]]:
    """Cancel what still runs; answers what does not end of that."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    return (await asyncio.wait(tasks, timeout=1.0))[1] if tasks else set()
