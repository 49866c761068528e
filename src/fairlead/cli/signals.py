"""How a command that runs until it is told to stop is told."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


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
