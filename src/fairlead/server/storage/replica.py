"""A lagging replica: the store as seen by another API server whose watch cache is delayed."""

import asyncio
from bisect import bisect_right

from fairlead.api.world import Clock
from fairlead.server.storage.store import Store


class Commits:
    """The commit times of the recent versions, as far back as the replica with the longest lag needs them."""

    def __init__(self, clock: Clock, store: Store, longest: float) -> None:
        self.clock = clock
        self._store = store
        self._longest = longest
        self._times = [float("-inf")]
        self._versions = [store.version]

    def record(self) -> None:
        """Record the current time as the commit time of the store's newest version."""
        now = self.clock.monotonic()
        self._times.append(now)
        self._versions.append(self._store.version)
        if len(self._times) > 1024 and self._times[512] < now - self._longest:
            del self._times[:512], self._versions[:512]

    def version_at(self, moment: float) -> int:
        """Return the version that the store had at a time of the monotonic clock."""
        return self._versions[max(0, bisect_right(self._times, moment) - 1)]

    def commit_time(self, version: int) -> float:
        """Return when a version was committed: -inf if the time is forgotten, inf if the version does not exist yet."""
        index = bisect_right(self._versions, version - 1)
        return self._times[index] if index < len(self._times) else float("inf")


class Replica:
    """The store as it was `lag` seconds ago, for stale reads and watches. The version of a replica never decreases."""

    def __init__(self, commits: Commits, lag: float) -> None:
        self._commits = commits
        self._lag = lag

    @property
    def version(self) -> int:
        """The newest version that a client of this replica can see."""
        return self._commits.version_at(self._commits.clock.monotonic() - self._lag)

    async def wait_for(self, version: int) -> None:
        """Wait until clients of this replica can see a version."""
        while self.version < version:
            due = self._commits.commit_time(version) + self._lag - self._commits.clock.monotonic()
            # A version that is not committed yet may be committed at any time, and is visible one lag later.
            await asyncio.sleep(max(0.001, min(due, self._lag)))
