"""The operator: controllers, timers and hooks of one process, declared with decorators."""

import functools
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.api.source_locations import caller_location, function_location, with_location
from fairlead.api.text import reject_single_string
from fairlead.api.world import World
from fairlead.client.transport import Transport
from fairlead.queue.queue import ERROR_BASE, ERROR_CAP
from fairlead.runtime import tuning
from fairlead.runtime.handlers import check_arguments
from fairlead.runtime.sources import HOME, DeclarationError, Source, source_of
from fairlead.runtime.tuning import (
    BRAKE_AFTER,
    BRAKE_BASE,
    BRAKE_MAX,
    CONCURRENCY,
    RATE_LIMIT,
    REQUEST_TIMEOUT,
    RESYNC,
    SHUTDOWN_TIMEOUT,
    TIMEOUT,
    Tuning,
)

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from fairlead.runtime.context import Context
    from fairlead.runtime.read_context import ReadContext
    from fairlead.runtime.running import Running

H = TypeVar("H", bound="Callable[[Object, Context], Awaitable[None] | None]")
TimerFunction = TypeVar("TimerFunction", bound="Callable[[ReadContext], Awaitable[object] | object]")
IndexFunction = TypeVar("IndexFunction", bound="Callable[[Object], Iterable[str]]")
HookFunction = TypeVar("HookFunction", bound="Callable[[dict[str, Any]], Awaitable[None] | None]")

Predicate = Callable[[Object], bool]
Mapper = Callable[..., Iterable["str | tuple[str | None, str] | Object"]]
Hook = Callable[[dict[str, Any]], Awaitable[None] | None]


@dataclass(frozen=True, eq=False)
class Controller:
    """The declaration of a controller by `@op.reconcile`."""

    name: str
    source: Source
    reconcile: Callable[..., Any]
    owns: tuple[Source, ...]
    watches: Mapping[Source, Mapper | None]
    when: Predicate | None
    ready: str | None
    settings: Mapping[str, Any]  # of the names in `tuning.SETTINGS`, those that the declaration sets

    @property
    def kind(self) -> Kind:
        return self.source.kind

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources that the controller watches: its kind, its children, and the mapped kinds."""
        return (self.source, *self.owns, *self.watches)


@dataclass(frozen=True, eq=False)
class Cleanup:
    """The declaration of a cleanup handler by `@op.cleanup`."""

    clean: Callable[..., Any]
    finalizer: str


class Options(TypedDict, total=False):
    """The options of `Operator.run` and `Operator.running`. Every option has a default."""

    namespaces: Iterable[str]
    """The namespaces to watch; all if empty."""
    lease_namespace: str | None
    """Elect a leader with the Lease of the operator's name in this namespace. Without it there is no election."""
    health: str | None
    """PORT or HOST:PORT of /healthz, /readyz and /metrics."""
    dry_run: bool
    """Let the server validate each write and store none."""
    resources: Mapping[str, Any] | None
    """The content of `ctx.resources` before the startup hooks run."""
    clusters: Mapping[str, Transport]
    """The other clusters, under the names that `fl.select` and `ctx.cluster` use."""
    tries: int | None
    """Stop retrying an object after this many failures in a row: for runs that shall end."""
    subscribers: "Iterable[Callable[[Running], object]]"
    """Functions that are called with the run before it starts, to subscribe to its `history`."""
    settings: Mapping[str, Mapping[str, float]]
    """The settings of each controller, by its name, in this run. They override the declaration. The name "" is every
    controller that neither declares the setting nor is named."""
    request_timeout: float | None
    """Seconds after which a request fails, instead of the operator's."""
    shutdown_timeout: float | None
    """Seconds that a shutdown may take, instead of the operator's."""


