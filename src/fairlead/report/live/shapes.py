"""The JSON under /debug, as types. The reference page is made from their docstrings."""

from typing import Any, Literal

import msgspec

QueueState = Literal["ready", "processing", "delayed", "backoff", "held"]
QUEUE_STATES: tuple[QueueState, ...] = ("ready", "processing", "delayed", "backoff", "held")


class Shape(msgspec.Struct, rename="camel", kw_only=True):
    """The base of all shapes: fields are in camel case."""


class Ref(Shape, kw_only=True):
    """A reference to an object."""

    kind: str
    namespace: str | None = None
    name: str
    api_version: str = ""
    cluster: str = ""
    """The name of another cluster; empty for the operator's own."""


class Change(Shape, kw_only=True):
    """A changed field."""

    path: str
    old: Any = None
    """The value before the write; null if the field did not exist. Values of Secrets are `<redacted>`."""
    new: Any = None
    """The value after the write; null if the field was removed."""


class Step(Shape, kw_only=True):
    """One read, write or skipped write of a pass."""

    point: Literal["read", "written", "skipped"]
    time: float
    """Seconds since the epoch."""
    verb: str
    """get, list, create, apply, patch, update or delete."""
    object: Ref | None = None
    text: str
    """What happened, in one line."""
    outcome: str = ""
    """read: found, absent or the number of objects. written: created, changed, unchanged, deleting, deleted, or the
    name of the error."""
    message: str = ""
    """The server's message if a write failed."""
    version: str = ""
    """The resourceVersion that was read, or that the write led to."""
    version_before: str = ""
    source: str = ""
    """For a read: cache or live."""
    subresource: str = ""
    is_dry_run: bool = False
    changes: list[Change] = []


class Pass(Shape, kw_only=True):
    """One pass over an object."""

    id: str
    """The id of the pass, as in the log field `reconcile`."""
    controller: str
    object: Ref
    started: float
    """Seconds since the epoch."""
    causes: list[str]
    """Why the pass ran: one line for each cause."""
    steps: list[Step]
    """The reads and writes, in order. At most 200 are kept."""
    more_steps: int = 0
    """How many further steps there were."""
    is_running: bool = False
    outcome: str = ""
    """success, requeue, requeue_after, error or cancelled; empty while the pass runs."""
    reason: str = ""
    """The reason of the Ready condition."""
    message: str = ""
    seconds: float = 0.0
    """How long the pass took, or has been running."""
    next_look: float | None = None
    """Seconds from the end of the pass to the next one that was scheduled then."""


class ObjectSummary(Shape, kw_only=True):
    """An object and its last pass."""

    controller: str
    object: Ref
    state: Literal["ready", "processing", "delayed", "backoff", "held", "idle"]
    """What the queue does with the object now. held: passes over it are slowed down, because they write in a loop."""
    next_look: float | None = None
    """Seconds until the next pass, if one is scheduled."""
    passes: int
    """How many passes ended since the operator started."""
    failures: int
    """How many passes failed in a row."""
    last_pass: Pass | None = None


class ObjectList(Shape, kw_only=True):
    """The answer of /debug/objects: one page of objects. The object with the latest pass is first."""

    total: int
    """How many objects match the search."""
    offset: int
    limit: int
    items: list[ObjectSummary]
    """The last pass of each is without its steps."""


class ObjectDetails(Shape, kw_only=True):
    """The answer of /debug/object: all that is known of one object."""

    operator: str
    time: float
    """The operator's clock, in seconds since the epoch."""
    summary: ObjectSummary
    is_cached: bool
    """Whether the object exists in the cache of the operator."""
    notes: list[str]
    """What keeps the object from being reconciled: it is paused, the operator is on standby, a watch fails."""
    history: list[Pass]
    """The passes, newest first."""


class Controller(Shape, kw_only=True):
    """A controller and its part of the queue."""

    name: str
    kind: str
    api_version: str
    concurrency: int
    """How many passes may run at the same time."""
    queue: dict[QueueState, int]
    """How many objects are in each state. All others are idle."""
    failing: int
    """How many objects failed in their last pass."""


class Memory(Shape, kw_only=True):
    """The memory of the page."""

    objects: int
    bytes: int
    passes_per_object: int
    """How many passes are kept for an object at the moment."""


class Overview(Shape, kw_only=True):
    """The answer of /debug."""

    operator: str
    time: float
    """The operator's clock, in seconds since the epoch."""
    is_leading: bool
    """Whether passes may start: the caches are filled, and the lease is held if there is one."""
    problems: dict[str, str]
    """The problems of the readiness probe, by name."""
    controllers: list[Controller]
    running: list[Pass]
    """The passes in flight, the oldest first. At most 100."""
    more_running: int = 0
    memory: Memory


SHAPES: dict[str, type[Shape]] = {
    "/debug": Overview,
    "/debug/objects": ObjectList,
    "/debug/object": ObjectDetails,
}
"""The answer of each path."""
