"""A running controller: it adds keys to the queue when objects change, and runs a pass over each key."""

import asyncio
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from fairlead.api import backoff
from fairlead.api.errors import may_have_happened
from fairlead.api.history import ENDED, WOKEN, CauseSource, ObjectRef
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.cache import Change, Handler
from fairlead.queue import Priority
from fairlead.runtime import logs, pass_results
from fairlead.runtime.brake import Brake
from fairlead.runtime.context import Context
from fairlead.runtime.early_looks import EarlyLooks
from fairlead.runtime.handlers import call_handler, name_of, reject_return_value
from fairlead.runtime.history_log import describe_error
from fairlead.runtime.operator import Cleanup, Controller, Mapper
from fairlead.runtime.outcomes import RequeueAfter, Terminal
from fairlead.runtime.pass_results import NOTHING_TO_REPORT, RECONCILED, PassResult, QueueAction
from fairlead.runtime.pausing import PAUSED_NOTE, is_paused
from fairlead.runtime.predicates import filter_changes
from fairlead.runtime.read_context import ReadContext
from fairlead.runtime.services import Key, Services
from fairlead.runtime.sources import HOME, Source
from fairlead.runtime.transports import NotLeading
from fairlead.runtime.tuning import Tuning
from fairlead.runtime.wakes import Wake, Wakes
from fairlead.runtime.watched_kinds import NotWatched
from fairlead.writes import StatusReport, Writer, finalizers, status
from fairlead.writes.errors import ObjectDeleting

# A watches= function that raised may raise on every change: each resync of all objects waits longer than the last.
_RESYNC_BACKOFF = 1.0, 300.0


