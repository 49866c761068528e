"""The operator: what one process does, declared with decorators."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.api.text import refuse_text
from fairlead.api.world import World
from fairlead.client.transport import Transport
from fairlead.runtime.sources import HOME, Source, source_of

if TYPE_CHECKING:
    from fairlead.runtime.running import Running

F = TypeVar("F", bound=Callable[..., Any])

Predicate = Callable[[Object], bool]
Mapper = Callable[..., Iterable["str | tuple[str | None, str] | Object"]]
Hook = Callable[[dict[str, Any]], Awaitable[None] | None]

# Network waits are the limit, not cores, so reconciles of different keys overlap. At 10 ms from a server, 32 at once
# finish a burst at least five times as fast as one, and 64 gain nothing more. A server that answers 429 lowers it.
CONCURRENCY = 32
# As controller-runtime: a safety net against what was missed, so rare that it costs nothing.
RESYNC = 36_000.0
# Longer than any honest pass; shorter than it takes somebody to notice that an object is stuck.
TIMEOUT = 300.0


@dataclass(frozen=True, eq=False)
class Controller:
    """One `@op.reconcile`, as declared."""

    name: str
    source: Source
    reconcile: Callable[..., Any]
    owns: tuple[Source, ...]
    watches: Mapping[Source, Mapper | None]
    when: Predicate | None
    concurrency: int
    ready: str | None
    resync: float
    timeout: float

    @property
    def kind(self) -> Kind:
        return self.source.kind

    @property
    def sources(self) -> tuple[Source, ...]:
        """Everything it watches."""
        return (self.source, *self.owns, *self.watches)


@dataclass(frozen=True, eq=False)
class Cleanup:
    """One `@op.cleanup`, as declared."""

    clean: Callable[..., Any]
    finalizer: str


class Options(TypedDict, total=False):
    """How to run an operator; each has a default."""

    namespaces: Iterable[str]
    """Where to look; everywhere when empty."""
    lease_namespace: str | None
    """Work only while holding the Lease there that has the operator's name; without it, just work."""
    health: str | None
    """PORT or HOST:PORT of /healthz, /readyz and /metrics."""
    dry_run: bool
    """The server checks each write and stores none."""
    resources: Mapping[str, Any] | None
    """What is in `ctx.resources` before the start-up hooks run."""
    clusters: Mapping[str, Transport]
    """The other clusters, by the names under which `select` and `ctx.cluster` mean them."""
    tries: int | None
    """Give an object up after so many failures in a row: for runs that shall end."""


