"""The clock and the random source of a process, injected everywhere.

Server, client and runtime read time and randomness only from the World they are given, and wait only on the running
asyncio loop. So servers, controllers, other writers and time can run inside one deterministic process. This module is
the only one that uses `time` and `random`; a test checks that.
"""

import time
from dataclasses import dataclass, field
from random import Random, SystemRandom
from typing import Protocol


class Clock(Protocol):
    """A source of time."""

    def now(self) -> float:
        """Return the seconds since the epoch. They may jump."""

    def monotonic(self) -> float:
        """Return seconds that never decrease and include suspends, for leases and durations."""


class SystemClock:
    """The clocks of the machine."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        # Linux's CLOCK_MONOTONIC stops while the machine is suspended; a lease does not.
        boot = getattr(time, "CLOCK_BOOTTIME", None)
        return time.monotonic() if boot is None else time.clock_gettime(boot)


@dataclass(frozen=True)
class World:
    """A clock and a random source. `World()` uses those of the machine."""

    clock: Clock = field(default_factory=SystemClock)
    random: Random = field(default_factory=SystemRandom)

    @classmethod
    def seeded(cls, clock: Clock, seed: int) -> "World":
        """Return a world whose random values are determined by `seed`."""
        return cls(clock, Random(seed))  # noqa: S311 - repeatable on purpose

    def uid(self) -> str:
        """Return a random (version 4) UUID from this world's random source."""
        bits = self.random.getrandbits(128) & ~(0xF000 << 64 | 0xC000 << 48) | 4 << 76 | 0x8000 << 48
        text = f"{bits:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
