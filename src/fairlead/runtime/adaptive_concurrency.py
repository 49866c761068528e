"""Limit the number of concurrent passes: the configured maximum, and fewer while the server answers 429."""

from collections.abc import Callable

from fairlead.api.world import World

# A 429 halves the limit, at most once a second, because a burst is one signal. Each second without one adds one.
_STEP = 1.0


class AdaptiveConcurrency:
    """A limit on concurrent passes with additive increase and multiplicative decrease, like TCP congestion control.

    A Client calls `observe` after each response. The class calls `set_limit` with each new limit.
    """

    def __init__(self, maximum: int, world: World, set_limit: Callable[[int], None]) -> None:
        self._maximum = self.allowed = maximum
        self._clock = world.clock
        self._set_limit = set_limit
        self._changed = float("-inf")

    def observe(self, code: str) -> None:
        """Lower the limit after a 429 response, and raise it slowly after other responses."""
        now = self._clock.monotonic()
        if now - self._changed < _STEP:
            return
        if code == "429":
            allowed = max(1, self.allowed // 2)
        elif self.allowed < self._maximum:
            allowed = self.allowed + 1
        else:
            return
        self._changed = now
        if allowed != self.allowed:
            self.allowed = allowed
            self._set_limit(allowed)
