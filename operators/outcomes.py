"""What a telling of a story cost, and how it is told: on a stage in virtual time, in real time, or on a real server."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

import fairlead as fl
from fairlead.client.transport import Transport
from fairlead.operators.leaving import leave, see_through
from fairlead.operators.stage import Bed, Count, Mark, Stage, Way

SYSTEMS = ("httpproxy", "seinode", "projects", "pulsar", "orphans")


def bed_of(system: str) -> Bed | None:
    """The test bed of a system, if it tells its story on a stage."""
    name = f"{__package__}.{system}.bed"
    if find_spec(f"{__package__}.{system}") is None or find_spec(name) is None:
        return None
    module = import_module(name)
    return cast("Bed", module) if hasattr(module, "play") else None


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
