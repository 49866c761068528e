"""An operator at work on one server: started in order, stopped in the reverse one."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from fairlead.api.errors import UserError
from fairlead.api.kinds import kind
from fairlead.api.objects import Object
from fairlead.api.world import SystemClock, World
from fairlead.cache.recording import RecordingClient
from fairlead.client.client import Client
from fairlead.client.transport import Transport
from fairlead.queue import Priority, Queue, QueueClosed
from fairlead.runtime.adaptive_concurrency import AdaptiveConcurrency
from fairlead.runtime.context import ReadContext
from fairlead.runtime.controller import Reconciler
from fairlead.runtime.events import Recorder
from fairlead.runtime.handlers import ThreadPerCall, call_handler, call_hook, reject_coroutine
from fairlead.runtime.leases import Lease, LeaseLost
from fairlead.runtime.loop_monitor import LoopMonitor
from fairlead.runtime.metrics import Metrics, QueueMetrics
from fairlead.runtime.operator import Operator
from fairlead.runtime.services import Key, Services
from fairlead.runtime.sources import HOME, DeclarationError, source_of
from fairlead.runtime.transports import DryRun, Fenced
from fairlead.runtime.watched_kinds import WatchedKinds
from fairlead.writes import Writer

if TYPE_CHECKING:
    from fairlead.runtime.health import Health

# controller-runtime's numbers for the same two, so that a dashboard tells them apart
_PRIORITIES = {Priority.FRESH: "0", Priority.RESYNC: "-100"}
# A pod is given 30 s to end by default; a bit less lets the lease and the Events go out too.
GRACE = 25.0
# What was cancelled may tidy up; what takes no notice of it, or runs in a thread, is not waited for longer.
LAST_WORD = 1.0


class Running:
    """One run of an operator: what `op.running(…)` answers, with `Options` as its options.

    Leaving the block stops the sources, waits up to 25 seconds for what is under way (passes and timers), lets the
    lease go, writes the last Events and runs the shutdown hooks. What is still under way then is cancelled and, if it
    takes no notice, left behind; the lease runs out instead. After a lost lease nothing is waited for.
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
    ) -> None:
        _check(operator, clusters or {})
        self.operator = operator
        self.metrics = metrics = Metrics()
        self._world = world
        self._health_address = health
        self._fatal: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._background: set[asyncio.Task[Any]] = set()
        self._passes: set[asyncio.Task[None]] = set()
        self._watching = self._ready_to_work = False
        self.health: Health | None = None
        identity = f"{os.uname().nodename}_{world.uid()}"
        declared = operator.controllers.values()

        observer = QueueMetrics(metrics, [one.name for one in declared])
        queue: Queue[Key] = Queue(world, lane=lambda key: key.controller, observer=observer)
        concurrency = AdaptiveConcurrency(sum(c.concurrency for c in declared), world, queue.limit)

        def observe(method: str, code: str, seconds: float) -> None:
            metrics.requests.labels(code, method, "").inc()
            concurrency.observe(code)

        def client(transport: Transport) -> Client:
            return Client(transport, world, user_agent=operator.name, observe=observe)

        plain = client(transport)
        self.lease: Lease | None = None
        if lease_namespace is not None and not dry_run:  # what writes nothing need not lead, and a lease is a write
            slow = metrics.slowpath.labels(operator.name).inc
            self.lease = Lease(plain, world, operator.name, lease_namespace, identity, slow=slow)
        managers = {c.name: f"{operator.name}/{c.name}" for c in declared}

        def place(transport: Transport) -> tuple[Client, WatchedKinds, Writer]:
            """What belongs to one cluster. The lease at home fences what is written anywhere."""
            ours = [*managers.values(), *operator.formerly]
            watched = WatchedKinds(client(transport), world, namespaces, ours)
            if self.lease is not None:
                transport = Fenced(transport, self.lease)
            if dry_run:
                writing = client(DryRun(transport))
            else:
                writing = RecordingClient(
                    transport, world, user_agent=operator.name, observe=observe, cache=watched.cache
                )
            return (
                writing,
                watched,
                Writer(writing, world, operator.name, cache=watched, former_managers=operator.formerly),
            )

        self.client, self._watched, writer = place(transport)
        self._recorder = Recorder(self.client if dry_run else plain, world, operator.name, identity)
        self._threads = ThreadPerCall(operator.name)
        self.services = Services(
            world,
            self.client,
            self._watched,
            queue,
            writer,
            self._recorder,
            metrics,
            logging.getLogger(f"fairlead.{operator.name}"),
            dict(resources or {}),
            self._threads,
            dry_run,
            tries,
        )
        for name, elsewhere in (clusters or {}).items():
            there, watched, its_writer = place(elsewhere)
            self.services.clusters[name] = replace(self.services, client=there, watched=watched, writer=its_writer)
        self._reconcilers: dict[str, Reconciler] = {}
        for one in declared:
            cleanup = operator.cleanups.get(one.kind.key)
            self._reconcilers[one.name] = Reconciler(
                one, cleanup, writer.with_manager(managers[one.name]), self.services
            )
            queue.limit(one.concurrency, one.name)
            metrics.max_workers.labels(one.name).set(one.concurrency)
        self._lag = LoopMonitor(world, seen=self._lagged) if isinstance(world.clock, SystemClock) else None
        metrics.measure(self._measure)
        self._sources = contextlib.AsyncExitStack()
        self._stack = contextlib.AsyncExitStack()

    # Starting

    async def __aenter__(self) -> "Running":
        try:
            await self._start()
        except BaseException as error:
            await self.__aexit__(type(error), error, None)
            raise
        return self

    async def _start(self) -> None:
        for hook in reversed(self.operator.shutdowns):  # called in their order, each whatever the others raise
            self._stack.push_async_callback(call_hook, hook, self.services.resources, self._threads)
        for hook in self.operator.startups:
            await call_hook(hook, self.services.resources, self._threads)
        if self._health_address is not None:  # before the server is asked anything: it may be down for a while
            from fairlead.runtime.health import Health, address  # aiohttp's server, only when it is asked for

            host, port = address(self._health_address)
            self.health = Health(host, port, healthy=self.problems, ready=self.unready, metrics=self.metrics)
            await self._stack.enter_async_context(self.health)
        for reconciler in self._reconcilers.values():
            for source in reconciler.declared.sources:
                await self._watched_by_cluster[source.cluster].watch(source)
            reconciler.subscribe()
        for indexed, name, values in self.operator.indexes:
            await self._watched.watch(source_of(indexed))
            self._watched.reader(indexed).index(name, values)
        if self._lag is not None:
            self._spawn(self._lag.run(), "lag")
        self._spawn(self._recorder.run(), "events")
        for watched in self._watched_by_cluster.values():
            await self._sources.enter_async_context(watched.cache)
        self._watching = True
        self._spawn(self._lead(), "lead")

    @property
    def _watched_by_cluster(self) -> dict[str, WatchedKinds]:
        """The watched kinds of each cluster."""
        return {HOME: self._watched, **{name: services.watched for name, services in self.services.clusters.items()}}

    async def _lead(self) -> None:
        for watched in self._watched_by_cluster.values():
            await watched.cache.wait_for_sync()  # before the lease: a standby is warm when its turn comes
        if self.lease is not None:
            leading = self.metrics.leading.labels(self.lease.name)
            leading.set(0)
            await self.lease.acquire()
            leading.set(1)
            self._spawn(self._keep(self.lease), "lease")
        self._ready_to_work = True
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
        """Start something of the user's that is let finish at the end."""
        task = asyncio.create_task(work, name=name)
        self._passes.add(task)
        task.add_done_callback(self._passes.discard)
        return task

    async def _keep(self, lease: Lease) -> None:
        await lease.keep()
        raise LeaseLost(f"lease {lease.namespace}/{lease.name} is lost: another process may lead by now")

    async def _resync(self, reconciler: Reconciler) -> None:
        while True:
            await asyncio.sleep(reconciler.declared.resync * self._world.random.uniform(0.9, 1.1))
            reconciler.resync()

    async def _tick(self, seconds: float, function: Any) -> None:
        name = getattr(function, "__name__", "without a name")

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

    # Being watched

    async def wait(self) -> None:
        """Until something ends it: raises LeaseLost, or what broke."""
        await asyncio.shield(self._fatal)

    async def quiet(self) -> None:
        """Wait until nothing is left to do now: every watch is fed and has told our own writes, and no key is ready,
        held or backing off. Looks asked for by `RequeueAfter`, `Wait` or a resync may still come. Ends as well when a
        watch is given up.
        """
        while not (
            self._ready_to_work
            and all(watched.cache.is_caught_up for watched in self._watched_by_cluster.values())
            and self.services.queue.is_idle
        ):
            if self.given_up:
                return
            if self._fatal.done():
                await self._fatal
            await asyncio.sleep(0.01)  # four parties would have to tell

    async def seen(self, obj: Object) -> None:
        """Wait until this version of an object of a watched kind has been told, and has woken whom it wakes."""
        await self._watched.reader(kind(obj.api_version, obj.kind)).wait_until(obj.resource_version)

    async def differences(self) -> list[str]:
        """Where the local view is not what the server has at the same version: see `Cache.find_differences`."""
        return [
            difference
            for watched in self._watched_by_cluster.values()
            for difference in await watched.cache.find_differences()
        ]

    def resync(self) -> None:
        """Look at everything again."""
        for reconciler in self._reconcilers.values():
            reconciler.resync()

    @property
    def failures(self) -> Mapping[Key, str]:
        """What failed at its last look, and how."""
        return dict(self.services.failures)

    @property
    def given_up(self) -> Mapping[str, str]:
        """The watches that failed as often in a row as `tries` allows, and how. They are tried again all the same."""
        most = self.services.tries
        told = [
            (name, health) for name, watched in self._watched_by_cluster.items() for health in watched.cache.health()
        ]
        return {
            _at(health.scope, name): health.error or "" for name, health in told if most and health.failures >= most
        }

    def problems(self) -> dict[str, str]:
        """What is wrong, for a liveness probe: a blocked loop. A server that cannot be reached is not our death."""
        problem = self._lag.problem() if self._lag is not None else None
        return {"loop": problem} if problem else {}

    def unready(self) -> dict[str, str]:
        """What is missing, for a readiness probe: watches that were not fed yet, or not for too long."""
        problems = self.problems()
        if not self._watching:
            problems["watches"] = "the server has not said yet which kinds there are"
        for name, watched in self._watched_by_cluster.items():
            problems |= {_at(scope, name): problem for scope, problem in watched.problems().items()}
        return problems

    def _lagged(self, seconds: float) -> None:
        self.metrics.lag.set(seconds)
        if self._lag is not None and seconds >= self._lag.threshold:
            self.metrics.blocked.inc()

    def _measure(self) -> None:
        metrics, queue = self.metrics, self.services.queue
        held: dict[str, list[float]] = {name: [] for name in self._reconcilers}
        for key, seconds in queue.in_progress().items():
            held[key.controller].append(seconds)
        for name, seconds_held in held.items():
            for priority, label in _PRIORITIES.items():
                metrics.depth.labels(name, name, label).set(queue.depth(name, priority))
            metrics.unfinished.labels(name, name).set(sum(seconds_held))
            metrics.longest.labels(name, name).set(max(seconds_held, default=0.0))
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
            await _cancel(self._background - keep)  # timers, resyncs, dispatch: no new work
            finished = await self._finish(0.0 if lost else GRACE)
            await _cancel(self._background)
            if self.lease is not None and finished and not lost:
                await self.lease.release()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5.0):
                    await self._recorder.flush()
        finally:
            for task in self._passes | self._background:  # none, unless leaving was itself cut short
                task.cancel()
            if self._fatal.done():
                self._fatal.exception()  # told by wait(), or nobody asked
            await self._stack.aclose()

    async def _finish(self, grace: float) -> bool:
        """Let what is under way end, then end it. Answers whether all of it ended by itself.

        If not, a write of it may still be on the wire, or a thread about to send one: no moment to let a lease go.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self.services.queue.close(drain=False)  # what is ready is looked at by whoever starts next
                if self._passes:
                    await asyncio.wait(set(self._passes))
        late = set(self._passes)
        await _cancel(late, timeout=LAST_WORD)
        for task in late & self._passes:
            self.services.log.error("%s does not end: left behind", task.get_name())
        return not late


def _check(operator: Operator, clusters: Mapping[str, Transport]) -> None:
    """What can be seen to go wrong before anything runs."""
    for key in operator.cleanups.keys() - operator.controllers.keys():
        raise DeclarationError(f"{operator.name} cleans up {key[1]} and does not reconcile it: declare both")
    for key, controller in operator.controllers.items():
        if key in operator.cleanups and (controller.source.labels or controller.source.fields):
            raise DeclarationError(
                f"{operator.name} cleans up {key[1]} and selects it: one that leaves the selection would keep its "
                f"finalizer for ever; reconcile all of them and leave some alone with when="
            )
    named = {source.cluster for one in operator.controllers.values() for source in one.sources} - {HOME}
    if missing := sorted(named - clusters.keys()):
        raise DeclarationError(
            f"{operator.name} watches cluster {missing[0]}: give it one, clusters={{{missing[0]!r}: …}}"
        )


def _at(scope: str, cluster: str) -> str:
    return f"{scope} at {cluster}" if cluster else scope


async def _cancel(tasks: Iterable[asyncio.Task[Any]], timeout: float | None = None) -> None:
    tasks = set(tasks)
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=timeout)
