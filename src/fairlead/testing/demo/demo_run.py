"""One run of a demo: a server, a clock, a namespace, and a record of the requests and reconciles.

A demo is a module with `SCALE`, the default number of objects, and `async def play(run, variant, scale)`. `play`
installs its CRDs and calls `run.start` with the names of the objects that have to become ready. It then calls
`run.mark_done` for each object that is ready and `run.record_loss` for each lost write, and returns at the end.
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
from fairlead.api.history import ENDED, REQUEST, ObjectRef, Record
from fairlead.api.requests import HttpRequest
from fairlead.api.world import SystemClock
from fairlead.client.client import Client
from fairlead.client.transport import Response, Stream, Transport
from fairlead.testing.network import Lags, SlowTransport

T = TypeVar("T")
Variant = Literal["old", "new"]
"""Which operator runs: "old" writes as the original did when it failed, "new" is the fairlead operator."""
VARIANTS: tuple[Variant, ...] = ("old", "new")

REQUEST_LATENCY = (0.002, 0.006)
"""The shortest and the longest simulated request, in seconds: a server in the same region."""
WATCH_LAG = (0.02, 0.2)
"""The shortest and the longest simulated delay of a watch event, in seconds: a busy watch cache and a busy informer."""
TIMEOUT = 3600.0
"""Seconds until an object that is not done counts as stuck. The longest backoff of the old variant is 1000 seconds."""

MAX_IN_FLIGHT = 50
"""The number of parallel requests in `limit_concurrency`. Each one needs a connection to the server."""
DEMO_LABEL = "fairlead-demo"
"""The label of the objects that a demo creates outside its namespace. The value is the name of that namespace."""

Connect = Callable[[], Transport]
"""Opens a connection to a server."""

ResponseCounts = Counter[tuple[str, str, int]]
"""The number of responses by verb, resource and status code."""
# The literal newline is faster than ^ with re.MULTILINE: a real server returns megabytes of other metrics.
_SAMPLE = re.compile(r"\napiserver_request_total\{(.*)\} (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Demo(Protocol):
    """The names that the `demo` module of a system defines."""

    SCALE: int

    async def play(self, run: "DemoRun", variant: Variant, scale: int) -> None: ...


@dataclass
class DemoRun:
    """The server, clock and namespace of one run of a demo, and the record of its requests and reconciles.

    `connect` opens a connection to the main server, `other_servers` to further servers of the demo. `network` turns
    simulated latency on. Requests of `transport` and `client` have this latency and are recorded under the name of
    their actor. Requests of `admin` are not slowed down and not recorded, but the server counts them.
    """

    connect: Connect
    world: fl.World
    namespace: str = "default"
    network: bool = True
    progress: Callable[[int, int], None] = lambda done, total: None
    other_servers: list[Connect] = field(default_factory=list)
    started_at: float = 0.0
    records: list[Record] = field(default_factory=list)
    done_at: dict[str, float] = field(default_factory=dict)
    losses: list[str] = field(default_factory=list)
    watch_events: int = 0
    resources: set[str] = field(default_factory=set)
    _expected: set[str] = field(default_factory=set)
    _baseline: ResponseCounts = field(default_factory=Counter)
    _all_done: asyncio.Event = field(default_factory=asyncio.Event)
    _transports: list[Transport] = field(default_factory=list)

    @property
    def now(self) -> float:
        """The seconds since `start`."""
        return self.world.clock.monotonic() - self.started_at

    @property
    def labels(self) -> dict[str, str]:
        """The labels that the demo sets on the objects that it creates outside of its namespace."""
        return {DEMO_LABEL: self.namespace}

    @property
    def selector(self) -> str:
        """The label selector of the objects that the demo created outside of its namespace."""
        return f"{DEMO_LABEL}={self.namespace}"

    @property
    def admin(self) -> Client:
        """A new client for the demo itself. Its requests have no latency and are not recorded."""
        return Client(self._open(), self.world, user_agent="demo")

    @property
    def grace_period(self) -> float:
        """The seconds that the demo waits for late changes: 300 in virtual time, 5 in real time."""
        return 5.0 if self._real_time else 300.0

    def transport(self, actor: str, connect: Connect | None = None, *, watch_lags: Lags | None = None) -> Transport:
        """Return a transport that records an actor's requests. `watch_lags` replaces WATCH_LAG for some resources."""
        inner: Transport = _RecordingTransport(self._open(connect), self, actor)
        if not self.network:
            return inner
        return SlowTransport(inner, self.world, request=REQUEST_LATENCY, watch=WATCH_LAG, late=watch_lags)

    def client(self, actor: str, connect: Connect | None = None) -> Client:
        """Return a client whose requests are recorded under the name of an actor."""
        return Client(self.transport(actor, connect), self.world, user_agent=actor)

    async def start(self, names: Iterable[str]) -> None:
        """Start the clock and the counters. `names` are the objects for which `mark_done` must be called."""
        self._expected = set(names)
        self._baseline = await self._count_all_responses()
        self.records.clear()
        self.watch_events = 0
        self.started_at = self.world.clock.monotonic()
        self.progress(0, len(self._expected))

    def mark_done(self, name: str) -> None:
        """Record that the object is in its desired state. Only the first call for a name counts."""
        if name in self._expected and name not in self.done_at:
            self.done_at[name] = self.now
            self.progress(len(self.done_at), len(self._expected))
            if len(self.done_at) == len(self._expected):
                self._all_done.set()

    def record_loss(self, description: str) -> None:
        """Record a lost plan, a lost field or finalizer of another writer, or an object that was wrongly deleted."""
        self.losses.append(description)

    @property
    def stuck(self) -> list[str]:
        """The names of the objects for which `mark_done` was not called yet."""
        return sorted(self._expected - self.done_at.keys())

    async def wait_until_done(self, timeout: float = TIMEOUT) -> None:
        """Wait until all objects are done, at most `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._all_done.wait()
        except TimeoutError:
            pass

    async def record_idle_time(self) -> None:
        """Record ten more minutes (ten seconds in real time). A good operator sends no requests in this time."""
        await asyncio.sleep(10.0 if self._real_time else 600.0)

    @property
    def _real_time(self) -> bool:
        return isinstance(self.world.clock, SystemClock)

    def record_reconciles(self, op: fl.Operator, actor: str = "operator") -> fl.Operator:
        """Return a copy of the operator that records each reconcile.

        For cluster-scoped kinds, the copy reconciles only the objects with the label of this demo.
        """
        recorded = copy(op)
        recorded.controllers = {
            key: replace(
                controller,
                reconcile=self._wrap_with_record(controller.reconcile, actor),
                when=controller.when if controller.kind.namespaced else self._has_demo_label,
            )
            for key, controller in op.controllers.items()
        }
        return recorded

    def reconcile_recorder(self, actor: str = "operator") -> Callable[[str, bool], None]:
        """Return a function for old operators to call after each reconcile, with the object's name and `failed`."""

        def record(name: str, has_failed: bool) -> None:
            ref, outcome = ObjectRef("", None, name), "error" if has_failed else "success"
            self.records.append(Record(ENDED, self.now, actor, "reconcile", ref, outcome=outcome))

        return record

    async def count_responses(self) -> ResponseCounts:
        """Return the servers' response counts since `start`, for the resources that the actors requested."""
        since_start = await self._count_all_responses() - self._baseline
        return Counter({key: n for key, n in since_start.items() if key[1] in self.resources})

    async def close(self) -> None:
        """Close all connections to the servers."""
        for transport in self._transports:
            await transport.close()

    def _wrap_with_record(self, reconcile: Callable[..., Any], actor: str) -> Callable[..., Awaitable[Any]]:
        record = self.reconcile_recorder(actor)

        async def reconcile_and_record(obj: fl.Object, ctx: fl.Context) -> Any:
            has_failed = True
            try:
                result = await reconcile(obj, ctx)
                has_failed = False
                return result
            except fl.Wait:
                has_failed = False
                raise
            finally:
                record(obj.name, has_failed)

        return reconcile_and_record

    def _has_demo_label(self, obj: fl.Object) -> bool:
        return obj.labels.get(DEMO_LABEL) == self.namespace

    def _open(self, connect: Connect | None = None) -> Transport:
        self._transports.append((connect or self.connect)())
        return self._transports[-1]

    async def _count_all_responses(self) -> ResponseCounts:
        counts: ResponseCounts = Counter()
        for connect in (self.connect, *self.other_servers):
            response = await self._open(connect).request(HttpRequest("GET", "/metrics"))
            if response.status != 200:
                raise UserError(
                    f"the server returned {response.status} for GET /metrics, which the demo needs to count responses: "
                    "use an account that may read /metrics"
                )
            for labels, value in _SAMPLE.findall(response.body.decode()):
                sample = dict(_LABEL.findall(labels))
                resource = "/".join(filter(None, (sample["resource"], sample["subresource"])))
                counts[sample["verb"], resource, int(sample["code"] or 0)] += int(float(value))
        return counts