@dataclass(eq=False)
class Operator:
    """The controllers, timers and hooks of one process.

    `name` is the name of the Lease, the user agent and the first part of each field manager: a controller's field
    manager is `operator/controller`. `formerly` lists field managers of earlier releases, or of the program that this
    operator replaces: objects that they applied count as ours, and the next apply takes over their fields.

    `concurrency`, `rate_limit`, `resync`, `timeout`, `backoff_base`, `backoff_max`, `brake_after`, `brake_base` and
    `brake_max` are the defaults of all controllers; `reconcile` explains each, and a controller can declare its own.
    `request_timeout` is the number of seconds after which a request to the server fails. `shutdown_timeout` is the
    number of seconds after which a stopped process has ended.

    Guarantees: one key is never reconciled twice at the same time in one run. Declaring has no effect on a cluster;
    only `run`, `running` and `main` do. One Operator can run several times, also concurrently.

    Does not guarantee: mutual exclusion between processes, unless each runs with a `lease_namespace`.

    Raises: ValueError if the name or a setting is not valid.

    Example:
        op = fl.Operator("greeter")

        @op.reconcile(Greeting, owns=[fl.ConfigMap])
        async def greet(obj: fl.Object, ctx: fl.Context) -> None:
            await ctx.apply(fl.ConfigMap(obj.name, data={"text": f"Hello, {obj.spec['who']}"}))

        if __name__ == "__main__":
            op.main()
    """

    name: str
    formerly: tuple[str, ...] = ()
    concurrency: int = field(default=CONCURRENCY, kw_only=True)
    rate_limit: float = field(default=RATE_LIMIT, kw_only=True)
    resync: float = field(default=RESYNC, kw_only=True)
    timeout: float = field(default=TIMEOUT, kw_only=True)
    backoff_base: float = field(default=ERROR_BASE, kw_only=True)
    backoff_max: float = field(default=ERROR_CAP, kw_only=True)
    brake_after: float = field(default=BRAKE_AFTER, kw_only=True)
    brake_base: float = field(default=BRAKE_BASE, kw_only=True)
    brake_max: float = field(default=BRAKE_MAX, kw_only=True)
    request_timeout: float = field(default=REQUEST_TIMEOUT, kw_only=True)
    shutdown_timeout: float = field(default=SHUTDOWN_TIMEOUT, kw_only=True)
    controllers: dict[tuple[str, str], Controller] = field(default_factory=dict, init=False, repr=False)
    cleanups: dict[tuple[str, str], Cleanup] = field(default_factory=dict, init=False, repr=False)
    indexes: list[tuple[Kind, str, Callable[[Object], Iterable[str]]]] = field(
        default_factory=list, init=False, repr=False
    )
    timers: list[tuple[float, Callable[..., Any]]] = field(default_factory=list, init=False, repr=False)
    startups: list[Hook] = field(default_factory=list, init=False, repr=False)
    shutdowns: list[Hook] = field(default_factory=list, init=False, repr=False)

    @functools.cached_property
    def metrics(self) -> "CollectorRegistry":
        """The registry for the operator's own metrics. /metrics serves them beside those of fairlead.

        Example:
            greetings = prometheus_client.Counter("greetings", "Greetings sent", registry=op.metrics)
        """
        from prometheus_client import CollectorRegistry

        return CollectorRegistry()

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", self.name):
            raise ValueError(
                f"an operator's name is used for its Lease and its field manager: lower-case letters, digits, '-' and "
                f"'.', at most 63; got {self.name!r}"
            )
        reject_single_string("formerly", self.formerly)
        tuning.check_settings({name: getattr(self, name) for name in (*tuning.SETTINGS, *tuning.RUN_SETTINGS)})

    def reconcile(
        self,
        kind: Kind | Source,
        *,
        owns: Iterable[Kind | Source] = (),
        watches: Mapping[Kind, Mapper | None] | Mapping[Source, Mapper | None] | None = None,
        when: Predicate | None = None,
        ready: str | None = "Ready",
        concurrency: int | None = None,
        rate_limit: float | None = None,
        resync: float | None = None,
        timeout: float | None = None,
        backoff_base: float | None = None,
        backoff_max: float | None = None,
        brake_after: float | None = None,
        brake_base: float | None = None,
        brake_max: float | None = None,
        name: str | None = None,
    ) -> Callable[[H], H]:
        """Declare a controller: call the decorated handler, `(obj, ctx)`, for each object of the kind.

        The handler is called after each change of the object, of a child of a kind in `owns`, and of a mapped object in
        `watches`, and every `resync` seconds. It returns None. To request another pass, it raises `fl.RequeueAfter` or
        `fl.Wait`. An `async def` handler runs on the event loop, a plain `def` handler in a thread.

        - `owns`: the kinds of the children. They are watched. `ctx.prune` deletes children that a pass does not apply.
        - `watches`: other kinds, each with a function that maps such an object (old and new) to the objects to
          reconcile: a name in the same namespace, a `(namespace, name)` tuple, or an object. The function may take a
          `ReadContext` as a second argument. With None the kind can be read, and its changes reconcile nothing.
        - `when`: a predicate. Objects for which it is false are skipped; their cleanup is not.
        - `ready`: the condition type that reports the result, if the kind's status can hold one. None disables it.
        - `concurrency`: how many objects are reconciled at the same time.
        - `rate_limit`: how many passes start per second, on average. The passes of one second may start at once.
        - `resync`: seconds after which every object is reconciled again.
        - `timeout`: seconds after which a pass fails.
        - `backoff_base`, `backoff_max`: seconds before the first retry after an error, and the longest wait.
        - `brake_after`: after how many passes in a row that rewrite the same field an object is in a write loop. inf
          disables the brake.
        - `brake_base`, `brake_max`: seconds that the passes over an object in a write loop wait, first and at most.
        - `name`: the controller's name in its field manager, metrics and logs. The default is the kind in lower case.

        A kind may be given as `fl.select(kind, labels=…)`: then the server sends only matching objects. With
        `fl.select(kind, when_changed=…)`, a predicate of the old and the new object decides which updates reconcile.

        Guarantees: after the last change of an object, at least one pass sees it. Passes over one object never
        overlap.

        Does not guarantee: one call for each change. Several changes may lead to one pass, and a pass may run without
        any change: the handler must be idempotent.

        Raises: DeclarationError, with the file and line of the handler, if the declaration cannot work.

        Example:
            @op.reconcile(Website, owns=[fl.Deployment], watches={fl.Secret: None})
            async def serve(site: fl.Object, ctx: fl.Context) -> None: ...
        """
        _check_kind("reconcile", kind)

        def declare(function: H) -> H:
            def reject(problem: str) -> DeclarationError:
                return DeclarationError(with_location(function_location(function), problem))

            check_arguments(function, ("obj", "ctx"))
            if not isinstance(owns, Iterable):
                raise reject(f"owns= takes a list of kinds: owns=[fl.{getattr(owns, 'kind', 'ConfigMap')}]")
            if not isinstance(watches, Mapping | None):
                raise reject("watches= takes a dict from kinds to functions or None: watches={fl.Secret: None}")
            source, children = source_of(kind), tuple(source_of(child) for child in owns)
            mappers = {source_of(watched): mapper for watched, mapper in (watches or {}).items()}
            for mapper in mappers.values():
                if mapper is not None:
                    check_arguments(mapper, ("obj",), ("obj", "view"), is_sync=True)
            if when is not None:
                check_arguments(when, ("obj",), is_sync=True)
            for item in (source, *children, *mappers):
                if item.when_changed is not None:
                    check_arguments(item.when_changed, ("old", "new"), is_sync=True)
            key = source.kind.key
            if key in self.controllers:
                raise reject(
                    f"{self.name} reconciles {source.kind} already: use one function for a kind, or two operators"
                )
            if any(item.cluster != HOME for item in (source, *children)):
                raise reject("another cluster can be watched only: owners and their children are in one cluster")
            try:
                settings = tuning.check_settings(
                    {
                        "concurrency": concurrency,
                        "rate_limit": rate_limit,
                        "resync": resync,
                        "timeout": timeout,
                        "backoff_base": backoff_base,
                        "backoff_max": backoff_max,
                        "brake_after": brake_after,
                        "brake_base": brake_base,
                        "brake_max": brake_max,
                    }
                )
            except ValueError as error:
                raise reject(str(error)) from None
            # The name depends neither on the function's name nor on the number of controllers: both change, and the
            # fields that the old field manager applied would stay.
            controller = name or source.kind.kind.lower()
            if any(other.name == controller for other in self.controllers.values()):
                raise reject(f"{self.name} has a controller {controller} already: choose another with name=")
            self.controllers[key] = Controller(controller, source, function, children, mappers, when, ready, settings)
            return function

        return declare

    def cleanup(self, kind: Kind, *, finalizer: str | None = None) -> Callable[[H], H]:
        """Declare a cleanup handler: call the decorated handler, `(obj, ctx)`, before an object of the kind is deleted.

        Guarantees: every object has the finalizer before its reconcile handler runs for the first time. The handler is
        retried until it returns, then the finalizer is removed. Finalizers of others stay.

        Does not guarantee: exactly one call. The handler must accept that its work is already done.

        Raises: DeclarationError, with the file and line of the handler, if the declaration cannot work.

        Example:
            @op.cleanup(Website)
            async def unregister(site: fl.Object, ctx: fl.Context) -> None: ...
        """
        _check_kind("cleanup", kind)

        def declare(function: H) -> H:
            where = function_location(function)
            check_arguments(function, ("obj", "ctx"))
            finalizer_name = finalizer or (f"{kind.group}/{self.name}" if kind.group else f"{self.name}/cleanup")
            if kind.key in self.cleanups:
                raise DeclarationError(
                    with_location(where, f"{self.name} cleans up {kind} already: use one function for a kind")
                )
            if "/" not in finalizer_name:
                raise DeclarationError(
                    with_location(where, f"a finalizer needs a domain of yours, such as example.com/{finalizer_name}")
                )
            self.cleanups[kind.key] = Cleanup(function, finalizer_name)
            return function

        return declare

    def index(self, kind: Kind, name: str) -> Callable[[IndexFunction], IndexFunction]:
        """Declare an index: the decorated function, `(obj)`, returns the strings under which an object is indexed.

        The kind is watched. Read the index with `ctx.indexed(kind, name, value)`. The function must depend on the
        object alone.

        Raises: DeclarationError, with the file and line of the function, if the declaration cannot work.

        Example:
            @op.index(fl.Pod, "node")
            def node_of(pod: fl.Object) -> list[str]:
                return [pod.spec["nodeName"]] if "nodeName" in pod.spec else []
        """
        _check_kind("index", kind)

        def declare(function: IndexFunction) -> IndexFunction:
            check_arguments(function, ("obj",), is_sync=True)
            if any((other.key, taken) == (kind.key, name) for other, taken, _ in self.indexes):
                raise DeclarationError(
                    with_location(
                        function_location(function),
                        f"{self.name} has an index {name} of {kind} already: choose another name",
                    )
                )
            self.indexes.append((kind, name, function))
            return function

        return declare

    def timer(self, seconds: float) -> Callable[[TimerFunction], TimerFunction]:
        """Declare a timer: call the decorated function, `(view)`, every `seconds` while this process is the leader.

        Guarantees: calls do not overlap. An exception is logged, and the timer continues.

        Does not guarantee: a fixed rate. The interval starts when the previous call has ended.

        Raises: DeclarationError if `seconds` is not greater than 0, or if the function takes the wrong arguments.

        Example:
            @op.timer(300)
            async def report(view: fl.ReadContext) -> None:
                view.log.info("%d websites", len(view.list(Website, everywhere=True)))
        """
        if not isinstance(seconds, int | float) or seconds <= 0:
            raise DeclarationError(
                with_location(
                    caller_location(), f"a timer needs an interval in seconds, such as @op.timer(60); got {seconds}"
                )
            )

        def declare(function: TimerFunction) -> TimerFunction:
            check_arguments(function, ("view",))
            self.timers.append((seconds, function))
            return function

        return declare

    def startup(self, function: HookFunction) -> HookFunction:
        """Declare a hook, `(resources)`, that runs before anything else. The hook fills the dict `ctx.resources`.

        Raises: DeclarationError if the function takes the wrong arguments. At run time, HookFailed if the hook raises.

        Example:
            @op.startup
            async def connect(resources: dict[str, Any]) -> None:
                resources["database"] = await open_database()
        """
        check_arguments(function, ("resources",))
        self.startups.append(function)
        return function

    def shutdown(self, function: HookFunction) -> HookFunction:
        """Declare a hook, `(resources)`, that runs after everything else has stopped.

        Guarantees: the hook is called also if a startup hook failed, and also if another shutdown hook raises.

        Raises: DeclarationError if the function takes the wrong arguments.
        """
        check_arguments(function, ("resources",))
        self.shutdowns.append(function)
        return function

    def resolve_settings(self, overrides: Mapping[str, Mapping[str, float]]) -> dict[str, Tuning]:
        """Return the settings of each controller in a run with these `settings` (see `Options`).

        Raises: DeclarationError if there is no such controller or setting, or if the values are not valid.
        """
        declared = {controller.name: controller.settings for controller in self.controllers.values()}
        return tuning.resolve(declared, {name: getattr(self, name) for name in tuning.SETTINGS}, overrides)

    def running(
        self, transport: Transport, world: World | None = None, **options: Unpack[Options]
    ) -> "AbstractAsyncContextManager[Running]":
        """Return an async context manager that runs the operator: `async with op.running(transport) as running`.

        Raises: DeclarationError if the declarations do not fit together.
        """
        from fairlead.runtime.running import Running

        return Running(self, transport, world or World(), **options)

    async def run(self, transport: Transport, world: World | None = None, **options: Unpack[Options]) -> None:
        """Run the operator until the task is cancelled, then finish the passes that have started.

        Raises: `fl.LeaseLost` if another process may have become the leader, HookFailed if a hook raised.
        """
        async with self.running(transport, world, **options) as running:
            await running.wait()

    def main(self) -> None:
        """Run the operator like `fairlead run`, with its command-line options. Call this at the end of a script."""
        from importlib import import_module

        # The command line is a higher layer. It is imported by name, only here, so that a file can be a program.
        import_module("fairlead.cli.run").run_as_script(self)


def _check_kind(decorator: str, kind: object) -> None:
    if not isinstance(kind, Kind | Source):
        raise DeclarationError(
            with_location(
                caller_location(),
                f"@op.{decorator} needs a kind first, such as @op.{decorator}(fl.ConfigMap); "
                f"got {getattr(kind, '__name__', None) or repr(kind)}",
            )
        )
