"""Exponential back-off with jitter."""

from fairlead.api.world import World

_DOUBLINGS = 64  # no cap needs more doublings; this keeps the power small after a year of failures


def delay(failures: int, base: float, cap: float, world: World) -> float:
    """Return the seconds to wait after `failures` failures in a row (at least one), within [base, cap].

    The delay doubles with each failure. The jitter is the upper half of each step, so that two clients that failed
    together retry apart, and none retries sooner than the previous step allows.
    """
    step = min(cap, base * 2.0 ** min(failures, _DOUBLINGS))
    return world.random.uniform(max(base, step / 2), step)