class _RecordingTransport:
    """A transport that records each response as a mark of the timeline, and counts watch events."""

    def __init__(self, inner: Transport, run: DemoRun, actor: str) -> None:
        self._inner, self._run, self._actor = inner, run, actor

    async def request(self, request: HttpRequest) -> Response:
        response = await self._inner.request(request)
        self._run.resources.add(resource_of(request.path))
        outcome = str(response.status)
        record = Record(REQUEST, self._run.now, self._actor, request.method, path=request.path, outcome=outcome)
        self._run.records.append(record)
        return response

    async def stream(self, request: HttpRequest) -> Stream:
        self._run.resources.add(resource_of(request.path))
        return _CountingStream(await self._inner.stream(request), self._run)

    async def close(self) -> None:
        await self._inner.close()


class _CountingStream:
    def __init__(self, inner: Stream, run: DemoRun) -> None:
        self._inner, self._run = inner, run

    @property
    def status(self) -> int:
        return self._inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._inner.headers

    async def read(self) -> bytes:
        chunk = await self._inner.read()
        self._run.watch_events += chunk.count(b"\n")
        return chunk

    async def close(self) -> None:
        await self._inner.close()


def limit_concurrency(call: Callable[[fl.Object], Awaitable[T]]) -> Callable[[fl.Object], Awaitable[T]]:
    """Return a wrapper of `call` that runs at most MAX_IN_FLIGHT calls at the same time."""
    semaphore = asyncio.Semaphore(MAX_IN_FLIGHT)

    async def limited_call(obj: fl.Object) -> T:
        async with semaphore:
            return await call(obj)

    return limited_call


def resource_of(path: str) -> str:
    """Return the resource and subresource of a request path as in the server's metrics: `deployments/status`."""
    segments = path.strip("/").split("/")
    segments = segments[2:] if segments[0] == "api" else segments[3:]
    if len(segments) > 2 and segments[0] == "namespaces":
        if segments[2] in ("status", "finalize"):
            return f"namespaces/{segments[2]}"
        segments = segments[2:]
    return "/".join([segments[0], *segments[2:3]]) if segments else ""
