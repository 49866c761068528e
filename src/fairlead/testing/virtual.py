"""Virtual time: an event loop that sets its clock to the next timer instead of waiting.

A minute of back-off takes no real time, and a run depends only on the code and the seed. All waiting must happen on
this loop, so the loop rejects sockets. The embedded server has an in-process transport without sockets.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor
from typing import Any, TypeVar

from fairlead.api.world import World

T = TypeVar("T")

START = 1_767_225_600.0
"""2026-01-01T00:00:00Z. Any fixed time works; this one is easy to recognize in a log."""

THREAD_TIMEOUT = 30.0
"""Real seconds that a thread may run before the loop reports a deadlock."""


class Deadlock(RuntimeError):
    """The run cannot continue: no task is ready, no timer is set and no thread is running."""


def run(main: Coroutine[Any, Any, T], *, start: float = START) -> T:
    """Run the coroutine `main` in virtual time and return its result. The clock starts at `start`, in epoch seconds.

    Guarantees: time moves only when no task is ready, and then exactly to the next timer. Time does not move while a
    function runs in a thread (`asyncio.to_thread`). A run that cannot continue raises Deadlock instead of hanging.

    Does not guarantee: the order in which two threads end, or anything about threads that were started in another way.
    """
    return run_on(VirtualLoop(start), main)


def run_on(loop: "VirtualLoop", main: Coroutine[Any, Any, T]) -> T:
    """Run `main` on an existing loop and close the loop. For callers that need the loop's clock before the run."""
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main)


def world(seed: int = 0) -> World:
    """Return a World with the clock of the virtual loop, whose random values depend only on `seed`."""
    return World.seeded(VirtualClock(), seed)


class VirtualClock:
    """The clock of a VirtualLoop. Without `loop`, the first read takes the running loop. Usable from any thread."""

    def __init__(self, loop: "VirtualLoop | None" = None) -> None:
        self._loop = loop

    def now(self) -> float:
        return self._require_loop().start + self.monotonic()

    def monotonic(self) -> float:
        return self._require_loop().time()

    def _require_loop(self) -> "VirtualLoop":
        if self._loop is None:
            loop = asyncio.get_running_loop()
            if not isinstance(loop, VirtualLoop):
                raise RuntimeError("a VirtualClock needs a virtual loop: use virtual.run")
            self._loop = loop
        return self._loop


class VirtualLoop(asyncio.SelectorEventLoop):
    """The event loop of virtual time. `time()` starts at 0, when the clock shows `start`."""

    def __init__(self, start: float = START) -> None:
        self.start = start
        self._elapsed = 0.0
        self._threads = 0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        return self._elapsed

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self._threads += 1
        future.add_done_callback(self._thread_ended)
        return future

    async def shutdown_default_executor(self, *args: Any, **kwargs: Any) -> None:
        self._threads += 1  # The standard loop joins its threads from another thread.
        try:
            await super().shutdown_default_executor(*args, **kwargs)
        finally:
            self._threads -= 1

    def _thread_ended(self, _: object) -> None:
        self._threads -= 1

    def advance(self, until_timer: float | None) -> float:
        """Return the real seconds to wait for I/O. If no thread is running, first set the clock to the next timer."""
        if until_timer is not None and until_timer <= 0:
            return 0.0
        if self._threads:
            return THREAD_TIMEOUT
        if until_timer is None:
            raise Deadlock(f"no task can continue; waiting: {_describe_tasks(self)}")
        self._elapsed += until_timer
        return 0.0

    def thread_timeout(self) -> Deadlock:
        return Deadlock(
            f"a thread has been running for {THREAD_TIMEOUT:.0f} real seconds, and virtual time does not move: "
            f"it must not wait for virtual time; waiting: {_describe_tasks(self)}"
        )


class _JumpingSelector(selectors.BaseSelector):
    """A selector that accepts only the wake-up pipe of its loop, so that no other socket can be used."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._pipe = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        wait = self._loop.advance(timeout)
        events = self._pipe.select(wait)
        if wait and not events:
            raise self._loop.thread_timeout()
        return events

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        if self._pipe.get_map():
            raise RuntimeError(
                "virtual time cannot wait for a socket or a pipe: use the embedded server's in-process transport"
            )
        return self._pipe.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._pipe.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._pipe.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._pipe.get_map()

    def close(self) -> None:
        self._pipe.close()


def _describe_tasks(loop: asyncio.AbstractEventLoop) -> str:
    """Return a text with every unfinished task and the line where it waits."""
    descriptions = []
    for task in asyncio.all_tasks(loop):
        frames = task.get_stack(limit=1)
        location = f" at {frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else ""
        descriptions.append(
            f"{task.get_name()} in {getattr(task.get_coro(), '__qualname__', task.get_coro())}{location}"
        )
    return ", ".join(sorted(descriptions)) or "no task"
