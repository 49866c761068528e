"""How the time for a shutdown is divided, and hooks that may not exceed their part."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from fairlead.runtime.handlers import call_hook, name_of

log = logging.getLogger("fairlead.shutdown")


@dataclass(frozen=True)
class ShutdownBudget:
    """The seconds for each phase of a shutdown: together 93 % of the total, so that the watchdog has nothing to do."""

    total: float

    @property
    def passes(self) -> float:
        """For the passes and timers that have started. Then they are cancelled."""
        return 0.55 * self.total

    @property
    def cancellation(self) -> float:
        """For cancelled code: this long for passes, again for hooks, other tasks and threads. Then abandoned."""
        return min(1.0, 0.04 * self.total)

    @property
    def lease(self) -> float:
        """For the release of the lease. Then it expires."""
        return 0.07 * self.total

    @property
    def events(self) -> float:
        """For the Events that are not written yet. Then they are dropped."""
        return 0.07 * self.total

    @property
    def hooks(self) -> float:
        """For all shutdown hooks together. Then they are cancelled. A hook in a thread is abandoned."""
        return 0.08 * self.total


class ShutdownHooks:
    """The shutdown hooks of a run, with one deadline for all of them."""

    def __init__(self, budget: ShutdownBudget, resources: dict[str, Any], threads: Executor) -> None:
        self._budget = budget
        self._resources = resources
        self._threads = threads
        self._deadline: float | None = None

    async def call(self, hook: Callable[..., Any]) -> None:
        """Call the hook, and log it if it does not end before the deadline. Raises HookFailed."""
        loop = asyncio.get_running_loop()
        if self._deadline is None:
            self._deadline = loop.time() + self._budget.hooks
        task = asyncio.create_task(call_hook(hook, self._resources, self._threads), name=f"hook {name_of(hook)}")
        try:
            await asyncio.wait([task], timeout=max(0.0, self._deadline - loop.time()))
            if not task.done():
                task.cancel()
                end = self._deadline + self._budget.cancellation  # one end for all hooks
                await asyncio.wait([task], timeout=max(0.0, end - loop.time()))
                log.error(
                    "shutdown hook %s did not end within %g s and was cancelled: raise shutdown_timeout or speed it up",
                    name_of(hook),
                    self._budget.hooks,
                )
                return
        except asyncio.CancelledError:
            task.cancel()
            raise
        task.result()
