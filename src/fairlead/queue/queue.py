"""The work queue of keys. A key is added, may be delayed, becomes ready, is in progress, and is done."""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from enum import StrEnum
from math import isinf
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from fairlead.api import backoff
from fairlead.api.world import World
from fairlead.queue.ready import Priority, ReadyKeys
from fairlead.queue.token_bucket import TokenBucket

K = TypeVar("K", bound=Hashable)

# An error may be over in a moment, so the first retry follows at once. If it lasts, a retry every half minute costs a
# server nothing, and a person who fixed the cause waits half a minute at most.
ERROR_BASE, ERROR_CAP = 0.005, 30.0
# A change may have removed the cause of an error, so the next look need not wait. One look per second is enough for a
# person who edits, and bounds what a program that edits without end can cause. Three at once cover quick corrections.
EARLY_LOOKS_PER_SECOND, EARLY_LOOKS_AT_ONCE = 1.0, 3
# Another writer was first. Its event is on the way, and one second is longer than any burst of writes.
CONFLICT_BASE, CONFLICT_CAP = 0.010, 1.0


class QueueClosed(Exception):
    """The queue is closed and empty."""


class Outcome(StrEnum):
    DONE = "done"
    ERROR = "error"
    CONFLICT = "conflict"


class Observer(Protocol):
    """Methods that the queue calls for metrics. A lane is the controller that a key belongs to."""

    def added(self, lane: Hashable) -> None:
        """Called when a key became ready."""

    def taken(self, lane: Hashable, waited: float) -> None:
        """Called when a worker got a key that had been ready for `waited` seconds."""

    def finished(self, lane: Hashable, took: float, outcome: Outcome) -> None:
        """Called when a worker returned a key after `took` seconds."""


class KeyState(NamedTuple):
    """What the queue does with a key."""

    name: Literal["ready", "processing", "backoff", "delayed", "held"]
    seconds: float
    """processing: since a worker got the key. backoff, delayed and held: until the key is ready. ready: 0."""


class _State:
    """The state of one key. The queue forgets the state when the key is idle."""

    __slots__ = (
        "backing_off_until",
        "can_be_cut",
        "conflicts",
        "delayed_priority",
        "delayed_until",
        "early_looks",
        "errors",
        "held_priority",
        "held_until",
        "in_progress_since",
        "priority",
        "ready",
        "rerun_priority",
    )

    def __init__(self) -> None:
        self.ready = False
        self.in_progress_since: float | None = None  # in progress since then
        self.rerun_priority: Priority | None = None  # added while in progress: run it again with this priority
        self.priority = Priority.RESYNC  # of this run while in progress, of the next one while backing off
        self.errors = 0
        self.conflicts = 0
        self.backing_off_until: float | None = None  # None if it is not backing off
        self.can_be_cut = False  # whether it backs off after an error, not after a conflict
        self.early_looks: TokenBucket | None = None  # None before the first early look
        self.delayed_until: float | None = None  # the time of a delayed add
        self.delayed_priority = Priority.RESYNC
        self.held_until: float | None = None  # None if nothing holds the key
        self.held_priority: Priority | None = None  # would be ready, if nothing held it

    @property
    def is_idle(self) -> bool:
        return not (
            self.ready
            or self.errors
            or self.conflicts
            or self.in_progress_since is not None
            or self.backing_off_until is not None
            or self.delayed_until is not None
            or self.held_until is not None
        )


