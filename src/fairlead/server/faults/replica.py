"""A replica that lags: what a server beside this one would know, whose view of the store is some seconds old."""

import asyncio
from bisect import bisect_right

from fairlead.api.world import Clock
from fairlead.server.storage.store import Store


class Commits:
    """When each version was committed, for as long as the laggard of a plan's replicas needs to know."""

    def __init__(self, clock: Clock, store: Store, longest: float) -> None:
        self.clock = clock
        self._store = store
        self._longest = longest
        self._times = [float("-inf")]
        self._versions = [store.version]

    def note(self) -> None:
        """The store has a new version now."""
        now = self.clock.monotonic()
        self._times.append(now)
        self._versions.append(self._store.version)
        if len(self._times) > 1024 and self._times[512] < now - self._longest:
            del self._times[:512], self._versions[:512]

    def at(self, moment: float) -> int:
        """The version that the store had at a moment."""
        return self._versions[max(0, bisect_right(self._times, moment) - 1)]

    def when(self, version: int) -> float:
        """When a version was committed; long ago where that is forgotten. One in the future never was."""
        at = bisect_right(self._versions, version - 1)
        return self._times[at] if at < len(self._times) else float("inf")


class Replica:
    """The store as it was `lag` seconds ago, for reads that may be stale and for watches. It never goes back."""

    def __init__(self, commits: Commits, lag: float) -> None:
        self._commits = commits
        self._lag = lag

    @property
    def version(self) -> int:
        """The version it has got to."""
        return self._commits.at(self._commits.clock.monotonic() - self._lag)

    async def reached(self, version: int) -> None:
        """Wait until it has got to a version."""
        while self.version < version:
            due = self._commits.when(version) + self._lag - self._commits.clock.monotonic()
            # one in the future may come at any time, and then be known a lag later
            await asyncio.sleep(max(0.001, min(due, self._lag)))
