"""The history: what an actor did, as records that logs, metrics, traces, pages and reports are made from.

A pass of a controller emits records at four points: it was woken, it read, it wrote or skipped a write, it ended. Each
HTTP request is a record too. Nothing is built for a point that nobody subscribes to.
"""

import logging
from collections.abc import Callable, Iterable
from contextvars import ContextVar, Token
from typing import Any, Final, Literal, NamedTuple

from fairlead.api.world import Clock

log = logging.getLogger("fairlead.history")

Point = Literal["woken", "read", "written", "skipped", "ended", "request"]
WOKEN: Final = "woken"
READ: Final = "read"
WRITTEN: Final = "written"
SKIPPED: Final = "skipped"
ENDED: Final = "ended"
REQUEST: Final = "request"
POINTS: tuple[Point, ...] = (WOKEN, READ, WRITTEN, SKIPPED, ENDED, REQUEST)

CauseSource = Literal["start", "primary", "child", "mapped", "resync", "retry", "conflict", "requeue_after"]


class ObjectRef(NamedTuple):
    """The kind, namespace and name of an object. A reference to a list has no name."""

    kind: str
    namespace: str | None
    name: str
    api_version: str = ""
    cluster: str = ""
    """The name of another cluster of the run; empty for the operator's own."""

    def __str__(self) -> str:
        qualified_name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {qualified_name}" + (f" at {self.cluster}" if self.cluster else "")


class FieldChange(NamedTuple):
    """One changed field. `old` or `new` is None if the field did not exist before or afterwards."""

    path: str
    old: Any = None
    new: Any = None


class Cause(NamedTuple):
    """Why a pass ran.

    The source is the initial list ("start"), a change of the object itself ("primary"), of a child or of a mapped
    object, a resync, a retry after an error or a conflict, or the time that a handler asked for ("requeue_after").
    """

    source: CauseSource
    event: str = ""
    """For a change: "added", "modified" or "deleted"."""
    object: ObjectRef | None = None
    version: str = ""
    """The resourceVersion that the change led to."""
    is_own: bool = False
    """Whether this process made the change itself."""
    changed: tuple[str, ...] = ()
    """For a change of another writer: which of generation, labels, annotations and deletionTimestamp it modified."""
    attempt: int = 0
    """For a retry: how many passes failed in a row."""
    seconds: float = 0.0
    """For requeue_after: the delay that the handler asked for."""


class Record(NamedTuple):
    """One thing that happened: when, who, what, to which object, with which outcome and cause."""

    point: Point
    time: float
    """Seconds since the epoch; in a demo, seconds since its start."""
    actor: str
    """The field manager of the controller, or the name of the process."""
    verb: str
    """reconcile, get, list, create, apply, patch, update, delete; the HTTP method of a request."""
    object: ObjectRef | None = None
    """The object that was reconciled, read or written."""
    primary: ObjectRef | None = None
    """The object that the pass reconciles."""
    pass_id: str = ""
    """The id of the pass, as in the log field `reconcile`."""
    version: str = ""
    """The resourceVersion that was read, or that the write led to."""
    version_before: str = ""
    """For a write: the cached resourceVersion before it."""
    fields: tuple[FieldChange, ...] = ()
    """For a write: the changed fields, with the values of Secrets redacted."""
    outcome: str = ""
    """read: found, absent or the number of objects. written: created, changed, unchanged, deleting, deleted, or the
    name of the error. ended: success, requeue, requeue_after, error or cancelled. request: the status code or <error>.
    """
    reason: str = ""
    """For an end: the reason of the Ready condition."""
    message: str = ""
    causes: tuple[Cause, ...] = ()
    """For a wake-up: the first causes."""
    more_causes: int = 0
    """How many further causes there were."""
    seconds: float = 0.0
    """How long the pass or the request took."""
    next_look: float | None = None
    """For an end: seconds until the next pass that is already scheduled."""
    source: str = ""
    """For a read: cache or live."""
    subresource: str = ""
    path: str = ""
    """For a request: its path."""
    is_dry_run: bool = False
    error: BaseException | None = None
    """For an end: what the handler or a write raised."""


class Pass(NamedTuple):
    """The pass that the current task belongs to."""

    id: str
    actor: str
    object: ObjectRef


Subscriber = Callable[[Record], None]

_current_pass: ContextVar[Pass | None] = ContextVar("fairlead_pass", default=None)


class History:
    """Hands records to subscribers, at once and in order.

    Guarantees: a subscriber is called in the task of the pass, so that it can read and set context variables. An error
    that it raises is logged and affects neither the pass nor other subscribers. No record is built for a point without
    subscribers.

    Does not guarantee: that records are kept. A subscriber keeps what it needs. Use from other threads.

    Example:
        history = History(world.clock, "greeter")
        unsubscribe = history.subscribe(print, points=[WRITTEN, ENDED])
    """

    def __init__(self, clock: Clock, actor: str) -> None:
        self._clock = clock
        self._actor = actor
        self._subscribers: dict[Point, tuple[Subscriber, ...]] = dict.fromkeys(POINTS, ())
        self._failed: set[Subscriber] = set()

    def subscribe(self, subscriber: Subscriber, points: Iterable[Point] = POINTS) -> Callable[[], None]:
        """Call `subscriber` with each record of these points from now on. Return a function that ends it."""
        wanted = tuple(points)
        for point in wanted:
            self._subscribers[point] += (subscriber,)

        def unsubscribe() -> None:
            for point in wanted:
                self._subscribers[point] = tuple(
                    existing for existing in self._subscribers[point] if existing is not subscriber
                )

        return unsubscribe

    def wants(self, point: Point) -> bool:
        """Return whether anybody subscribes to this point. Test it before building the arguments of a record."""
        return bool(self._subscribers[point])

    def record(self, point: Point, verb: str, **fields: Any) -> None:
        """Build a record of the current pass, and hand it to the subscribers of the point."""
        subscribers = self._subscribers[point]
        if not subscribers:
            return
        current = _current_pass.get()
        if current is not None:
            fields["pass_id"], fields["primary"] = current.id, current.object
        actor = self._actor if current is None else current.actor
        self._deliver(subscribers, Record(point, self._clock.now(), actor, verb, **fields))

    def enter_pass(self, pass_id: str, actor: str, obj: ObjectRef) -> "Token[Pass | None]":
        """Make this the pass of the current task. Give the result to `exit_pass`."""
        return _current_pass.set(Pass(pass_id, actor, obj))

    def exit_pass(self, token: "Token[Pass | None]") -> None:
        """Restore what `enter_pass` replaced."""
        _current_pass.reset(token)

    def _deliver(self, subscribers: tuple[Subscriber, ...], record: Record) -> None:
        for subscriber in subscribers:
            try:
                subscriber(record)
            except Exception:
                is_first = subscriber not in self._failed
                self._failed.add(subscriber)
                log.error("a subscriber of the history failed: %s", subscriber, exc_info=is_first)
