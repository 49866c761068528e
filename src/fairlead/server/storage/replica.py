"""A lagging replica: the store as another API server with a delayed watch cache would see it."""

import asyncio
from bisect import bisect_right

from fairlead.api.world import Clock
from fairlead.server.storage.store import Store


class Commits:
    """The commit time of each version, as far back as the replica with the longest lag needs it."""

    def __init__(self, clock: Clock, store: Store, longest: float) -> None:
        self.clock = clock
        self._store = store
        self._longest = longest
        self._times = [float("-inf")]
        self._versions = [store.version]

    def record(self) -> None:
        """Record that the store has a new version now."""
        now = self.clock.monotonic()
        self._times.append(now)
        self._versions.append(self._store.version)
        if len(self._times) > 1024 and self._times[512] < now - self._longest:
            del self._times[:512], self._versions[:512]

    def version_at(self, moment: float) -> int:
        """Return the version that the store had at a moment."""
        return self._versions[max(0, bisect_right(self._times, moment) - 1)]

    def commit_time(self, version: int) -> float:
        """Return when a version was committed: -inf if that is not known any more, inf if it is not committed yet."""
        index = bisect_right(self._versions, version - 1)
        return self._times[index] if index < len(self._times) else float("inf")


class Replica:
    """The store as it was `lag` seconds ago, for stale reads and for watches. Its version never decreases."""

    def __init__(self, commits: Commits, lag: float) -> None:
        self._commits = commits
        self._lag = lag

    @property
    def version(self) -> int:
        """The version that the replica has reached."""
        return self._commits.version_at(self._commits.clock.monotonic() - self._lag)

    async def wait_for(self, version: int) -> None:
        """Wait until the replica has reached a version."""
        while self.version < version:
            due = self._commits.commit_time(version) + self._lag - self._commits.clock.monotonic()
            # A version that is not committed yet may be committed at any time, and is visible one lag later.
            await asyncio.sleep(max(0.001, min(due, self._lag)))
