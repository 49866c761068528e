"""The life of a key: added, perhaps delayed, ready, out, done."""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Hashable
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from fairlead.api import backoff
from fairlead.api.world import World
from fairlead.queue.ready import Priority, Ready

K = TypeVar("K", bound=Hashable)

# An error may be gone in a moment, and is worth a look every half minute however long it lasts.
ERROR_BASE, ERROR_CAP = 0.005, 30.0
# Someone else wrote first: their event is on its way, and a second of patience outlasts any burst of writes.
CONFLICT_BASE, CONFLICT_CAP = 0.010, 1.0


class Closed(Exception):
    """The queue was closed and has nothing more to give."""


class Outcome(StrEnum):
    DONE = "done"
    ERROR = "error"
    CONFLICT = "conflict"


class Observer(Protocol):
    """Told what happens to keys, by lane; for metrics."""

    def added(self, lane: Hashable) -> None:
        """A key became ready."""

    def taken(self, lane: Hashable, waited: float) -> None:
        """A key was handed out after being ready for `waited` seconds."""

    def finished(self, lane: Hashable, took: float, outcome: Outcome) -> None:
        """A key came back after `took` seconds."""


class _State:
    """What is known of one key; kept only while there is something to know."""

    __slots__ = (
        "again",
        "conflicts",
        "errors",
        "not_before",
        "out_since",
        "priority",
        "ready",
        "wake",
        "wake_priority",
    )

    def __init__(self) -> None:
        self.ready = False
        self.out_since: float | None = None  # out, since then
        self.again: Priority | None = None  # added while out: to run once more, so urgently
        self.priority = Priority.RESYNC  # of this run while out, of the next one while backing off
        self.errors = 0
        self.conflicts = 0
        self.not_before: float | None = None  # backing off until then
        self.wake: float | None = None  # a delayed add, due then
        self.wake_priority = Priority.RESYNC

    @property
    def idle(self) -> bool:
        return not (
            self.ready
            or self.errors
            or self.conflicts
            or self.out_since is not None
            or self.not_before is not None
            or self.wake is not None
        )


