"""One run of an operator: start, leader election, passes, health and shutdown."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from fairlead.api.errors import UserError
from fairlead.api.history import REQUEST, History
from fairlead.api.kinds import kind
from fairlead.api.objects import Object
from fairlead.api.world import SystemClock, World
from fairlead.cache.recording import RecordingClient
from fairlead.client.client import Client
from fairlead.client.transport import Transport
from fairlead.queue import Priority, Queue, QueueClosed
from fairlead.runtime import tuning
from fairlead.runtime.adaptive_concurrency import AdaptiveConcurrency
from fairlead.runtime.brake import Brake
from fairlead.runtime.controller import Reconciler
from fairlead.runtime.events import Recorder
from fairlead.runtime.handlers import ThreadPerCall, call_handler, call_hook, reject_coroutine
from fairlead.runtime.history_log import HistoryLog
from fairlead.runtime.leases import Lease, LeaseLost
from fairlead.runtime.loop_monitor import LoopMonitor
from fairlead.runtime.metrics import Metrics, QueueMetrics
from fairlead.runtime.operator import Operator
from fairlead.runtime.read_context import ReadContext
from fairlead.runtime.services import Key, Services
from fairlead.runtime.shutdown import ShutdownBudget, ShutdownHooks
from fairlead.runtime.sources import HOME, DeclarationError, source_of
from fairlead.runtime.transports import DryRunTransport, FencedTransport
from fairlead.runtime.watched_kinds import WatchedKinds
from fairlead.writes import Writer

if TYPE_CHECKING:
    from fairlead.runtime.health import Health

# The priorities of controller-runtime for the same two cases, so that dashboards distinguish them.
_PRIORITIES = {Priority.FRESH: "0", Priority.RESYNC: "-100"}


class Running:
    """One run of an operator: `async with op.running(…) as running`. The arguments are `Options`.

    Leaving the block stops the watches and waits for the passes and timers that have started. Then it releases the
    lease, writes the remaining Events and calls the shutdown hooks. `shutdown_timeout` bounds it all, if user code does
    not block the event loop; `shutdown.ShutdownBudget` says how much each phase gets.

    Guarantees: the lease is released only if every pass has ended. Otherwise it expires.

    Does not guarantee: that every pass completes. After 55 % of the time, or after a lost lease, passes are cancelled.
    A pass that ignores the cancellation is abandoned.

    Raises: DeclarationError if the declarations do not fit together, HookFailed if a startup hook raises.
    """

    def __init__(
        self,
        operator: Operator,
        transport: Transport,
        world: World,
        *,
        namespaces: Iterable[str] = (),
        lease_namespace: str | None = None,
        health: str | None = None,
        dry_run: bool = False,
        resources: Mapping[str, Any] | None = None,
        clusters: Mapping[str, Transport] | None = None,
        tries: int | None = None,
        subscribers: Iterable[Callable[["Running"], object]] = (),
        settings: Mapping[str, Mapping[str, float]] | None = None,
        request_timeout: float | None = None,
        shutdown_timeout: float | None = None,
    ) -> None:
        _check_declarations(operator, clusters or {})
        self.operator = operator
        self.metrics = metrics = Metrics(operator.metrics)
        self.history = history = History(world.clock, operator.name)
        """What the passes do. Subscribe to it before the run starts."""
        self._world = world
        self._health_address = health
        self._fatal: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._background: set[asyncio.Task[Any]] = set()
        self._passes: set[asyncio.Task[None]] = set()
        self._watching = self._is_leading = False
        self.health: Health | None = None
        self._servers: list[contextlib.AbstractAsyncContextManager[Any]] = []
        identity = f"{os.uname().nodename}_{world.uid()}"
        declared = operator.controllers.values()
        self.tunings = tunings = operator.resolve_settings(settings or {})
        """The settings of each controller, by its name."""
        timeout = operator.request_timeout if request_timeout is None else request_timeout
        self._budget = ShutdownBudget(operator.shutdown_timeout if shutdown_timeout is None else shutdown_timeout)
        tuning.check_settings({"request_timeout": timeout, "shutdown_timeout": self._budget.total})

        observer = QueueMetrics(metrics, [controller.name for controller in declared])
        queue: Queue[Key] = Queue(world, lane=lambda key: key.controller, observer=observer)
        concurrency = AdaptiveConcurrency(sum(each.concurrency for each in tunings.values()), world, queue.limit)

        def observe(method: str, path: str, code: str, seconds: float) -> None:
            metrics.requests.labels(code, method, "").inc()
            concurrency.observe(code)
            if history.wants(REQUEST):
                history.record(REQUEST, method, path=path, outcome=code, seconds=seconds)

        def make_client(transport: Transport) -> Client:
            return Client(transport, world, user_agent=operator.name, timeout=timeout, observe=observe)

        plain_client = make_client(transport)
        self.lease: Lease | None = None
        if lease_namespace is not None and not dry_run:  # A dry run needs no leader, and a lease would be a write.
            count = metrics.slowpath.labels(operator.name).inc
            self.lease = Lease(plain_client, world, operator.name, lease_namespace, identity, on_slow_renewal=count)
        managers = {controller.name: f"{operator.name}/{controller.name}" for controller in declared}

        def connect(transport: Transport, cluster: str = "") -> tuple[Client, WatchedKinds, Writer]:
            """Return the client, caches and writer of one cluster. The lease also guards writes to other clusters."""
            ours = [*managers.values(), *operator.formerly]
            watched = WatchedKinds(make_client(transport), world, namespaces, ours)
            if self.lease is not None:
                transport = FencedTransport(transport, self.lease)
            writing_client = RecordingClient(
                DryRunTransport(transport) if dry_run else transport,
                world,
                user_agent=operator.name,
                timeout=timeout,
                observe=observe,
                cache=watched.cache,
                history=history,
                cluster=cluster,
                is_dry_run=dry_run,
            )
            writer = Writer(
                writing_client,
                world,
                operator.name,
                cache=watched,
                former_managers=operator.formerly,
                history=history,
                cluster=cluster,
            )
            return writing_client, watched, writer

        self.client, self._watched, writer = connect(transport)
        self._recorder = Recorder(self.client if dry_run else plain_client, world, operator.name, identity)
        self._threads = ThreadPerCall(operator.name)
        self.services = Services(
            world,
            self.client,
            self._watched,
            queue,
            writer,
            self._recorder,
            metrics,
            history,
            logging.getLogger(f"fairlead.{operator.name}"),
            dict(resources or {}),
            self._threads,
            dry_run,
            tries,
        )
        for name, cluster_transport in (clusters or {}).items():
            client, watched, cluster_writer = connect(cluster_transport, name)
            self.services.clusters[name] = replace(
                self.services, client=client, watched=watched, writer=cluster_writer, cluster=name
            )
        self.brake = Brake(self.services, tunings)
        self._reconcilers: dict[str, Reconciler] = {}
        for controller in declared:
            cleanup = operator.cleanups.get(controller.kind.key)
            name, tuned = controller.name, tunings[controller.name]
            self._reconcilers[name] = Reconciler(
                controller, tuned, cleanup, writer.with_manager(managers[name]), self.services, self.brake
            )
            queue.limit(tuned.concurrency, name)
            queue.limit_rate(tuned.rate_limit, name)
            queue.set_backoff(tuned.backoff_base, tuned.backoff_max, name)
            metrics.max_workers.labels(name).set(tuned.concurrency)
        self._loop_monitor = LoopMonitor(world, on_lag=self._on_lag) if isinstance(world.clock, SystemClock) else None
        metrics.measure(self._measure)
        for subscribe in (*DEFAULT_SUBSCRIBERS, *subscribers):
            subscribe(self)
        self._sources = contextlib.AsyncExitStack()
        self._stack = contextlib.AsyncExitStack()

    def serve(self, server: contextlib.AbstractAsyncContextManager[Any]) -> None:
        """Enter this context manager when the run starts, and exit it when the run has stopped.

        A subscriber that has a server of its own calls this method.
        """
        self._servers.append(server)

    # Starting

    async def __aenter__(self) -> "Running":
        try:
            await self._start()
        except BaseException as error:
            await self.__aexit__(type(error), error, None)
            raise
        return self

    async def _start(self) -> None:
        hooks = ShutdownHooks(self._budget, self.services.resources, self._threads)
        for hook in reversed(self.operator.shutdowns):  # Called in order of declaration, each even if another raises.
            self._stack.push_async_callback(hooks.call, hook)
        for hook in self.operator.startups:
            await call_hook(hook, self.services.resources, self._threads)
        if self._health_address is not None:  # First, because the API server may be down for a while.
            from fairlead.runtime.health import Health, address  # It loads aiohttp's server.

            host, port = address(self._health_address)
            self.health = Health(
                host, port, healthy=self.liveness_problems, ready=self.readiness_problems, metrics=self.metrics
            )
            await self._stack.enter_async_context(self.health)
        for server in self._servers:
            await self._stack.enter_async_context(server)
        if not self._reconcilers:
            self.services.log.warning(
                "the operator %s has no controllers, so it reconciles nothing: declare one with @op.reconcile(KIND)",
                self.operator.name,
            )
        sources = [source for reconciler in self._reconcilers.values() for source in reconciler.declared.sources]
        # A kind that one controller needs is not optional.
        required = {(source.cluster, source.kind.key) for source in sources if not source.optional}
        for source in sources:
            optional = (source.cluster, source.kind.key) not in required
            await self._watched_by_cluster[source.cluster].watch(replace(source, optional=optional))
        for reconciler in self._reconcilers.values():
            reconciler.subscribe()
        for indexed, name, values in self.operator.indexes:
            await self._watched.watch(source_of(indexed))
            self._watched.reader(indexed).index(name, values)
        if self._loop_monitor is not None:
            self._spawn(self._loop_monitor.run(), "lag")
        self._spawn(self._recorder.run(), "events")
        for watched in self._watched_by_cluster.values():
            await self._sources.enter_async_context(watched.cache)
        self._watching = True
        self._spawn(self._lead(), "lead")

    @property
    def _watched_by_cluster(self) -> dict[str, WatchedKinds]:
        """The watched kinds by the name of the cluster."""
        return {HOME: self._watched, **{name: services.watched for name, services in self.services.clusters.items()}}

    async def _lead(self) -> None:
        for watched in self._watched_by_cluster.values():
            await watched.cache.wait_for_sync()  # Before the lease, so that a standby has full caches.
        if self.lease is not None:
            leading = self.metrics.leading.labels(self.lease.name)
            leading.set(0)
            await self.lease.acquire()
            leading.set(1)
            self._spawn(self._keep(self.lease), "lease")
        self._is_leading = True
        for seconds, function in self.operator.timers:
            self._spawn(self._tick(seconds, function), f"timer {getattr(function, '__name__', '')}")
        for reconciler in self._reconcilers.values():
            self._spawn(self._resync(reconciler), f"resync {reconciler.name}")
        self._spawn(self._dispatch(), "dispatch")

    # Working

    async def _dispatch(self) -> None:
        queue = self.services.queue
        with contextlib.suppress(QueueClosed):
            while True:
                key = await queue.get()
                self._begin(self._reconcilers[key.controller].handle(key), str(key))

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Start a task that runs user code. The shutdown waits for this task."""
        task = asyncio.create_task(work, name=name)
        self._passes.add(task)
        task.add_done_callback(self._passes.discard)
        return task

    async def _keep(self, lease: Lease) -> None:
        await lease.keep()
        raise LeaseLost(f"lease {lease.namespace}/{lease.name} is lost: another process may be the leader now")

    async def _resync(self, reconciler: Reconciler) -> None:
        while True:
            await asyncio.sleep(reconciler.tuning.resync * self._world.random.uniform(0.9, 1.1))
            reconciler.resync()

    async def _tick(self, seconds: float, function: Any) -> None:
        name = getattr(function, "__name__", "(no name)")

        async def once() -> None:
            try:
                returned = await call_handler(function, ReadContext(self.services), timeout=None, threads=self._threads)
                reject_coroutine(function, returned)
            except UserError as error:
                self.services.log.error("timer %s failed, next run in %g s: %s", name, seconds, error)
            except Exception:
                self.services.log.exception("timer %s failed, next run in %g s", name, seconds)

        while True:
            await asyncio.sleep(seconds)
            await asyncio.wait([self._begin(once(), f"timer {name}")])

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=f"{self.operator.name} {name}")
        self._background.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not self._fatal.done():
            self._fatal.set_exception(error)

    # Health and tests

    @property
    def is_leading(self) -> bool:
        """Whether the caches are filled and this process holds the lease, if there is one. Only then passes start."""
        return self._is_leading

    async def wait(self) -> None:
        """Wait until the run fails, and raise its error, such as LeaseLost."""
        await asyncio.shield(self._fatal)

    async def wait_until_idle(self) -> None:
        """Wait until every watch has reported our own writes, and no key is ready, in progress or backing off.

        Does not wait for passes that `RequeueAfter`, `Wait` or a resync has scheduled. Also returns if a watch fails
        (see `failing_watches`).
        """
        while not (
            self._is_leading
            and all(watched.cache.is_caught_up for watched in self._watched_by_cluster.values())
            and self.services.queue.is_idle
        ):
            if self.failing_watches:
                return
            if self._fatal.done():
                await self._fatal
            await asyncio.sleep(0.01)  # Polling is simpler than events of four parties.

    async def wait_until_seen(self, obj: Object) -> None:
        """Wait until the watch has reported this version of the object, and its keys are in the queue."""
        await self._watched.reader(kind(obj.api_version, obj.kind)).wait_until(obj.resource_version)

    async def find_differences(self) -> list[str]:
        """Compare the caches with the server at the same resourceVersion. See `Cache.find_differences`."""
        return [
            difference
            for watched in self._watched_by_cluster.values()
            for difference in await watched.cache.find_differences()
        ]

    def resync(self) -> None:
        """Add every object of every controller to the queue for another pass."""
        for reconciler in self._reconcilers.values():
            reconciler.resync()

    @property
    def failures(self) -> Mapping[Key, str]:
        """The error message of each object whose last pass failed."""
        return dict(self.services.failures)

    @property
    def failing_watches(self) -> Mapping[str, str]:
        """The watches that failed several times in a row, with their errors. They are still retried."""
        tries = self.services.tries
        watches = [
            (name, health) for name, watched in self._watched_by_cluster.items() for health in watched.cache.health()
        ]
        return {
            _at(health.scope, name): health.error or ""
            for name, health in watches
            if tries and health.failures >= tries
        }

    def liveness_problems(self) -> dict[str, str]:
        """Return the problems for the liveness probe: a blocked event loop.

        An unreachable API server is not a liveness problem, because a restart of the operator does not help.
        """
        problem = self._loop_monitor.problem() if self._loop_monitor is not None else None
        return {"loop": problem} if problem else {}

    def readiness_problems(self) -> dict[str, str]:
        """Return the problems for the readiness probe: watches that have not listed yet, or are stale."""
        problems = self.liveness_problems()
        if not self._watching:
            problems["watches"] = "discovery of the served kinds is not complete"
        for name, watched in self._watched_by_cluster.items():
            problems |= {_at(scope, name): problem for scope, problem in watched.problems().items()}
        return problems

    def _on_lag(self, seconds: float) -> None:
        self.metrics.lag.set(seconds)
        if self._loop_monitor is not None and seconds >= self._loop_monitor.threshold:
            self.metrics.blocked.inc()

    def _measure(self) -> None:
        metrics, queue = self.metrics, self.services.queue
        durations: dict[str, list[float]] = {name: [] for name in self._reconcilers}
        for key, seconds in queue.in_progress().items():
            durations[key.controller].append(seconds)
        for name, seconds_running in durations.items():
            for priority, label in _PRIORITIES.items():
                metrics.depth.labels(name, name, label).set(queue.depth(name, priority))
            metrics.unfinished.labels(name, name).set(sum(seconds_running))
            metrics.longest.labels(name, name).set(max(seconds_running, default=0.0))
            metrics.braked.labels(name).set(self.brake.braked_objects(name))
        for name, watched in self._watched_by_cluster.items():
            for scope, age in watched.staleness().items():
                metrics.staleness.labels(_at(scope, name)).set(age)

    # Stopping

    async def __aexit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lost = isinstance(error, LeaseLost)
        keep = {task for task in self._background if task.get_name().endswith((" lease", " events", " lag"))}
        try:
            await self._sources.aclose()
            for reconciler in self._reconcilers.values():
                reconciler.stop()
            self.brake.stop()
            await _cancel(self._background - keep)  # Timers, resyncs and dispatch: nothing new starts.
            finished = await self._finish(0.0 if lost else self._budget.passes)
            await _cancel(self._background)
            if self.lease is not None and finished and not lost:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._budget.lease):
                        await self.lease.release()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._budget.events):
                    await self._recorder.flush()
        finally:
            for task in self._passes | self._background:  # There are none, unless the stop itself was cancelled.
                task.cancel()
            if self._fatal.done():
                self._fatal.exception()  # Mark it as retrieved: wait() has raised it, or nobody waits.
            await self._stack.aclose()

    async def _finish(self, grace: float) -> bool:
        """Wait up to `grace` seconds for the started passes, then cancel them. Return whether none was cancelled.

        If a pass was cancelled, its write may still arrive at the server, so the lease must not be released.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self.services.queue.close(drain=False)  # The next run reconciles the waiting keys.
                if self._passes:
                    await asyncio.wait(set(self._passes))
        late = set(self._passes)
        await _cancel(late, timeout=self._budget.cancellation)
        for task in late & self._passes:
            self.services.log.error("%s does not end after its cancellation and is abandoned", task.get_name())
        return not late


def _check_declarations(operator: Operator, clusters: Mapping[str, Transport]) -> None:
    """Raise DeclarationError if the declarations of an operator cannot work together."""
    for key in operator.cleanups.keys() - operator.controllers.keys():
        raise DeclarationError(
            f"{operator.name} has a cleanup handler for {key[1]} and no reconcile handler: declare both"
        )
    for key, controller in operator.controllers.items():
        if key in operator.cleanups and (controller.source.labels or controller.source.fields):
            raise DeclarationError(
                f"{operator.name} has a cleanup handler for {key[1]} and a selector: an object that stops matching "
                f"would keep its finalizer forever; reconcile all objects and skip some with when="
            )
    declared = {source.cluster for controller in operator.controllers.values() for source in controller.sources}
    if missing := sorted(declared - {HOME} - clusters.keys()):
        raise DeclarationError(
            f"{operator.name} watches the cluster {missing[0]}: add it with clusters={{{missing[0]!r}: …}}"
        )


def _at(scope: str, cluster: str) -> str:
    return f"{scope} at {cluster}" if cluster else scope


async def _cancel(tasks: Iterable[asyncio.Task[Any]], timeout: float | None = None) -> None:
    tasks = set(tasks)
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=timeout)


def _subscribe_metrics(running: Running) -> None:
    running.metrics.subscribe(running.history)


def _subscribe_log(running: Running) -> None:
    HistoryLog(running.services.log).subscribe(running.history)


def _subscribe_brake(running: Running) -> None:
    running.brake.subscribe(running.history)


DEFAULT_SUBSCRIBERS: tuple[Callable[[Running], object], ...] = (
    _subscribe_metrics,
    _subscribe_log,
    _subscribe_brake,
)
"""What subscribes to the history of every run."""
