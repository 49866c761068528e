"""The clients, caches and recorders that the controllers of one run share."""

import logging
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fairlead.api.history import History
from fairlead.api.world import World
from fairlead.client.client import Client
from fairlead.queue import Queue
from fairlead.runtime.events import Recorder
from fairlead.runtime.metrics import Metrics
from fairlead.runtime.watched_kinds import WatchedKinds
from fairlead.writes import Writer


class Key(NamedTuple):
    """A key of the work queue: a controller, and the namespace and name of an object to reconcile."""

    controller: str
    namespace: str | None
    name: str

    def __str__(self) -> str:
        return f"{self.controller} {self.namespace}/{self.name}" if self.namespace else f"{self.controller} {self.name}"


@dataclass(frozen=True)
class Services:
    """The clients, caches and recorders of one run of an operator on one cluster."""

    world: World
    client: Client
    watched: WatchedKinds
    queue: Queue[Key]
    writer: Writer
    recorder: Recorder
    metrics: Metrics
    history: History
    log: logging.Logger
    resources: dict[str, Any]
    threads: Executor
    dry_run: bool = False  # whether the server validates writes without storing them
    tries: int | None = None  # stop retrying a key after this many failures in a row; None retries forever
    clusters: "dict[str, Services]" = field(default_factory=dict)
    """The services of each other cluster: its own client, cache and writer, everything else shared."""
    cluster: str = ""
    """The name of the cluster; empty for the operator's own."""
    failures: dict[Key, str] = field(default_factory=dict)
    """The error message of each key whose last pass failed."""
    warned: set[tuple[str, ...]] = field(default_factory=set)
    """The warnings that were logged, each once in a run."""

    def warn_once(self, topic: tuple[str, ...], message: str, *args: object) -> None:
        """Log a warning, unless one with the same topic was logged in this run."""
        if topic not in self.warned:
            self.warned.add(topic)
            self.log.warning(message, *args)