class Queue(Generic[K]):
    """A work queue of keys with priorities, delays and back-off, like client-go's rate limiting queue.

    Guarantees:
    - At most one worker has a key at a time. A key that is added while it is in progress runs again afterwards, once.
    - `add(after=…)` delays a key. The earliest delay counts, and an add without delay runs the key sooner.
    - A worker returns its key with `done`, `retry` or `conflict`. `done` resets the back-off. `retry` waits 5 ms after
      the first error, doubling up to 30 s; `set_backoff` changes both. `conflict` (another writer was first) waits
      10 ms up to 1 s, and leaves the back-off for errors unchanged. An add neither shortens nor extends a back-off.
    - `cut_backoff` ends the back-off of a key after an error: the key becomes ready now. Each key has one such early
      look per second, and up to three at once; a further one waits for its turn or for the end of the back-off. An
      early look that fails counts as an error, so the back-off keeps growing. In t seconds, a key that keeps failing
      runs at most 3 + t times more than without cuts, however many cuts there are. A back-off after a conflict is not
      cut.
    - `hold` keeps a key from becoming ready for some seconds, whatever would make it ready, and forgets nothing: the
      key becomes ready at the end, or at `release`, if anything asked for a run meanwhile.
    - Fresh keys run before resyncs. A resync that waited for 30 s gets every eighth turn.
    - Lanes (controllers) take turns. `limit` bounds how many keys are in progress, `limit_rate` how many start per
      second. Both delay keys and drop none.

    Does not guarantee: a bound on the number of waiting keys, and use from other threads.

    Raises: `get` raises QueueClosed after `close`. `done`, `retry` and `conflict` raise ValueError if the key is not in
    progress.

    Example:
        queue.add("default/settings")
        key = await queue.get()
        try:
            await reconcile(key)
        except Exception:
            queue.retry(key)
        else:
            queue.done(key)
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
        self._ready: ReadyKeys[K] = ReadyKeys()
        self._due: list[tuple[float, int, K]] = []  # a heap; outdated items are skipped
        self._sequence = 0
        self._timer: asyncio.TimerHandle | None = None
        self._rate_timer: asyncio.TimerHandle | None = None
        self._backoffs: dict[Hashable, tuple[float, float]] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self._drained: asyncio.Event | None = None

    def __len__(self) -> int:
        """Return the number of ready keys. Delayed keys and keys in progress do not count."""
        return self._ready.depth()

    def depth(self, lane: Hashable, priority: Priority | None = None) -> int:
        """Return the number of ready keys of that lane, of one priority or of all."""
        return self._ready.depth(lane, priority)

    def in_progress(self) -> dict[K, float]:
        """Return each key that is in progress, with the seconds since a worker got it."""
        now = asyncio.get_running_loop().time()
        return {
            key: now - state.in_progress_since
            for key, state in self._states.items()
            if state.in_progress_since is not None
        }

    def states(self) -> Iterator[tuple[K, KeyState]]:
        """Return each key that is ready, in progress, backing off, delayed or held back, with its state."""
        now = asyncio.get_running_loop().time()
        for key, state in self._states.items():
            if (described := _describe_state(state, now)) is not None:
                yield key, described

    def state(self, key: K) -> KeyState | None:
        """Return the state of one key, or None if the key is idle."""
        state = self._states.get(key)
        return None if state is None else _describe_state(state, asyncio.get_running_loop().time())

    @property
    def is_idle(self) -> bool:
        """Return whether no key is ready, in progress, backing off or held back. Delayed keys do not count."""
        return all(
            not state.ready
            and state.in_progress_since is None
            and state.backing_off_until is None
            and state.held_priority is None
            for state in self._states.values()
        )

    def limit(self, count: int | None, lane: Hashable | None = None) -> None:
        """Allow at most `count` keys in progress, for one lane or for all together. None means no limit.

        Keys that are already in progress continue.
        """
        self._ready.limit(count, lane)
        self._wake_all()

    def limit_rate(self, per_second: float, lane: Hashable) -> None:
        """Allow at most this many keys of the lane to start per second, on average. Infinity means no limit.

        The keys of one second may start at once.
        """
        self._ready.limit_rate(None if isinf(per_second) else TokenBucket(per_second, max(1.0, per_second)), lane)
        self._wake_all()

    def set_backoff(self, base: float, maximum: float, lane: Hashable) -> None:
        """Delay the keys of the lane after errors by `base` seconds, doubling up to `maximum`."""
        self._backoffs[lane] = base, maximum

    def add(self, key: K, *, priority: Priority = Priority.FRESH, after: float = 0.0) -> None:
        """Make the key ready, now or in `after` seconds. After `close`, the call is ignored."""
        if self._closed:
            return
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _State()
        if after > 0:
            when = asyncio.get_running_loop().time() + after
            if state.delayed_until is None:
                state.delayed_priority = priority
            else:
                state.delayed_priority = max(priority, state.delayed_priority)
            if state.delayed_until is None or when < state.delayed_until:
                state.delayed_until = when
                self._schedule(when, key)
        else:
            self._request_run(key, state, priority)

    async def get(self) -> K:
        """Wait for the next key. The caller must give the key back with `done`, `retry` or `conflict`.

        Raises QueueClosed if the queue is closed and empty.
        """
        loop = asyncio.get_running_loop()
        while True:
            taken = self._ready.take(loop.time())
            if taken is not None:
                break
            if self._closed and not self._ready.is_busy:
                raise QueueClosed("the queue is closed")
            self._wake_for_rate()
            getter = loop.create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                if getter.done() and not getter.cancelled():
                    self._wake_getter()  # pass on the wake-up that this getter cannot use
                elif getter in self._getters:
                    self._getters.remove(getter)
                raise
        key, priority, since = taken
        state = self._states[key]
        state.ready, state.priority, state.in_progress_since = False, priority, loop.time()
        if self._observer:
            self._observer.taken(self._lane(key), state.in_progress_since - since)
        return key

    def done(self, key: K) -> None:
        """Give back a key that was processed successfully."""
        state = self._finish(key, Outcome.DONE)
        state.errors = state.conflicts = 0
        state.early_looks = None
        self._finish_run(key, state)

    def retry(self, key: K) -> float:
        """Give back a key that failed. The key becomes ready again after a back-off. Return its seconds."""
        state = self._finish(key, Outcome.ERROR)
        state.errors += 1
        base, maximum = self._backoffs.get(self._lane(key), (ERROR_BASE, ERROR_CAP))
        delay = backoff.delay(state.errors, base, maximum, self._world)
        self._back_off(key, state, delay)
        state.can_be_cut = True
        return delay

    def conflict(self, key: K) -> float:
        """Give back a key whose write conflicted with another writer. Return the seconds until it is ready again."""
        state = self._finish(key, Outcome.CONFLICT)
        state.conflicts += 1
        delay = backoff.delay(state.conflicts, CONFLICT_BASE, CONFLICT_CAP, self._world)
        self._back_off(key, state, delay)
        state.can_be_cut = False
        return delay

    def is_in_progress(self, key: K) -> bool:
        """Return whether a worker has the key."""
        state = self._states.get(key)
        return state is not None and state.in_progress_since is not None

    def can_cut_backoff(self, key: K) -> bool:
        """Return whether the key backs off after an error."""
        state = self._states.get(key)
        return state is not None and state.backing_off_until is not None and state.can_be_cut

    def cut_backoff(self, key: K) -> None:
        """Make a key ready early that backs off after an error. In any other state, the call is ignored."""
        if not self.can_cut_backoff(key):
            return
        state, now = self._states[key], asyncio.get_running_loop().time()
        if state.early_looks is None:
            state.early_looks = TokenBucket(EARLY_LOOKS_PER_SECOND, EARLY_LOOKS_AT_ONCE)
        when = state.early_looks.available_at(now)
        assert state.backing_off_until is not None
        if when >= state.backing_off_until:
            return
        state.early_looks.take(when)
        if when > now:
            state.backing_off_until = when
            self._schedule(when, key)
        else:
            state.backing_off_until = None
            self._make_ready(key, state, state.priority)

    def hold(self, key: K, seconds: float) -> None:
        """Keep a key that is in progress from becoming ready again for `seconds`. A second call replaces the first.

        Raises ValueError if the key is not in progress. After `close`, the call is ignored.
        """
        if not self.is_in_progress(key):
            raise ValueError(f"{key!r} is not in progress: hold a key before it is returned")
        if not self._closed:
            state = self._states[key]
            state.held_until = asyncio.get_running_loop().time() + seconds
            self._schedule(state.held_until, key)

    def release(self, key: K) -> None:
        """End the hold of a key. If there is none, the call is ignored."""
        state = self._states.get(key)
        if state is not None and state.held_until is not None:
            self._end_hold(key, state)

    async def close(self, *, drain: bool = True) -> None:
        """Close the queue to new keys, and wait until no key is in progress.

        With `drain`, keys that are ready are still processed. Delayed keys, and keys that back off or are held, are
        always dropped. Bound the wait with `asyncio.timeout`.
        """
        self._closed = True
        if self._timer:
            self._timer.cancel()
        self._due.clear()
        for key, state in list(self._states.items()):
            state.backing_off_until = state.delayed_until = state.held_until = state.held_priority = None
            if not drain:
                state.rerun_priority, state.ready = None, False
            self._drop_if_idle(key, state)
        if not drain:
            self._ready.clear()
        self._drained = self._drained or asyncio.Event()
        self._check_drained()
        await self._drained.wait()

    # State transitions of a key. Each method leaves the state consistent.

    def _request_run(self, key: K, state: _State, priority: Priority) -> None:
        """Make the key ready as soon as it is not in progress and not backing off."""
        if state.in_progress_since is not None:
            state.rerun_priority = priority if state.rerun_priority is None else max(priority, state.rerun_priority)
        elif state.backing_off_until is not None:
            state.priority = max(priority, state.priority)
        else:
            self._make_ready(key, state, priority)

    def _make_ready(self, key: K, state: _State, priority: Priority) -> None:
        if state.held_until is not None:
            state.held_priority = priority if state.held_priority is None else max(priority, state.held_priority)
            return
        lane = self._lane(key)
        self._ready.put(lane, key, priority, asyncio.get_running_loop().time())
        if not state.ready:
            state.ready = True
            self._wake_getter()
            if self._observer:
                self._observer.added(lane)

    def _finish(self, key: K, outcome: Outcome) -> _State:
        state = self._states.get(key)
        if state is None or state.in_progress_since is None:
            raise ValueError(f"{key!r} is not in progress: return a key once, after get() returned it")
        took, state.in_progress_since = asyncio.get_running_loop().time() - state.in_progress_since, None
        lane = self._lane(key)
        self._ready.release(lane)
        if self._observer:
            self._observer.finished(lane, took, outcome)
        return state

    def _finish_run(self, key: K, state: _State) -> None:
        if state.rerun_priority is not None:
            rerun_priority, state.rerun_priority = state.rerun_priority, None
            self._make_ready(key, state, rerun_priority)
        else:
            self._drop_if_idle(key, state)
        if not state.ready:
            self._wake_getter()  # a getter may wait for a limit
        self._check_drained()

    def _back_off(self, key: K, state: _State, seconds: float) -> None:
        """Keep the key from running for `seconds`, also if it is added again meanwhile."""
        if self._closed:
            self._finish_run(key, state)
            return
        if state.rerun_priority is not None:
            state.priority, state.rerun_priority = max(state.rerun_priority, state.priority), None
        state.backing_off_until = asyncio.get_running_loop().time() + seconds
        self._schedule(state.backing_off_until, key)
        self._wake_getter()

    def _end_hold(self, key: K, state: _State) -> None:
        priority, state.held_until, state.held_priority = state.held_priority, None, None
        if priority is not None:
            self._make_ready(key, state, priority)
        self._drop_if_idle(key, state)

    def _drop_if_idle(self, key: K, state: _State) -> None:
        if state.is_idle:
            self._states.pop(key, None)

    def _check_drained(self) -> None:
        if self._drained and not self._ready.is_busy:
            self._drained.set()
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
        now = self._timer.when()  # the event loop may call this a clock tick early
        while self._due and self._due[0][0] <= now:
            when, _, key = heapq.heappop(self._due)
            state = self._states.get(key)
            if state is None:
                continue
            if state.backing_off_until == when:
                state.backing_off_until = None
                self._make_ready(key, state, state.priority)
            if state.delayed_until == when:
                state.delayed_until = None
                self._request_run(key, state, state.delayed_priority)
            if state.held_until == when:
                self._end_hold(key, state)
        self._arm()

    def _wake_for_rate(self) -> None:
        """Wake the getters when the rate of a lane allows its next key."""
        loop = asyncio.get_running_loop()
        if self._rate_timer is not None:
            self._rate_timer.cancel()
        when = self._ready.next_at(loop.time())
        self._rate_timer = None if when is None else loop.call_at(when, self._wake_all)

    # Each key that becomes ready or is returned wakes one getter, so no getter sleeps while there is a key for it.

    def _wake_getter(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _wake_all(self) -> None:
        for _ in range(len(self._getters)):
            self._wake_getter()


def _describe_state(state: _State, now: float) -> KeyState | None:
    if state.in_progress_since is not None:
        return KeyState("processing", now - state.in_progress_since)
    if state.ready:
        return KeyState("ready", 0.0)
    if state.held_until is not None and state.held_priority is not None:
        return KeyState("held", max(0.0, state.held_until - now))
    if state.backing_off_until is not None:
        return KeyState("backoff", max(0.0, state.backing_off_until - now))
    if state.delayed_until is not None:
        return KeyState("delayed", max(0.0, state.delayed_until - now))
    return None
