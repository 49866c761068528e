"""How many reconciles run at once: as many as allowed, fewer when the server says that it is too much."""

from collections.abc import Callable

from fairlead.api.world import World

# Halved on a 429, at most once a second (one burst is one signal); one more for each second without another.
_STEP = 1.0


class AdaptiveConcurrency:
    """Additive increase, multiplicative decrease, the way networks share a line.

    `observe` is a Client's hook; `limit` is told each new bound.
    """

    def __init__(self, most: int, world: World, limit: Callable[[int], None]) -> None:
        self._most = self.allowed = most
        self._clock = world.clock
        self._limit = limit
        self._changed = float("-inf")

    def observe(self, code: str) -> None:
        """A request was answered so."""
        now = self._clock.monotonic()
        if now - self._changed < _STEP:
            return
        if code == "429":
            allowed = max(1, self.allowed // 2)
        elif self.allowed < self._most:
            allowed = self.allowed + 1
        else:
            return
        self._changed = now
        if allowed != self.allowed:
            self.allowed = allowed
            self._limit(allowed)
