"""The world a process runs in: its clock and its chance, injected everywhere.

Server, client and runtime read time and randomness only from the World they are given, and wait only on the running
asyncio loop. So a whole world (servers, controllers, foreign writers, time) can run inside one deterministic process.
This module is the only one that touches `time` and `random`; a test holds that.
"""

import time
from dataclasses import dataclass, field
from random import Random, SystemRandom
from typing import Protocol


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> float:
        """Seconds since the epoch, by the wall; may jump."""

    def monotonic(self) -> float:
        """Seconds that never go back and count suspend; for leases and durations."""


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        # Linux's CLOCK_MONOTONIC stops while the machine sleeps; a lease does not.
        boot = getattr(time, "CLOCK_BOOTTIME", None)
        return time.monotonic() if boot is None else time.clock_gettime(boot)


@dataclass(frozen=True)
class World:
    """A clock and a random source. `World()` is the real one."""

    clock: Clock = field(default_factory=SystemClock)
    random: Random = field(default_factory=SystemRandom)

    @classmethod
    def seeded(cls, clock: Clock, seed: int) -> "World":
        """A world whose every choice follows from `seed`."""
        return cls(clock, Random(seed))  # noqa: S311 - repeatable on purpose

    def uid(self) -> str:
        """A random (version 4) UUID, from this world's random source."""
        bits = self.random.getrandbits(128) & ~(0xF000 << 64 | 0xC000 << 48) | 4 << 76 | 0x8000 << 48
        text = f"{bits:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
