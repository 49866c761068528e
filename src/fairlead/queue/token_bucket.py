"""A limit of events per second that allows short bursts."""


class TokenBucket:
    """Allows `rate` events per second on average, and up to `burst` of them at once.

    Guarantees: in any `t` seconds, at most `burst + rate * t` events are taken at or after the time that
    `available_at` returned.

    Example:
        bucket = TokenBucket(rate=1.0, burst=3)
        if bucket.available_at(now) <= now:
            bucket.take(now)
    """

    __slots__ = ("_full_at", "_interval", "_tolerance")

    def __init__(self, rate: float, burst: float) -> None:
        self._interval = 1.0 / rate
        self._tolerance = (burst - 1) * self._interval
        self._full_at = float("-inf")  # when the bucket will have refilled, if nothing more is taken

    def available_at(self, now: float) -> float:
        """Return when the next event is allowed: `now`, or later."""
        return max(now, self._full_at - self._tolerance)

    def take(self, at: float) -> None:
        """Count an event at that time."""
        self._full_at = max(self._full_at, at) + self._interval
