"""The keys that may be taken now, in the order in which they should be."""

from collections import OrderedDict, deque
from collections.abc import Hashable
from enum import IntEnum
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Priority(IntEnum):
    """Why a key is looked at: something happened, or only to make sure (resync, the first list after a start)."""

    RESYNC = 0
    FRESH = 1


# A resync that waited this long gets every eighth turn, so that a steady stream of fresh keys cannot hold it off for
# ever; a backlog of resyncs still cannot hold off fresh keys.
PATIENCE = 30.0
TURN = 8


class _Lane(Generic[K]):
    """The ready keys of one controller, oldest first, and how many of its keys are out."""

    __slots__ = ("keys", "limit", "name", "out")

    def __init__(self, name: Hashable) -> None:
        self.name = name
        # per priority: key -> when it became ready
        self.keys: tuple[OrderedDict[K, float], OrderedDict[K, float]] = (OrderedDict(), OrderedDict())
        self.limit: int | None = None
        self.out = 0


class Ready(Generic[K]):
    """Ready keys by lane: fresh before resync, lanes take turns, first come first served within a lane.

    A lane (or all of them together) with as many keys out as its limit allows has nothing to give.
    """

    def __init__(self) -> None:
        self._lanes: dict[Hashable, _Lane[K]] = {}
        self._rota: deque[_Lane[K]] = deque()  # the lane whose turn it is stands first
        self._limit: int | None = None
        self._out = 0
        self._fresh_in_a_row = 0

    def _lane(self, name: Hashable) -> _Lane[K]:
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = _Lane(name)
            self._rota.append(lane)
        return lane

    def limit(self, out: int | None, lane: Hashable | None) -> None:
        if lane is None:
            self._limit = out
        else:
            self._lane(lane).limit = out

    @property
    def busy(self) -> bool:
        """Something is ready or out."""
        return self._out > 0 or self.depth() > 0

    def depth(self, lane: Hashable | None = None, priority: Priority | None = None) -> int:
        lanes = self._lanes.values() if lane is None else [self._lane(lane)]
        wanted = Priority if priority is None else (priority,)
        return sum(len(each.keys[one]) for each in lanes for one in wanted)

    def put(self, lane: Hashable, key: K, priority: Priority, now: float) -> None:
        """Make a key ready. One that is ready already keeps its place, or moves up when it got more urgent."""
        keys = self._lane(lane).keys
        if key in keys[Priority.FRESH]:
            return
        if priority is Priority.FRESH:
            since = keys[Priority.RESYNC].pop(key, now)
            keys[Priority.FRESH][key] = since
        else:
            keys[Priority.RESYNC].setdefault(key, now)

    def take(self, now: float) -> tuple[K, Priority, float] | None:
        """The next key, its priority and since when it was ready; it counts as out until `back`."""
        if self._limit is not None and self._out >= self._limit:
            return None
        if self._fresh_in_a_row >= TURN - 1:
            taken = self._take(Priority.RESYNC, now, ready_before=now - PATIENCE)
            if taken is not None:
                return taken
        return self._take(Priority.FRESH, now) or self._take(Priority.RESYNC, now)

    def _take(
        self, priority: Priority, now: float, ready_before: float | None = None
    ) -> tuple[K, Priority, float] | None:
        for turn, lane in enumerate(self._rota):
            keys = lane.keys[priority]
            if not keys or (lane.limit is not None and lane.out >= lane.limit):
                continue
            key, since = keys.popitem(last=False)
            if ready_before is not None and since > ready_before:
                keys[key] = since
                keys.move_to_end(key, last=False)
                continue
            lane.out += 1
            self._out += 1
            del self._rota[turn]
            self._rota.append(lane)
            self._fresh_in_a_row = self._fresh_in_a_row + 1 if priority is Priority.FRESH else 0
            return key, priority, since
        return None

    def back(self, lane: Hashable) -> None:
        """A key of this lane that was out no longer is."""
        self._lane(lane).out -= 1
        self._out -= 1

    def clear(self) -> None:
        for lane in self._rota:
            for keys in lane.keys:
                keys.clear()
