"""What a telling of a story cost, and how it is told: on a stage in virtual time, in real time, or on a real server."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

import fairlead as fl
from fairlead.client.transport import Transport
from fairlead.testing.demo.cleanup import leave, see_through
from fairlead.testing.demo.stage import Bed, Count, Mark, Stage, Way

ENTRY_POINTS = "fairlead.demo"
"""The entry point group in which a distribution names its table of demos: system -> module."""


def demo_modules() -> dict[str, str]:
    """The installed demos: system -> module, in the order of their distribution's table."""
    return {name: module for point in entry_points(group=ENTRY_POINTS) for name, module in point.load().items()}


def load_demo(system: str) -> Bed:
    """The demo of a system that `demo_modules` lists."""
    return cast("Bed", import_module(demo_modules()[system]))


@dataclass(frozen=True)
class Outcome:
    """One telling: what the server answered, when each object was done, and what was lost."""

    counted: Count
    seconds: list[float]
    watch_events: int
    losses: list[str]
    stuck: list[str]
    marks: list[Mark]

    @property
    def requests(self) -> int:
        return sum(self.counted.values())

    @property
    def already_exists(self) -> int:
        return sum(n for (verb, _, code), n in self.counted.items() if code == 409 and verb == "POST")

    @property
    def conflicts(self) -> int:
        return sum(n for (verb, _, code), n in self.counted.items() if code == 409 and verb != "POST")

    def done(self, share: float) -> float | None:
        """Seconds after which this share was done; None when nothing was."""
        return self.seconds[min(len(self.seconds) - 1, int(share * len(self.seconds)))] if self.seconds else None

    def json(self) -> dict[str, Any]:
        """In the form of `fairlead demo --json`."""
        return {
            "requests": self.requests,
            "conflicts": self.conflicts,
            "already_exists": self.already_exists,
            "watch_events": self.watch_events,
            "seconds_to_done": {"p50": self.done(0.5), "p99": self.done(0.99), "last": self.done(1.0)},
            "lost": len(self.losses),
            "stuck": len(self.stuck),
            "by_verb": [
                {"verb": verb, "resource": resource, "code": code, "count": n}
                for (verb, resource, code), n in sorted(self.counted.items())
            ],
        }


async def tell(
    bed: Bed,
    way: Way,
    scale: int,
    door: Callable[[], Transport],
    world: fl.World,
    *,
    namespace: str | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Outcome:
    """Play the story in one way on a server that is reached by `door`, and answer what it cost.

    With a `namespace` the server is one that goes on afterwards: the story is played there, over the network as it is,
    and leaves no object behind, also when it is cancelled once.
    """
    stage = Stage(door, world, namespace or "default", network=namespace is None, progress=progress)
    try:
        if namespace:
            await stage.admin.create(fl.Namespace(namespace))
        await bed.play(stage, way, scale)
        counted = await stage.counted()
    finally:
        try:
            if namespace:
                await see_through(leave(stage.admin, namespace, stage.resources))
        finally:
            await stage.close()
    return Outcome(counted, sorted(stage.moments.values()), stage.watch_events, stage.losses, stage.stuck, stage.marks)
