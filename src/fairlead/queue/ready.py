"""The keys that are ready, in the order in which workers get them."""

from collections import OrderedDict, deque
from collections.abc import Hashable
from enum import IntEnum
from typing import Generic, TypeVar

from fairlead.queue.token_bucket import TokenBucket

K = TypeVar("K", bound=Hashable)


class Priority(IntEnum):
    """The priority of a key: FRESH after a change of the object, RESYNC for the first list and periodic checks."""

    RESYNC = 0
    FRESH = 1


# A resync that waited this long gets every eighth turn, so that a steady stream of fresh keys cannot starve it. A
# backlog of resyncs cannot starve fresh keys.
RESYNC_PATIENCE = 30.0
RESYNC_TURN = 8


class _Lane(Generic[K]):
    """The ready keys of one controller, oldest first, and the number of its keys that are in progress."""

    __slots__ = ("in_progress", "keys", "limit", "name", "rate")

    def __init__(self, name: Hashable) -> None:
        self.name = name
        # per priority: key -> when it became ready
        self.keys: tuple[OrderedDict[K, float], OrderedDict[K, float]] = (OrderedDict(), OrderedDict())
        self.limit: int | None = None
        self.rate: TokenBucket | None = None
        self.in_progress = 0

    def available_at(self, now: float) -> float | None:
        """Return when the limits of the lane allow its next key; None if a key must come back first."""
        if self.limit is not None and self.in_progress >= self.limit:
            return None
        return now if self.rate is None else self.rate.available_at(now)


class ReadyKeys(Generic[K]):
    """The ready keys of all lanes (controllers). Lanes take turns, and fresh keys come before resyncs.

    Within a lane, the key that has waited longest comes first. A lane that has reached its limit of keys in progress,
    or of keys per second, is skipped. All lanes together have a limit of keys in progress too.
    """

    def __init__(self) -> None:
        self._lanes: dict[Hashable, _Lane[K]] = {}
        self._rotation: deque[_Lane[K]] = deque()  # the first lane has the next turn
        self._limit: int | None = None
        self._in_progress = 0
        self._fresh_in_a_row = 0

    def _lane(self, name: Hashable) -> _Lane[K]:
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = _Lane(name)
            self._rotation.append(lane)
        return lane

    def limit(self, count: int | None, lane: Hashable | None) -> None:
        if lane is None:
            self._limit = count
        else:
            self._lane(lane).limit = count

    def limit_rate(self, rate: TokenBucket | None, lane: Hashable) -> None:
        self._lane(lane).rate = rate

    @property
    def _is_full(self) -> bool:
        return self._limit is not None and self._in_progress >= self._limit

    @property
    def is_busy(self) -> bool:
        """Whether any key is ready or in progress."""
        return self._in_progress > 0 or self.depth() > 0

    def depth(self, lane: Hashable | None = None, priority: Priority | None = None) -> int:
        lanes = self._lanes.values() if lane is None else [self._lane(lane)]
        priorities = Priority if priority is None else (priority,)
        return sum(len(lane.keys[priority]) for lane in lanes for priority in priorities)

    def put(self, lane: Hashable, key: K, priority: Priority, now: float) -> None:
        """Make a key ready. A key that is already ready keeps its place, or moves up if it became fresh."""
        keys = self._lane(lane).keys
        if key in keys[Priority.FRESH]:
            return
        if priority is Priority.FRESH:
            since = keys[Priority.RESYNC].pop(key, now)
            keys[Priority.FRESH][key] = since
        else:
            keys[Priority.RESYNC].setdefault(key, now)

    def take(self, now: float) -> tuple[K, Priority, float] | None:
        """Return the next key, its priority and the time when it became ready, or None.

        The key is in progress until `release` is called.
        """
        if self._is_full:
            return None
        if self._fresh_in_a_row >= RESYNC_TURN - 1:
            taken = self._take(Priority.RESYNC, now, ready_before=now - RESYNC_PATIENCE)
            if taken is not None:
                return taken
        return self._take(Priority.FRESH, now) or self._take(Priority.RESYNC, now)

    def _take(
        self, priority: Priority, now: float, ready_before: float | None = None
    ) -> tuple[K, Priority, float] | None:
        for turn, lane in enumerate(self._rotation):
            keys = lane.keys[priority]
            if not keys or lane.available_at(now) != now:
                continue
            key, since = keys.popitem(last=False)
            if ready_before is not None and since > ready_before:
                keys[key] = since
                keys.move_to_end(key, last=False)
                continue
            if lane.rate is not None:
                lane.rate.take(now)
            lane.in_progress += 1
            self._in_progress += 1
            del self._rotation[turn]
            self._rotation.append(lane)
            self._fresh_in_a_row = self._fresh_in_a_row + 1 if priority is Priority.FRESH else 0
            return key, priority, since
        return None

    def next_at(self, now: float) -> float | None:
        """Return when the rate of a lane allows its next key. None if no key waits for a rate only."""
        if self._is_full:
            return None
        waiting = (lane.available_at(now) for lane in self._rotation if any(lane.keys))
        return min((when for when in waiting if when is not None), default=None)

    def release(self, lane: Hashable) -> None:
        """Count one key of the lane as no longer in progress."""
        self._lane(lane).in_progress -= 1
        self._in_progress -= 1

    def clear(self) -> None:
        for lane in self._rotation:
            for keys in lane.keys:
                keys.clear()
