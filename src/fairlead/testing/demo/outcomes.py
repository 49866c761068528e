"""Play a demo, and compute the figures of the run: requests, conflicts, times, losses."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

import fairlead as fl
from fairlead.api.history import Record
from fairlead.testing.demo.cleanup import finish_despite_cancel, remove_demo_objects
from fairlead.testing.demo.demo_run import Connect, Demo, DemoRun, ResponseCounts, Variant

ENTRY_POINTS = "fairlead.demo"
"""The entry point group. Each entry point is a dict from the name of a system to the module of its demo."""


def demo_modules() -> dict[str, str]:
    """Return the module of each installed demo by system: {"httpproxy": "fairlead_operators.httpproxy.demo", …}."""
    return {name: module for point in entry_points(group=ENTRY_POINTS) for name, module in point.load().items()}


def load_demo(system: str) -> Demo:
    """Import and return the demo module of a system."""
    return cast("Demo", import_module(demo_modules()[system]))


@dataclass(frozen=True)
class Outcome:
    """The figures of one run: response counts, the seconds until each object was done, losses and stuck objects."""

    responses: ResponseCounts
    seconds: list[float]
    watch_events: int
    losses: list[str]
    stuck: list[str]
    records: list[Record]

    @property
    def requests(self) -> int:
        """The number of requests."""
        return sum(self.responses.values())

    @property
    def already_exists(self) -> int:
        """The number of 409 responses with the reason AlreadyExists, which are those to POST."""
        return sum(n for (verb, _, code), n in self.responses.items() if code == 409 and verb == "POST")

    @property
    def conflicts(self) -> int:
        """The number of 409 responses with the reason Conflict, which are those to PUT, PATCH and DELETE."""
        return sum(n for (verb, _, code), n in self.responses.items() if code == 409 and verb != "POST")

    def seconds_until_done(self, share: float) -> float | None:
        """Return the seconds until a share of the done objects was done, such as 0.5 for the median, or None."""
        return self.seconds[min(len(self.seconds) - 1, int(share * len(self.seconds)))] if self.seconds else None

    def to_json(self) -> dict[str, Any]:
        """Return the figures as the JSON that `fairlead demo --json` prints."""
        return {
            "requests": self.requests,
            "conflicts": self.conflicts,
            "already_exists": self.already_exists,
            "watch_events": self.watch_events,
            "seconds_to_done": {
                "p50": self.seconds_until_done(0.5),
                "p99": self.seconds_until_done(0.99),
                "last": self.seconds_until_done(1.0),
            },
            "lost": len(self.losses),
            "stuck": len(self.stuck),
            "by_verb": [
                {"verb": verb, "resource": resource, "code": code, "count": n}
                for (verb, resource, code), n in sorted(self.responses.items())
            ],
        }


async def play(
    demo: Demo,
    variant: Variant,
    scale: int,
    connect: Connect,
    world: fl.World,
    *,
    namespace: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Outcome:
    """Play one variant of a demo on a server, and return its outcome.

    With a `namespace`, the demo runs in that namespace of a cluster, without simulated latency, and deletes everything
    that it created, also if the task is cancelled once.
    """
    run = DemoRun(connect, world, namespace or "default", network=namespace is None, progress=progress)
    try:
        if namespace:
            await run.admin.create(fl.Namespace(namespace))
        await demo.play(run, variant, scale)
        responses = await run.count_responses()
    finally:
        try:
            if namespace:
                await finish_despite_cancel(remove_demo_objects(run.admin, namespace, run.resources))
        finally:
            await run.close()
    return Outcome(responses, sorted(run.done_at.values()), run.watch_events, run.losses, run.stuck, run.records)
