"""One controller at work: what wakes its keys, and what a pass over a key is."""

import asyncio
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from fairlead import writes
from fairlead.api import backoff
from fairlead.api.errors import may_have_happened
from fairlead.api.objects import Object
from fairlead.cache import Change, Handler
from fairlead.queue import Priority
from fairlead.runtime import logs, pass_results
from fairlead.runtime.context import Context, ReadContext
from fairlead.runtime.handlers import HandlerTimeout, call_handler
from fairlead.runtime.operator import Cleanup, Controller, Mapper
from fairlead.runtime.outcomes import RequeueAfter, Terminal, Wait
from fairlead.runtime.pass_results import NOTHING_TO_REPORT, PassResult, QueueAction
from fairlead.runtime.services import Key, Services
from fairlead.runtime.sources import HOME
from fairlead.runtime.transports import NotLeading
from fairlead.writes import StatusReport, Writer, finalizers, status
from fairlead.writes.errors import ObjectDeleting, WriteError

# A function that raised may do so on every change: each look at everything waits longer than the one before.
_CATCH_UP = 1.0, 300.0


class Reconciler:
    """Runs one `@op.reconcile` and the `@op.cleanup` that goes with it."""

    def __init__(self, declared: Controller, cleanup: Cleanup | None, writer: Writer, services: Services) -> None:
        self.name = declared.name
        self.declared = declared
        self._cleanup = cleanup
        self._writer = writer
        self._services = services
        self._errors: dict[Key, int] = {}  # failures in a row
        self._doubts: set[Key] = set()  # a write's answer was lost there
        self._catching_up: asyncio.TimerHandle | None = None
        self._unmapped_in_a_row = 0
        # What the kind's status turned out not to hold; learnt from the first answer without it.
        self._holds_condition = self._holds_observed = True
        metrics = services.metrics  # looked up once: a label costs as much as a queue's turn
        self._working = metrics.workers.labels(self.name)
        self._seconds = metrics.seconds.labels(self.name)
        self._results = {word: metrics.reconciles.labels(self.name, word) for word in pass_results.RESULTS}

    # What wakes a key

    def subscribe(self) -> None:
        """Hear of every change to the primaries, the children and what is mapped."""
        local = self._services.local
        local.subscribe(self.declared.kind, self._primary)
        for source in self.declared.owns:
            local.subscribe(source.kind, self._child)
        for source, mapper in self.declared.watches.items():
            if mapper is not None:
                there = local if source.cluster == HOME else self._services.clusters[source.cluster].local
                there.subscribe(source.kind, self._mapped(mapper))

    def resync(self) -> None:
        """Look at everything again, after whatever is fresh."""
        for namespace, name in self._services.local.keys(self.declared.kind):
            self._wake(namespace, name, Priority.RESYNC)

    def _wake(self, namespace: str | None, name: str, priority: Priority = Priority.FRESH) -> None:
        self._services.queue.add(Key(self.name, namespace, name), priority=priority)

    def _primary(self, change: Change) -> None:
        self._wake(change.namespace, change.name, Priority.RESYNC if change.initial else Priority.FRESH)

    def _child(self, change: Change) -> None:
        if change.initial:
            return  # the primary is in a first list too
        kind = self.declared.kind
        owners = {
            owner.name
            for snapshot in (change.old, change.new)
            for owner in (snapshot.owners() if snapshot is not None else ())
            if owner.controller and owner.kind == kind.kind and owner.api_version.rpartition("/")[0] == kind.group
        }
        for name in owners:
            self._wake(change.namespace if kind.namespaced else None, name)

    def _mapped(self, mapper: Mapper) -> Handler:
        view = (ReadContext(self._services),) if len(inspect.signature(mapper).parameters) > 1 else ()

        def handle(change: Change) -> None:
            if change.initial:
                return
            wanted: set[tuple[str | None, str]] = set()
            # the old object too: what it pointed at has lost something
            for snapshot in (change.old, change.new):
                if snapshot is not None:
                    try:
                        wanted.update(self._keys(mapper(snapshot.object(), *view), change.namespace))
                    except Exception:
                        self._unmapped(mapper, change)
                    else:
                        self._unmapped_in_a_row = 0
            for namespace, name in wanted:
                self._wake(namespace, name)

        return handle

    def _unmapped(self, mapper: Mapper, change: Change) -> None:
        """Nobody can say whom that change concerns: then it concerns all, soon, and once for many such changes."""
        self._services.metrics.unmapped.labels(self.name).inc()
        if self._catching_up is not None and not self._catching_up.cancelled():
            return
        self._unmapped_in_a_row += 1
        pause = backoff.delay(self._unmapped_in_a_row, *_CATCH_UP, self._services.world)
        self._services.log.exception(
            "%s raised on %s/%s: looking at every %s in %.0f s instead",
            getattr(mapper, "__name__", "a function in watches="),
            change.namespace,
            change.name,
            self.declared.kind.kind,
            pause,
        )
        self._catching_up = asyncio.get_running_loop().call_later(pause, self._catch_up)

    def _catch_up(self) -> None:
        self._catching_up = None
        self.resync()

    def stop(self) -> None:
        """Wake nobody of its own accord any more."""
        if self._catching_up is not None:
            self._catching_up.cancel()

    def _keys(
        self, named: Iterable[str | tuple[str | None, str] | Object], namespace: str | None
    ) -> Iterable[tuple[str | None, str]]:
        for one in named:
            match one:
                case str():
                    yield (namespace if self.declared.kind.namespaced else None, one)
                case Object():
                    yield one.namespace, one.name
                case _:
                    yield one

    # One pass

    async def handle(self, key: Key) -> None:
        """Look at a key and give it back to the queue, whatever happens."""
        reconcile = f"{self._services.world.random.getrandbits(32):08x}"
        result = NOTHING_TO_REPORT
        try:
            with (
                self._working.track_inprogress(),
                logs.fields(controller=self.name, namespace=key.namespace, name=key.name, reconcile=reconcile),
            ):
                started = asyncio.get_running_loop().time()
                result = await self._pass(key)
                self._seconds.observe(asyncio.get_running_loop().time() - started)
                self._results[result.metric_label].inc()
        finally:
            self._give_back(key, result)

    def _give_back(self, key: Key, result: PassResult) -> None:
        queue = self._services.queue
        if result.failed:
            self._services.failures[key] = str(result.error)
        else:
            self._services.failures.pop(key, None)
        if result.after is not None:
            queue.add(key, after=result.after)
        match result.next:
            case QueueAction.RETRY:
                self._errors[key] = errors = self._errors.get(key, 0) + 1
                if self._services.tries is None or errors < self._services.tries:
                    queue.retry(key)
                else:
                    queue.done(key)
            case QueueAction.CONFLICT:
                queue.conflict(key)
            case QueueAction.DONE:
                self._errors.pop(key, None)
                queue.done(key)

    async def _pass(self, key: Key) -> PassResult:
        obj = None
        try:
            obj = await self._look(key)
            if obj is None:
                return NOTHING_TO_REPORT
            ctx = Context(self._services, self._writer, self.declared.kind, obj, self.name)
            result = await self._run(obj, ctx)
        except NotLeading:
            return NOTHING_TO_REPORT  # on the way out; the next leader looks at everything
        except Exception as error:  # contained: one object's trouble is not another's
            result = self._failed(key, obj, error)
        if obj is None or result is NOTHING_TO_REPORT:
            return result
        try:
            await self._report(obj, ctx.report, result, key)
        except NotLeading:
            return NOTHING_TO_REPORT
        except Exception as error:
            unreported = self._failed(key, obj, error)
            return result if result.failed else unreported.by(result.after)
        return result

    async def _look(self, key: Key) -> Object | None:
        """The object as the local view has it; as the server has it if nobody knows what the last pass did."""
        kind = self.declared.kind
        if key in self._doubts:
            live = await ReadContext(self._services).live.get(kind, key.name, key.namespace)
            if live is not None:
                self._services.local.observe(kind, live)
            self._doubts.discard(key)
        return self._services.local.get(kind, key.name, key.namespace)

    async def _run(self, obj: Object, ctx: Context) -> PassResult:
        """The function on the object, and what belongs around it. NOTHING when there is nothing to report."""
        declared, cleanup = self.declared, self._cleanup
        if obj.deleting:
            if cleanup is None or cleanup.finalizer not in obj.finalizers:
                return NOTHING_TO_REPORT
            returned = await self._call(cleanup.clean, obj, ctx)
            pass_results.from_return_value(returned, "cleanup")
            if isinstance(returned, RequeueAfter):
                return PassResult("requeue_after", QueueAction.DONE, False, "CleaningUp", after=returned.seconds)
            await finalizers.remove(self._writer, declared.kind, obj, cleanup.finalizer)
            return NOTHING_TO_REPORT
        if declared.when is not None and not declared.when(obj):
            return NOTHING_TO_REPORT
        if cleanup is not None:
            try:
                await finalizers.add(self._writer, declared.kind, obj, cleanup.finalizer)
            except ObjectDeleting:
                return NOTHING_TO_REPORT  # Nothing was done yet, so there is nothing to clean up.
        result = pass_results.from_return_value(await self._call(declared.reconcile, obj, ctx), self.name)
        await self._prune(obj, ctx)
        return result

    async def _call(self, function: Callable[..., Any], obj: Object, ctx: Context) -> Any:
        return await call_handler(function, obj, ctx, timeout=self.declared.timeout, threads=self._services.threads)

    async def _prune(self, obj: Object, ctx: Context) -> None:
        for source in self.declared.owns:
            kind = source.kind
            # by group and kind: the version that was applied need not be the one that is watched
            keep = [(ns, name) for group, named, ns, name in ctx.applied if (group, named) == (kind.group, kind.kind)]
            children = self._services.local.owned_by(kind, obj.uid, but=keep)
            for child in await writes.prune(self._writer, obj, kind, children, keep):
                ctx.log.info("pruned %s %s: no longer applied", child.kind, child.name)

    async def _report(self, obj: Object, report: StatusReport, result: PassResult, key: Key) -> None:
        """Write the status, once, if the kind has one and there is something to say."""
        ready = self.declared.ready
        if result.next is QueueAction.CONFLICT:
            return  # the pass was made on something old: what it gathered may be wrong
        if "status" not in (await self._services.client.served(self.declared.kind)).subresources:
            if report.fields or report.conditions:
                raise Terminal("NoStatus", f"{self.declared.kind} has no status subresource to report in")
            return
        said = result.ready is not None and (not result.transient or self._errors.get(key, 0) > 0)
        if ready and said and self._holds_condition and ready not in report.conditions:
            report.condition(ready, result.ready, result.reason, result.message)
        report.observed = self._holds_observed and result.ready is not None
        if not (report.fields or report.conditions or report.observed):
            return
        after = await status.write_status(self._writer, self.declared.kind, obj, report)
        # A schema without them drops them: then the next report leaves them out, so that it can be found unchanged.
        if report.observed and "observedGeneration" not in after.status:
            self._holds_observed = False
        if ready in report.conditions and after.condition(ready) is None:
            self._holds_condition = False

    def _failed(self, key: Key, obj: Object | None, error: Exception) -> PassResult:
        """Say what was raised where people look: the log, the metrics, an Event."""
        result, metrics, log = pass_results.from_error(error), self._services.metrics, self._services.log
        if may_have_happened(error):
            self._doubts.add(key)
            metrics.unknown.labels(self.name).inc()
        if result.next is QueueAction.CONFLICT:
            metrics.conflicts.labels(self.name).inc()
            log.info("looking again: %s", error)
        if not result.failed:
            if isinstance(error, Wait):
                log.info("waiting: %s", error)
            return result
        metrics.errors.labels(self.name).inc()
        for counted, counter in (
            (isinstance(error, Terminal), metrics.terminal),
            (isinstance(error, HandlerTimeout), metrics.timeouts),
            (result.mistake, metrics.panics),
        ):
            if counted:
                counter.labels(self.name).inc()
        hint = f" (in code: {error.hint})" if isinstance(error, WriteError) and error.hint else ""
        log.error("%s: %s%s", result.reason, error, hint, exc_info=error if result.unexpected else None)
        if obj is not None and not result.transient:
            self._services.recorder.record(obj, result.reason, result.message or result.reason, warning=True)
        return result
