"""How long to wait before the next try."""

from fairlead.api.world import World

_DOUBLINGS = 64  # more than any cap can use; keeps the power a small number after a year of failures


def delay(failures: int, base: float, cap: float, world: World) -> float:
    """Seconds to wait after that many failures in a row (at least one): doubling, jittered, within [base, cap].

    The jitter is the upper half of each step: two that failed together part, and neither comes back before the step
    below would have let it.
    """
    step = min(cap, base * 2.0 ** min(failures, _DOUBLINGS))
    return world.random.uniform(max(base, step / 2), step)