class Queue(Generic[K]):
    """Which key to look at next.

    - A key is out with at most one taker. Added while out, it runs again afterwards; added often, it runs once.
    - `add(after=…)` makes it due later; the earliest such time counts, and an add without delay runs it before.
    - Each taker gives its key back with `done` (went well: the back-off starts over), `retry` (an error: the key
      waits 5 ms, doubling up to 30 s) or `conflict` (somebody else wrote first: 10 ms up to 1 s, and the back-off for
      errors neither grows nor starts over). While a key waits so, adds neither shorten nor prolong it.
    - Fresh keys go before resyncs. Lanes (controllers) take turns, and `limit` bounds how many keys are out.

    Not for threads: use it on one loop. It does not say what a key is, nor bound how many are waiting.
    """

    def __init__(
        self,
        world: World,
        *,
        lane: Callable[[K], Hashable] = lambda key: None,
        observer: Observer | None = None,
    ) -> None:
        self._world = world
        self._lane = lane
        self._observer = observer
        self._states: dict[K, _State] = {}
        self._ready: Ready[K] = Ready()
        self._due: list[tuple[float, int, K]] = []  # a heap; an entry that its state no longer names is skipped
        self._sequence = 0
        self._timer: asyncio.TimerHandle | None = None
        self._getters: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self._quiet: asyncio.Event | None = None

    def __len__(self) -> int:
        """How many keys are ready; those delayed or out are not counted."""
        return self._ready.depth()

    def depth(self, lane: Hashable, priority: Priority | None = None) -> int:
        """How many keys of that lane are ready (with that priority)."""
        return self._ready.depth(lane, priority)

    def out(self) -> dict[K, float]:
        """The keys that are out, and for how many seconds."""
        now = asyncio.get_running_loop().time()
        return {key: now - state.out_since for key, state in self._states.items() if state.out_since is not None}

    @property
    def idle(self) -> bool:
        """Nothing is ready, out or backing off. Delayed adds may still be due later."""
        return all(
            not state.ready and state.out_since is None and state.not_before is None for state in self._states.values()
        )

    def limit(self, out: int | None, lane: Hashable | None = None) -> None:
        """Let at most `out` keys be out at once, of that lane or altogether; None is no limit. Recalls nothing."""
        self._ready.limit(out, lane)
        self._wake_all()

    def add(self, key: K, *, priority: Priority = Priority.FRESH, after: float = 0.0) -> None:
        """Have the key looked at, now or in `after` seconds. Ignored once closed."""
        if self._closed:
            return
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _State()
        if after > 0:
            when = asyncio.get_running_loop().time() + after
            if state.wake is None:
                state.wake_priority = priority
            else:
                state.wake_priority = max(priority, state.wake_priority)
            if state.wake is None or when < state.wake:
                state.wake = when
                self._schedule(when, key)
        else:
            self._want(key, state, priority)

    async def get(self) -> K:
        """The next key; the caller must give it back with `done`, `retry` or `conflict`. Raises Closed at the end."""
        loop = asyncio.get_running_loop()
        while True:
            taken = self._ready.take(loop.time())
            if taken is not None:
                break
            if self._closed and not self._ready.busy:
                raise Closed("the queue is closed")
            getter = loop.create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                if getter.done() and not getter.cancelled():
                    self._wake_getter()  # this wake-up was ours to use; pass it on
                elif getter in self._getters:
                    self._getters.remove(getter)
                raise
        key, priority, since = taken
        state = self._states[key]
        state.ready, state.priority, state.out_since = False, priority, loop.time()
        if self._observer:
            self._observer.taken(self._lane(key), state.out_since - since)
        return key

    def done(self, key: K) -> None:
        """It went well."""
        state = self._finish(key, Outcome.DONE)
        state.errors = state.conflicts = 0
        self._settle(key, state)

    def retry(self, key: K) -> None:
        """It failed: run it again after its back-off."""
        state = self._finish(key, Outcome.ERROR)
        state.errors += 1
        self._hold(key, state, backoff.delay(state.errors, ERROR_BASE, ERROR_CAP, self._world))

    def conflict(self, key: K) -> None:
        """Somebody else wrote first: run it again in a moment."""
        state = self._finish(key, Outcome.CONFLICT)
        state.conflicts += 1
        self._hold(key, state, backoff.delay(state.conflicts, CONFLICT_BASE, CONFLICT_CAP, self._world))

    async def close(self, *, drain: bool = True) -> None:
        """Take nothing more in, and wait until no key is out.

        With `drain`, keys that are ready by now are still handed out first; delayed ones and those backing off are
        dropped either way. Bound the wait with `asyncio.timeout`.
        """
        self._closed = True
        if self._timer:
            self._timer.cancel()
        self._due.clear()
        for key, state in list(self._states.items()):
            state.not_before = state.wake = None
            if not drain:
                state.again, state.ready = None, False
            self._drop_if_idle(key, state)
        if not drain:
            self._ready.clear()
        self._quiet = self._quiet or asyncio.Event()
        self._note_quiet()
        await self._quiet.wait()

    # The states of a key. Each method leaves it in a consistent one.

    def _want(self, key: K, state: _State, priority: Priority) -> None:
        """Run it as soon as it may."""
        if state.out_since is not None:
            state.again = priority if state.again is None else max(priority, state.again)
        elif state.not_before is not None:
            state.priority = max(priority, state.priority)
        else:
            self._make_ready(key, state, priority)

    def _make_ready(self, key: K, state: _State, priority: Priority) -> None:
        lane = self._lane(key)
        self._ready.put(lane, key, priority, asyncio.get_running_loop().time())
        if not state.ready:
            state.ready = True
            self._wake_getter()
            if self._observer:
                self._observer.added(lane)

    def _finish(self, key: K, outcome: Outcome) -> _State:
        state = self._states.get(key)
        if state is None or state.out_since is None:
            raise ValueError(f"{key!r} is not out: give a key back once, after get() handed it out")
        took, state.out_since = asyncio.get_running_loop().time() - state.out_since, None
        lane = self._lane(key)
        self._ready.back(lane)
        if self._observer:
            self._observer.finished(lane, took, outcome)
        return state

    def _settle(self, key: K, state: _State) -> None:
        if state.again is not None:
            again, state.again = state.again, None
            self._make_ready(key, state, again)
        else:
            self._drop_if_idle(key, state)
            self._wake_getter()  # a limit may have been what it waited for
        self._note_quiet()

    def _hold(self, key: K, state: _State, seconds: float) -> None:
        """Back off. What was added meanwhile waits with it."""
        if self._closed:
            self._settle(key, state)
            return
        if state.again is not None:
            state.priority, state.again = max(state.again, state.priority), None
        state.not_before = asyncio.get_running_loop().time() + seconds
        self._schedule(state.not_before, key)
        self._wake_getter()

    def _drop_if_idle(self, key: K, state: _State) -> None:
        if state.idle:
            self._states.pop(key, None)

    def _note_quiet(self) -> None:
        if self._quiet and not self._ready.busy:
            self._quiet.set()
            self._wake_all()

    # Time

    def _schedule(self, when: float, key: K) -> None:
        self._sequence += 1
        heapq.heappush(self._due, (when, self._sequence, key))
        if self._due[0][1] == self._sequence:
            self._arm()

    def _arm(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(self._due[0][0], self._fire) if self._due else None

    def _fire(self) -> None:
        assert self._timer is not None
        now = self._timer.when()  # the loop may call a clock tick early
        while self._due and self._due[0][0] <= now:
            when, _, key = heapq.heappop(self._due)
            state = self._states.get(key)
            if state is None:
                continue
            if state.not_before == when:
                state.not_before = None
                self._make_ready(key, state, state.priority)
            if state.wake == when:
                state.wake = None
                self._want(key, state, state.wake_priority)
        self._arm()

    # Each key made ready and each place freed wakes one getter, so that none sleeps while there is a key for it.

    def _wake_getter(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _wake_all(self) -> None:
        for _ in range(len(self._getters)):
            self._wake_getter()
