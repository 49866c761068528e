"""Exponential back-off with jitter."""

from fairlead.api.world import World

_DOUBLINGS = 64  # no cap needs more doublings; this keeps the power small after a year of failures


def delay(failures: int, base: float, cap: float, world: World) -> float:
    """Return the seconds to wait before the next retry, after `failures` failures in a row.

    The result is between `base` and `cap` seconds. `failures` is at least 1.

    The longest delay doubles with each failure. The returned delay is random between half of that value and all of it,
    so that two clients that failed together do not retry together.
    """
    step = min(cap, base * 2.0 ** min(failures, _DOUBLINGS))
    return world.random.uniform(max(base, step / 2), step)
