"""A stage: one server on which a system's test bed plays its story in one way, and what that cost.

A bed is a module with `SCALE`, a number of objects that shows the story in seconds, and
`async def play(stage: Stage, way: Way, scale: int)`. It sets the scene, calls `stage.begin` with what is to get done,
reports each as `stage.done`, what vanished as `stage.lost`, and returns when its story is told.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

import fairlead as fl
from fairlead.api.errors import UserError
from fairlead.api.requests import HttpRequest
from fairlead.api.world import SystemClock
from fairlead.client.client import Client
from fairlead.client.transport import Response, Stream, Transport
from fairlead.testing.network import Lags, SlowTransport

T = TypeVar("T")
Way = Literal["old", "new"]
WAYS: tuple[Way, ...] = ("old", "new")

REQUEST = (0.002, 0.006)
"""Seconds a request takes: a server in the same region."""
WATCH = (0.02, 0.2)
"""Seconds until a watch event has come: a busy server's watch cache and a busy informer."""
PATIENCE = 3600.0
"""Seconds after which what is not done counts as stuck. Longer than the longest back-off of the old way."""

IN_FLIGHT = 50
"""Requests of one sort at a time: each has a connection, and a server takes in only so many at once."""
STORY = "fairlead-demo"
"""The label of what a story brings along outside its namespace; its value is that namespace."""

Door = Callable[[], Transport]