@dataclass(eq=False)
class Operator:
    """Controllers that run in one process, under one name: the lease's, the metrics' and the field managers'.

    Declares only; `run` (or `fairlead run`) does. One Operator can be run many times, also at once. The field manager
    of a controller is `operator/controller`, however many there are. `formerly` names field managers of earlier
    releases (or of what this operator replaces): what they applied counts as ours, and our next apply makes it so.
    """

    name: str
    formerly: tuple[str, ...] = ()
    controllers: dict[tuple[str, str], Controller] = field(default_factory=dict, init=False, repr=False)
    cleanups: dict[tuple[str, str], Cleanup] = field(default_factory=dict, init=False, repr=False)
    indexes: list[tuple[Kind, str, Callable[[Object], Iterable[str]]]] = field(
        default_factory=list, init=False, repr=False
    )
    timers: list[tuple[float, Callable[..., Any]]] = field(default_factory=list, init=False, repr=False)
    startups: list[Hook] = field(default_factory=list, init=False, repr=False)
    shutdowns: list[Hook] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", self.name):
            raise ValueError(
                f"an operator's name names its lease and its field manager: lower-case letters, digits, '-' and '.', "
                f"at most 63; got {self.name!r}"
            )
        refuse_text("formerly", self.formerly)

    def reconcile(
        self,
        kind: Kind | Source,
        *,
        owns: Iterable[Kind | Source] = (),
        watches: Mapping[Kind, Mapper | None] | Mapping[Source, Mapper | None] | None = None,
        when: Predicate | None = None,
        concurrency: int = CONCURRENCY,
        ready: str | None = "Ready",
        resync: float = RESYNC,
        timeout: float = TIMEOUT,
        name: str | None = None,
    ) -> Callable[[F], F]:
        """Call the function, `(obj, ctx)`, until the world is as it wants it: after each change of `obj`, of a child
        among `owns`, of an object in `watches`, and every `resync` seconds.

        - `owns`: kinds applied as children. They are watched, and those no longer applied are pruned.
        - `watches`: other kinds, each with a function from such an object (old and new) to the names of those to look
          at: a name in its namespace, (namespace, name), or an object. With None it can be read and wakes nobody.
        - `when`: objects for which it says no are left alone (their cleanup is not).
        - `ready`: the condition that says how it went, where the kind's status can hold one; None for none.
        - `name`: what it is called in its field manager, in metrics and logs; its kind in lower case unless said.

        Each kind may be `fl.select(kind, labels=…)` instead: then the server sends no other objects. One key is
        never reconciled twice at once. The function may be called at any time, any number of times.
        """

        def declare(function: F) -> F:
            source, children = source_of(kind), tuple(source_of(one) for one in owns)
            key = source.kind.key
            if key in self.controllers:
                raise ValueError(f"{self.name} reconciles {source.kind} already: one function a kind, or two operators")
            if any(one.cluster != HOME for one in (source, *children)):
                raise ValueError("another cluster can be watched only: owners and their children are in one cluster")
            if concurrency < 1 or min(resync, timeout) <= 0:
                raise ValueError("concurrency is at least 1, and resync and timeout are more than no time")
            # Not by the function's name nor by how many there are: both change, and fields once applied would stay.
            called = name or source.kind.kind.lower()
            if any(other.name == called for other in self.controllers.values()):
                raise ValueError(f"{self.name} has a controller {called} already: tell them apart with name=")
            self.controllers[key] = Controller(
                called,
                source,
                function,
                children,
                {source_of(one): mapper for one, mapper in (watches or {}).items()},
                when,
                concurrency,
                ready,
                resync,
                timeout,
            )
            return function

        return declare

    def cleanup(self, kind: Kind, *, finalizer: str | None = None) -> Callable[[F], F]:
        """Call the function, `(obj, ctx)`, before an object of that kind goes away; retried until it returns.

        It puts a finalizer on each object before `reconcile` has its first effect, and takes it off afterwards.
        """

        def declare(function: F) -> F:
            name = finalizer or (f"{kind.group}/{self.name}" if kind.group else f"{self.name}/cleanup")
            if kind.key in self.cleanups:
                raise ValueError(f"{self.name} cleans up {kind} already: one function a kind")
            if "/" not in name:
                raise ValueError(f"a finalizer needs a domain of yours, such as example.com/{name}")
            self.cleanups[kind.key] = Cleanup(function, name)
            return function

        return declare

    def index(self, kind: Kind, name: str) -> Callable[[F], F]:
        """Keep the objects of that kind by what the function, `(obj)`, finds in one: see `ctx.indexed`.

        The kind is watched for it. The function answers any number of texts and must depend on the object alone.
        """

        def declare(function: F) -> F:
            if any((other.key, taken) == (kind.key, name) for other, taken, _ in self.indexes):
                raise ValueError(f"{self.name} has an index {name} of {kind} already: choose another name")
            self.indexes.append((kind, name, function))
            return function

        return declare

    def timer(self, seconds: float) -> Callable[[F], F]:
        """Call the function, `(view)`, every so many seconds while this process leads; never twice at once."""
        if seconds <= 0:
            raise ValueError(f"a timer needs some time between its ticks, got {seconds} s")

        def declare(function: F) -> F:
            self.timers.append((seconds, function))
            return function

        return declare

    def startup(self, function: F) -> F:
        """Call the function, `(resources)`, before anything else. What it puts in there is `ctx.resources`."""
        self.startups.append(function)
        return function

    def shutdown(self, function: F) -> F:
        """Call the function, `(resources)`, when all else has stopped; also after a start-up that failed."""
        self.shutdowns.append(function)
        return function

    def running(
        self, transport: Transport, world: World | None = None, **options: Unpack[Options]
    ) -> "AbstractAsyncContextManager[Running]":
        """The operator at work for as long as the block lasts: `async with op.running(transport) as running`."""
        from fairlead.runtime.running import Running

        return Running(self, transport, world or World(), **options)

    async def run(self, transport: Transport, world: World | None = None, **options: Unpack[Options]) -> None:
        """Work until cancelled, then finish what is under way and leave. Raises LeaseLost when that is the end."""
        async with self.running(transport, world, **options) as running:
            await running.wait()

    def main(self) -> None:
        """Run as `fairlead run` would, with the same flags: the last line of a file that is a program."""
        from importlib import import_module

        # The command line stands above this layer: it is asked for by name, here only, so that a file is a program.
        import_module("fairlead.cli.run").run_as_script(self)
