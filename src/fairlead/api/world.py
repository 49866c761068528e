"""The clock and the random source of a process, passed to every part that needs them.

Server, client and runtime read time and randomness only from their World, and wait only on the running asyncio loop.
Tests can therefore run servers, controllers and simulated time in one deterministic process. No other module uses
`time` and `random`; a test checks that.
"""

import time
from dataclasses import dataclass, field
from random import Random, SystemRandom
from typing import Protocol


class Clock(Protocol):
    """A source of time."""

    def now(self) -> float:
        """Return the seconds since the epoch. The value jumps when the system time is changed."""

    def monotonic(self) -> float:
        """Return seconds from any starting point that never decrease. They also count while the machine sleeps."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        # Linux's CLOCK_MONOTONIC stops while the machine is suspended; a lease does not.
        boot = getattr(time, "CLOCK_BOOTTIME", None)
        return time.monotonic() if boot is None else time.clock_gettime(boot)


@dataclass(frozen=True)
class World:
    """A clock and a random source. `World()` uses the clock and the random source of the machine."""

    clock: Clock = field(default_factory=SystemClock)
    random: Random = field(default_factory=SystemRandom)

    @classmethod
    def seeded(cls, clock: Clock, seed: int) -> "World":
        """Return a World with the given clock, whose random values depend only on `seed`."""
        return cls(clock, Random(seed))  # noqa: S311 - repeatable on purpose

    def uid(self) -> str:
        """Return a random (version 4) UUID from this world's random source."""
        bits = self.random.getrandbits(128) & ~(0xF000 << 64 | 0xC000 << 48) | 4 << 76 | 0x8000 << 48
        hexadecimal = f"{bits:032x}"
        return f"{hexadecimal[:8]}-{hexadecimal[8:12]}-{hexadecimal[12:16]}-{hexadecimal[16:20]}-{hexadecimal[20:]}"