class Reconciler:
    """Calls one `@op.reconcile` handler, and the `@op.cleanup` handler of the same kind, for the keys of the queue."""

    def __init__(
        self,
        declared: Controller,
        tuning: Tuning,
        cleanup: Cleanup | None,
        writer: Writer,
        services: Services,
        brake: Brake,
    ) -> None:
        self.name = declared.name
        self.declared = declared
        self.tuning = tuning
        self._cleanup = cleanup
        self._writer = writer
        self._services = services
        self._brake = brake
        self.wakes = Wakes()
        self._early_looks = EarlyLooks(services.queue)
        self._failures_in_a_row: dict[Key, int] = {}
        self._unknown_writes: set[Key] = set()  # keys with a write whose answer was lost
        self._unpruned: dict[Key, set[str]] = {}  # uids of children that were warned about
        self._paused: set[Key] = set()
        self._scheduled_resync: asyncio.TimerHandle | None = None
        self._failed_mappings_in_a_row = 0
        # Whether the kind's status schema keeps these fields. The first answer without one clears the flag.
        self._status_has_condition = self._status_has_observed_generation = True
        metrics = services.metrics  # Labels are looked up once, because a lookup costs as much as a queue operation.
        self._active = metrics.workers.labels(self.name)

    # What queues a key

    def subscribe(self) -> None:
        """Subscribe to changes of the primary objects, their children and the mapped objects."""
        watched = self._services.watched
        log = self._services.log
        on_primary = filter_changes(self.declared.source.when_changed, self._on_primary, log)
        watched.reader(self.declared.kind).subscribe(on_primary)
        for source in self.declared.sources:
            cluster = watched if source.cluster == HOME else self._services.clusters[source.cluster].watched
            cluster.reader(source.kind).on_served_change(self.resync)
        for source in self.declared.owns:
            on_child = filter_changes(source.when_changed, self._child_handler(source.kind), log)
            watched.reader(source.kind).subscribe(on_child)
        for source, mapper in self.declared.watches.items():
            if mapper is not None:
                cluster = watched if source.cluster == HOME else self._services.clusters[source.cluster].watched
                on_mapped = filter_changes(source.when_changed, self._mapping_handler(mapper, source), log)
                cluster.reader(source.kind).subscribe(on_mapped)

    def resync(self) -> None:
        """Add the key of every object of the kind to the queue, behind the keys of changed objects."""
        for namespace, name in self._services.watched.reader(self.declared.kind).object_keys():
            self._enqueue(namespace, name, Wake("resync"), Priority.RESYNC)

    def stop(self) -> None:
        """Cancel a scheduled resync."""
        if self._scheduled_resync is not None:
            self._scheduled_resync.cancel()

    def _enqueue(self, namespace: str | None, name: str, wake: Wake, priority: Priority = Priority.FRESH) -> None:
        key = Key(self.name, namespace, name)
        self.wakes.add(key, wake)
        self._brake.on_change(key, wake)
        self._services.queue.add(key, priority=priority)
        if wake.change is not None:
            self._early_looks.on_change(key, wake)

    def _on_primary(self, change: Change) -> None:
        source: CauseSource = "start" if change.initial else "primary"
        wake = Wake(source, self.declared.kind, change)
        self._enqueue(change.namespace, change.name, wake, Priority.RESYNC if change.initial else Priority.FRESH)

    def _child_handler(self, child_kind: Kind) -> Handler:
        kind = self.declared.kind

        def handle(change: Change) -> None:
            if change.initial:
                return  # The initial list of the primary objects queues them already.
            owners = {
                owner.name
                for snapshot in (change.old, change.new)
                for owner in (snapshot.owners() if snapshot is not None else ())
                if owner.controller and owner.kind == kind.kind and owner.api_version.rpartition("/")[0] == kind.group
            }
            wake = Wake("child", child_kind, change)
            for name in owners:
                self._enqueue(change.namespace if kind.namespaced else None, name, wake)

        return handle

    def _mapping_handler(self, mapper: Mapper, source: Source) -> Handler:
        context = (ReadContext(self._services),) if len(inspect.signature(mapper).parameters) > 1 else ()

        def handle(change: Change) -> None:
            if change.initial:
                return
            keys: set[tuple[str | None, str]] = set()
            # The old object is mapped too: the objects that it named may have to change.
            for snapshot in (change.old, change.new):
                if snapshot is not None:
                    try:
                        keys.update(self._resolve_keys(mapper(snapshot.object(), *context), change.namespace))
                    except Exception:
                        self._on_failed_mapping(mapper, change)
                    else:
                        self._failed_mappings_in_a_row = 0
            wake = Wake("mapped", source.kind, change, cluster=source.cluster)
            for namespace, name in keys:
                self._enqueue(namespace, name, wake)

        return handle

    def _on_failed_mapping(self, mapper: Mapper, change: Change) -> None:
        """Schedule a resync, because it is unknown which objects to reconcile. Later failures share this resync."""
        self._services.metrics.unmapped.labels(self.name).inc()
        if self._scheduled_resync is not None and not self._scheduled_resync.cancelled():
            return
        self._failed_mappings_in_a_row += 1
        delay = backoff.delay(self._failed_mappings_in_a_row, *_RESYNC_BACKOFF, self._services.world)
        self._services.log.exception(
            "the watches= function %s raised for %s/%s: every %s is reconciled in %.0f s instead",
            name_of(mapper),
            change.namespace,
            change.name,
            self.declared.kind.kind,
            delay,
        )
        self._scheduled_resync = asyncio.get_running_loop().call_later(delay, self._run_scheduled_resync)

    def _run_scheduled_resync(self) -> None:
        self._scheduled_resync = None
        self.resync()

    def _resolve_keys(
        self, mapped: Iterable[str | tuple[str | None, str] | Object], namespace: str | None
    ) -> Iterable[tuple[str | None, str]]:
        for item in mapped:
            match item:
                case str():
                    yield (namespace if self.declared.kind.namespaced else None, item)
                case Object():
                    yield item.namespace, item.name
                case _:
                    yield item

    # One pass

    async def handle(self, key: Key) -> None:
        """Run a pass over the key, then give the key back to the queue, also if the pass fails or is cancelled."""
        reconcile_id = f"{self._services.world.random.getrandbits(32):08x}"
        history, loop = self._services.history, asyncio.get_running_loop()
        kind = self.declared.kind
        ref = ObjectRef(kind.kind, key.namespace, key.name, kind.api_version)
        token = history.enter_pass(reconcile_id, self._writer.manager, ref)
        result: PassResult | None = None
        started = loop.time()
        try:
            with (
                self._active.track_inprogress(),
                logs.fields(controller=self.name, namespace=key.namespace, name=key.name, reconcile=reconcile_id),
            ):
                self._record_wakes(key, ref, started)
                try:
                    result = await self._run_pass(key)
                finally:
                    next_look = self._return_to_queue(key, result or NOTHING_TO_REPORT)
                    self._record_end(ref, result, loop.time() - started, next_look)
        finally:
            history.exit_pass(token)

    def _record_wakes(self, key: Key, ref: ObjectRef, now: float) -> None:
        wakes, more = self.wakes.take(key, now)
        history = self._services.history
        if history.wants(WOKEN):
            causes = tuple(wake.to_cause() for wake in wakes)
            history.record(WOKEN, "reconcile", object=ref, causes=causes, more_causes=more)

    def _record_end(self, ref: ObjectRef, result: PassResult | None, seconds: float, next_look: float | None) -> None:
        """Record the end of a pass. `result` is None if the pass was cancelled."""
        history = self._services.history
        if not history.wants(ENDED):
            return
        if result is None:
            history.record(ENDED, "reconcile", object=ref, outcome="cancelled", seconds=seconds)
            return
        history.record(
            ENDED,
            "reconcile",
            object=ref,
            outcome=result.metric_label,
            reason=result.reason,
            message=result.message,
            seconds=seconds,
            next_look=next_look,
            error=result.error,
        )

    def _return_to_queue(self, key: Key, result: PassResult) -> float | None:
        """Return the key to the queue. Return the seconds until its next pass, if one is scheduled."""
        queue, next_look = self._services.queue, result.after
        held = self._brake.end_pass(key)
        if result.is_failure:
            self._services.failures[key] = describe_error(result.error) if result.error else result.reason
        else:
            self._services.failures.pop(key, None)
        if result.after is not None:
            due = asyncio.get_running_loop().time() + result.after
            self.wakes.delay(key, Wake("requeue_after", seconds=result.after), due)
            queue.add(key, after=result.after)
        match result.action:
            case QueueAction.RETRY:
                self._failures_in_a_row[key] = failures = self._failures_in_a_row.get(key, 0) + 1
                if self._services.tries is None or failures < self._services.tries:
                    self.wakes.add(key, Wake("retry", attempt=failures))
                    next_look = queue.retry(key)
                    self._early_looks.on_error(key)
                    if not queue.can_cut_backoff(key):
                        next_look = 0.0
                else:
                    queue.done(key)
            case QueueAction.CONFLICT:
                self.wakes.add(key, Wake("conflict"))
                next_look = queue.conflict(key)
            case QueueAction.DONE:
                self._failures_in_a_row.pop(key, None)
                queue.done(key)
        self._early_looks.forget(key)
        return max(held, next_look or 0.0) if held else next_look

    async def _run_pass(self, key: Key) -> PassResult:
        obj = None
        try:
            obj = await self._read(key)
            if obj is None:
                self._paused.discard(key)
                self._unpruned.pop(key, None)
                return NOTHING_TO_REPORT
            if self._is_paused(key, obj):
                return NOTHING_TO_REPORT
            ctx = Context(self._services, self._writer, self.declared, obj)
            result = await self._reconcile(key, obj, ctx)
        except NotLeading:
            return NOTHING_TO_REPORT  # This process is about to stop, and the next leader reconciles everything.
        except Exception as error:  # A failure of one object must not affect another.
            result = self._record_error(key, obj, error)
        if obj is None or result is NOTHING_TO_REPORT:
            return result
        try:
            await self._write_status(obj, ctx.report, result, key)
        except NotLeading:
            return NOTHING_TO_REPORT
        except Exception as error:
            status_result = self._record_error(key, obj, error)
            if result.error is not None:
                result.error.add_note(f"also: the status was not written: {describe_error(error)}")
            return result if result.is_failure else status_result.no_later_than(result.after)
        return result

    async def _read(self, key: Key) -> Object | None:
        """Return the object from the cache. After a write with an unknown outcome, read it from the server first."""
        kind = self.declared.kind
        if key in self._unknown_writes:
            live = await ReadContext(self._services).live.get(kind, key.name, key.namespace)
            if live is not None:
                self._services.watched.observe(kind, live)
            self._unknown_writes.discard(key)
        return ReadContext(self._services).get(kind, key.name, key.namespace)

    async def _reconcile(self, key: Key, obj: Object, ctx: Context) -> PassResult:
        """Add the finalizer and call the handler for the object. For a deleted object, run cleanup."""
        declared, cleanup = self.declared, self._cleanup
        if obj.deleting:
            if cleanup is None or cleanup.finalizer not in obj.finalizers:
                return NOTHING_TO_REPORT
            try:
                await self._call_cleanup(cleanup, obj, ctx)
            except RequeueAfter as later:
                return PassResult("requeue_after", QueueAction.DONE, False, "CleaningUp", after=later.seconds)
            await finalizers.remove(self._writer, declared.kind, obj, cleanup.finalizer)
            return NOTHING_TO_REPORT
        if declared.when is not None and not declared.when(obj):
            return NOTHING_TO_REPORT
        if cleanup is not None:
            try:
                await finalizers.add(self._writer, declared.kind, obj, cleanup.finalizer)
            except ObjectDeleting:
                return NOTHING_TO_REPORT  # Nothing was done yet, so there is nothing to clean up.
        result = RECONCILED
        try:
            await self._call(declared.reconcile, obj, ctx)
        except RequeueAfter as later:
            result = pass_results.from_error(later)
        self._warn_about_unpruned(key, ctx)
        return result

    async def _call_cleanup(self, cleanup: Cleanup, obj: Object, ctx: Context) -> None:
        """Call the cleanup handler. If it reads what is not watched, read that from the server and call it again.

        Otherwise the finalizer would stay until the code of the operator changes.
        """
        while True:
            try:
                return await self._call(cleanup.clean, obj, ctx)
            except NotWatched as missing:
                if not await ctx.copy_live(missing):
                    raise
                self._services.warn_once(
                    ("clean-up", self.name, missing.kind.kind),
                    "the clean-up reads from the server instead: %s",
                    missing,
                )

    async def _call(self, function: Callable[..., Any], obj: Object, ctx: Context) -> None:
        """Call the handler. Raises HandlerError if the handler returned a value or forgot an `await`."""
        try:
            returned = await call_handler(
                function, obj, ctx, timeout=self.tuning.timeout, threads=self._services.threads
            )
        except Exception as error:
            ctx.check_awaited(error)
            raise
        ctx.check_awaited()
        reject_return_value(function, returned)

    def _warn_about_unpruned(self, key: Key, ctx: Context) -> None:
        """Log a warning for each child that a complete pass neither applied nor pruned, once as long as it stays so."""
        unpruned = ctx.unpruned_children()
        known = self._unpruned.get(key, ())
        for child in unpruned:
            if child.uid in known:
                continue
            ctx.log.warning(
                "%s %s was applied by an earlier pass and not by this one, and stays: to delete such children, end the "
                "pass with `await ctx.prune(fl.%s)`",
                child.kind,
                child.name,
                child.kind,
            )
        if unpruned:
            self._unpruned[key] = {child.uid for child in unpruned}
        else:
            self._unpruned.pop(key, None)

    def _is_paused(self, key: Key, obj: Object) -> bool:
        """Whether the object is paused. Report it when that changes."""
        paused = is_paused(obj)
        if paused and key not in self._paused:
            self._paused.add(key)
            self._services.log.info("paused: %s", PAUSED_NOTE)
            self._services.recorder.record(obj, "Paused", PAUSED_NOTE)
        elif not paused and key in self._paused:
            self._paused.discard(key)
            self._services.log.info("no longer paused")
        return paused

    async def _write_status(self, obj: Object, report: StatusReport, result: PassResult, key: Key) -> None:
        """Write the status of the pass, if the kind has a status subresource and the status would change."""
        ready = self.declared.ready
        if result.action is QueueAction.CONFLICT:
            return  # The pass read an old object, so its status may be wrong.
        if "status" not in (await self._services.client.served(self.declared.kind)).subresources:
            if report.fields or report.conditions:
                raise Terminal("NoStatus", f"{self.declared.kind} has no status subresource to report in")
            return
        should_report = result.ready is not None and (
            not result.is_transient or self._failures_in_a_row.get(key, 0) > 0
        )
        if ready and should_report and self._status_has_condition and ready not in report.conditions:
            report.condition(ready, result.ready, result.reason, result.message)
        report.observed = self._status_has_observed_generation and result.ready is not None
        if not (report.fields or report.conditions or report.observed):
            return
        after = await status.write_status(self._writer, self.declared.kind, obj, report)
        # A schema without these fields drops them. Later reports leave them out, so that they compare as unchanged.
        if report.observed and "observedGeneration" not in after.status:
            self._status_has_observed_generation = False
        if ready in report.conditions and after.condition(ready) is None:
            self._status_has_condition = False

    def _record_error(self, key: Key, obj: Object | None, error: Exception) -> PassResult:
        """Record an Event for the error of a pass, and return the result of the pass."""
        result = pass_results.from_error(error)
        if may_have_happened(error):
            self._unknown_writes.add(key)
        if result.is_failure and obj is not None and not result.is_transient:
            self._services.recorder.record(obj, result.reason, result.message or result.reason, warning=True)
        return result