Count = Counter[tuple[str, str, int]]
"""Answers by verb, resource and code."""
# A line begins after another, its HELP: so spelled, the search skips the megabytes of a real server's other series.
_SAMPLE = re.compile(r"\napiserver_request_total\{(.*)\} (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Bed(Protocol):
    """What a system's module `bed` is."""

    SCALE: int

    async def play(self, stage: "Stage", way: Way, scale: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened, for the timeline: a request by `who` with its code, or a reconcile with its outcome."""

    at: float
    who: str
    what: str  # PUT, PATCH, …, or "reconcile"
    about: str  # the path, or the object's name
    code: int  # the answer's; of a reconcile 0, or 1 if it failed


@dataclass
class Stage:
    """A server, a world and a namespace for one telling of a story, and the record of it.

    `door` opens a way into the server, those in `beside` into further ones of the story; `network` says whether latency
    is put in between (on a real network there is enough of it). All that goes through `transport` is recorded under
    the name given; what goes through `admin` is neither slow nor recorded, but the server counts it.
    """

    door: Door
    world: fl.World
    namespace: str = "default"
    network: bool = True
    progress: Callable[[int, int], None] = lambda done, of: None
    beside: list[Door] = field(default_factory=list)
    began: float = 0.0
    marks: list[Mark] = field(default_factory=list)
    moments: dict[str, float] = field(default_factory=dict)
    losses: list[str] = field(default_factory=list)
    watch_events: int = 0
    resources: set[str] = field(default_factory=set)
    _expected: set[str] = field(default_factory=set)
    _baseline: Count = field(default_factory=Counter)
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _doors: list[Transport] = field(default_factory=list)

    @property
    def now(self) -> float:
        """Seconds since the story began."""
        return self.world.clock.monotonic() - self.began

    @property
    def labels(self) -> dict[str, str]:
        """What everything is to carry that the story makes outside its namespace, and its actors look at there."""
        return {STORY: self.namespace}

    @property
    def selector(self) -> str:
        return f"{STORY}={self.namespace}"

    @property
    def admin(self) -> Client:
        return Client(self._opened(), self.world, user_agent="bed")

    @property
    def grace(self) -> float:
        """What takes five minutes in a story: as many seconds in real time."""
        return 5.0 if self._real_time else 300.0

    def transport(self, who: str, door: Door | None = None, *, late: Lags | None = None) -> Transport:
        """A way in for one of the actors; its watches of the resources in `late` lag by other bounds than WATCH."""
        inner: Transport = _Recorder(self._opened(door), self, who)
        return SlowTransport(inner, self.world, request=REQUEST, watch=WATCH, late=late) if self.network else inner

    def client(self, who: str, door: Door | None = None) -> Client:
        return Client(self.transport(who, door), self.world, user_agent=who)

    async def begin(self, names: Iterable[str]) -> None:
        """The scene is set: time and counting start. Each of `names` is to be reported by `done`."""
        self._expected = set(names)
        self._baseline = await self._count()
        self.marks.clear()
        self.watch_events = 0
        self.began = self.world.clock.monotonic()
        self.progress(0, len(self._expected))

    def done(self, name: str) -> None:
        """It is as it should be; only the first time counts."""
        if name in self._expected and name not in self.moments:
            self.moments[name] = self.now
            self.progress(len(self.moments), len(self._expected))
            if len(self.moments) == len(self._expected):
                self._over.set()

    def lost(self, what: str) -> None:
        """A plan, a foreign field or a finalizer that vanished, or an object wrongly deleted."""
        self.losses.append(what)

    @property
    def stuck(self) -> list[str]:
        return sorted(self._expected - self.moments.keys())

    async def settled(self, patience: float = PATIENCE) -> None:
        """Wait until all is done, or for so long."""
        try:
            async with asyncio.timeout(patience):
                await self._over.wait()
        except TimeoutError:
            pass

    async def idle(self) -> None:
        """Watch on after the last is done, when nothing should be sent: ten minutes, ten seconds of real time."""
        await asyncio.sleep(10.0 if self._real_time else 600.0)

    @property
    def _real_time(self) -> bool:
        return isinstance(self.world.clock, SystemClock)

    def observed(self, op: fl.Operator, who: str = "operator") -> fl.Operator:
        """The operator, with each pass on the record. Of a kind that is in no namespace, it reconciles the story's."""
        observed = copy(op)
        observed.controllers = {
            key: replace(
                each,
                reconcile=self._noted(each.reconcile, who),
                when=each.when if each.kind.namespaced else self._is_own,
            )
            for key, each in op.controllers.items()
        }
        return observed

    def seen(self, who: str = "operator") -> Callable[[str, bool], None]:
        """What an operator of the old way is to tell each pass to: the object's name, and whether it failed."""
        return lambda name, failed: self.marks.append(Mark(self.now, who, "reconcile", name, int(failed)))

    async def counted(self) -> Count:
        """What the server answered since the story began, of the resources that the actors spoke of."""
        return Counter(
            {key: n for key, n in (await self._count() - self._baseline).items() if key[1] in self.resources}
        )

    async def close(self) -> None:
        for each in self._doors:
            await each.close()

    def _noted(self, reconcile: Callable[..., Any], who: str) -> Callable[..., Awaitable[Any]]:
        seen = self.seen(who)

        async def noted(obj: fl.Object, ctx: fl.Context) -> Any:
            failed = True
            try:
                result = await reconcile(obj, ctx)
                failed = False
                return result
            except fl.Wait:
                failed = False
                raise
            finally:
                seen(obj.name, failed)

        return noted

    def _is_own(self, obj: fl.Object) -> bool:
        return obj.labels.get(STORY) == self.namespace

    def _opened(self, door: Door | None = None) -> Transport:
        self._doors.append((door or self.door)())
        return self._doors[-1]

    async def _count(self) -> Count:
        counts: Count = Counter()
        for door in (self.door, *self.beside):
            answer = await self._opened(door).request(HttpRequest("GET", "/metrics"))
            if answer.status != 200:
                said = f"the server answers {answer.status} to GET /metrics, where it counts its answers"
                raise UserError(f"{said}: use an account that may read that")
            for labels, value in _SAMPLE.findall(answer.body.decode()):
                sample = dict(_LABEL.findall(labels))
                name = "/".join(filter(None, (sample["resource"], sample["subresource"])))
                counts[sample["verb"], name, int(sample["code"] or 0)] += int(float(value))
        return counts


class _Recorder:
    """Notes each answer, and counts the events of watches."""

    def __init__(self, inner: Transport, stage: Stage, who: str) -> None:
        self._inner, self._stage, self._who = inner, stage, who

    async def request(self, request: HttpRequest) -> Response:
        answer = await self._inner.request(request)
        self._stage.resources.add(resource_of(request.path))
        self._stage.marks.append(Mark(self._stage.now, self._who, request.method, request.path, answer.status))
        return answer

    async def stream(self, request: HttpRequest) -> Stream:
        self._stage.resources.add(resource_of(request.path))
        return _CountedStream(await self._inner.stream(request), self._stage)

    async def close(self) -> None:
        await self._inner.close()


class _CountedStream:
    def __init__(self, inner: Stream, stage: Stage) -> None:
        self._inner, self._stage = inner, stage

    @property
    def status(self) -> int:
        return self._inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._inner.headers

    async def read(self) -> bytes:
        chunk = await self._inner.read()
        self._stage.watch_events += chunk.count(b"\n")
        return chunk

    async def close(self) -> None:
        await self._inner.close()


def bounded(call: Callable[[fl.Object], Awaitable[T]]) -> Callable[[fl.Object], Awaitable[T]]:
    """For many objects at once: a call waits while IN_FLIGHT others are under way."""
    room = asyncio.Semaphore(IN_FLIGHT)

    async def called(obj: fl.Object) -> T:
        async with room:
            return await call(obj)

    return called


def resource_of(path: str) -> str:
    """The resource in a request's path, with its subresource, as the server's counters name it."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if len(parts) > 2 and parts[0] == "namespaces":
        if parts[2] in ("status", "finalize"):
            return f"namespaces/{parts[2]}"
        parts = parts[2:]
    return "/".join([parts[0], *parts[2:3]]) if parts else ""
