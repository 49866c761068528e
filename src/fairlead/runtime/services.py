"""What the controllers of one run share."""

import logging
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fairlead.api.world import World
from fairlead.client.client import Client
from fairlead.queue import Queue
from fairlead.runtime.events import Recorder
from fairlead.runtime.metrics import Metrics
from fairlead.runtime.watched_kinds import WatchedKinds
from fairlead.writes import Writer


class Key(NamedTuple):
    """An object to look at, and the controller that shall."""

    controller: str
    namespace: str | None
    name: str

    def __str__(self) -> str:
        return f"{self.controller} {self.namespace}/{self.name}" if self.namespace else f"{self.controller} {self.name}"


@dataclass(frozen=True)
class Services:
    """One of each, for one run of an operator on one cluster."""

    world: World
    client: Client
    watched: WatchedKinds
    queue: Queue[Key]
    writer: Writer
    recorder: Recorder
    metrics: Metrics
    log: logging.Logger
    resources: dict[str, Any]
    threads: Executor
    dry_run: bool = False  # what `client` writes is checked and not stored
    tries: int | None = None  # give a key up after so many failures in a row; None is never
    clusters: "dict[str, Services]" = field(default_factory=dict)
    """The same for each other cluster: its client, view and writer, all else shared."""
    failures: dict[Key, str] = field(default_factory=dict)
    """What failed at its last look, and how."""
