"""Virtual time: an event loop that jumps to its next timer instead of waiting for it.

A minute of back-off takes no time, and a run depends on nothing but the code and the seed. Everything that waits must
wait on this loop: the embedded server's in-process door does, sockets do not and are refused.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor
from typing import Any, TypeVar

from fairlead.api.world import World

T = TypeVar("T")

START = 1_767_225_600.0
"""2026-01-01T00:00:00Z: any fixed moment does, as long as it looks like one in a log."""

THREAD_PATIENCE = 30.0
"""Real seconds that a thread may work before the run is taken for stuck."""


class Deadlock(RuntimeError):
    """Nothing is ready, no timer is set and no thread is at work: what is awaited can never happen."""


def run(main: Coroutine[Any, Any, T], *, start: float = START) -> T:
    """Run `main` to its end in virtual time that begins at `start`, and answer its result.

    Guarantees: time moves only when nothing is ready, and then exactly to the next timer; it stands still while a
    function runs in a thread (`asyncio.to_thread`). Raises Deadlock instead of hanging. Not guaranteed: the order in
    which two threads end, and anything about threads that were started by other means.
    """
    return run_on(VirtualLoop(start), main)


def run_on(loop: "VirtualLoop", main: Coroutine[Any, Any, T]) -> T:
    """`run`, on a loop that was made before, for those who need its clock earlier. The loop is closed at the end."""
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main)


def world(seed: int = 0) -> World:
    """A world whose clock is the virtual loop's and whose every choice follows from `seed`."""
    return World.seeded(VirtualClock(), seed)


class VirtualClock:
    """The clock of the virtual loop it is given, or first read on; from then on it may be read from any thread."""

    def __init__(self, loop: "VirtualLoop | None" = None) -> None:
        self._loop = loop

    def now(self) -> float:
        return self._bound().start + self.monotonic()

    def monotonic(self) -> float:
        return self._bound().time()

    def _bound(self) -> "VirtualLoop":
        if self._loop is None:
            loop = asyncio.get_running_loop()
            if not isinstance(loop, VirtualLoop):
                raise RuntimeError("a VirtualClock tells the time of a virtual loop only: use virtual.run")
            self._loop = loop
        return self._loop


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop behind `run`. `time()` starts at 0; `start` says which moment that was."""

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
        self._threads += 1  # the standard loop joins its threads from a thread
        try:
            await super().shutdown_default_executor(*args, **kwargs)
        finally:
            self._threads -= 1

    def _thread_ended(self, _: object) -> None:
        self._threads -= 1

    def patience(self, until_timer: float | None) -> float:
        """How long to really wait for I/O, having jumped to the next timer if nothing else can happen before it."""
        if until_timer is not None and until_timer <= 0:
            return 0.0
        if self._threads:
            return THREAD_PATIENCE
        if until_timer is None:
            raise Deadlock(f"nothing can ever happen again; waiting: {_waiting(self)}")
        self._elapsed += until_timer
        return 0.0

    def out_of_patience(self) -> Deadlock:
        return Deadlock(
            f"a thread has been at work for {THREAD_PATIENCE:.0f} real seconds while virtual time stood still for it: "
            f"it must not wait for virtual time; waiting: {_waiting(self)}"
        )


class _JumpingSelector(selectors.BaseSelector):
    """Watches the loop's own wake-up pipe and nothing else."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._pipe = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        patience = self._loop.patience(timeout)
        events = self._pipe.select(patience)
        if patience and not events:
            raise self._loop.out_of_patience()
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


def _waiting(loop: asyncio.AbstractEventLoop) -> str:
    """Each unfinished task and the line it stands at."""
    told = []
    for task in asyncio.all_tasks(loop):
        frames = task.get_stack(limit=1)
        at = f" at {frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else ""
        told.append(f"{task.get_name()} in {getattr(task.get_coro(), '__qualname__', task.get_coro())}{at}")
    return ", ".join(sorted(told)) or "no task"
