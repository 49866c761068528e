"""The Prometheus metrics of an operator: metrics with the names of controller-runtime, and fairlead's own."""

import logging
from collections.abc import Callable, Hashable, Iterable

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.registry import Collector

from fairlead.api.errors import may_have_happened
from fairlead.api.history import ENDED, SKIPPED, History, Record
from fairlead.queue import Outcome
from fairlead.runtime.handlers import HandlerTimeout
from fairlead.runtime.outcomes import Terminal
from fairlead.runtime.pass_results import is_code_error

log = logging.getLogger("fairlead.metrics")

# The buckets of controller-runtime, so that quantiles are comparable.
_SECONDS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 1.75,
    2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
)  # fmt: skip
_QUEUE_SECONDS = tuple(10.0**power for power in range(-8, 4))


class Metrics(Collector):
    """The metrics of one run of an operator, in a registry of their own.

    `text` also returns the metrics of the operator's author (`own_metrics`), and those of the default registry of
    prometheus_client: the process, and metrics that were declared without a registry.
    """

    def __init__(self, own_metrics: CollectorRegistry | None = None) -> None:
        self._served = [own_metrics] if own_metrics is not None else []
        self._served.append(REGISTRY)
        self._unserved: set[str] = set()  # what was logged as not served
        self.registry = registry = CollectorRegistry()
        self._measures: list[Callable[[], None]] = []
        self._unchanged_by_actor: dict[str, Counter] = {}
        self._passes: dict[tuple[str, str], tuple[Histogram, Counter]] = {}
        registry.register(self)  # First, so that the gauges are set before they are collected.

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(name, text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(name, text, labels, registry=registry, buckets=buckets)

        reconcile = "controller_runtime_reconcile"
        self.reconciles = counter(f"{reconcile}_total", "Reconciles by outcome", "controller", "result")
        self.errors = counter(f"{reconcile}_errors_total", "Reconciles that failed", "controller")
        self.terminal = counter(
            "controller_runtime_terminal_reconcile_errors_total", "Reconciles that raised Terminal", "controller"
        )
        self.panics = counter(
            f"{reconcile}_panics_total", "Reconciles that failed because of an error in the code", "controller"
        )
        self.timeouts = counter(
            f"{reconcile}_timeouts_total", "Reconciles that exceeded their time limit", "controller"
        )
        self.seconds = histogram(f"{reconcile}_time_seconds", "Seconds a reconcile takes", _SECONDS, "controller")
        self.max_workers = gauge(
            "controller_runtime_max_concurrent_reconciles", "Reconciles that may run at once", "controller"
        )
        self.workers = gauge("controller_runtime_active_workers", "Reconciles running now", "controller")

        queue = ("name", "controller")
        self.depth = gauge("workqueue_depth", "Keys that wait for a pass", *queue, "priority")
        self.adds = counter("workqueue_adds_total", "Keys added", *queue)
        self.retries = counter("workqueue_retries_total", "Keys returned to the queue after a failure", *queue)
        self.queued = histogram("workqueue_queue_duration_seconds", "Seconds a key waits", _QUEUE_SECONDS, *queue)
        self.worked = histogram("workqueue_work_duration_seconds", "Seconds a pass takes", _QUEUE_SECONDS, *queue)
        self.unfinished = gauge(
            "workqueue_unfinished_work_seconds", "Seconds since the unfinished passes started, in total", *queue
        )
        self.longest = gauge(
            "workqueue_longest_running_processor_seconds", "Seconds since the longest unfinished pass started", *queue
        )

        self.requests = counter("rest_client_requests_total", "Requests by status code", "code", "method", "host")
        self.leading = gauge("leader_election_master_status", "1 while this process holds the lease", "name")
        self.slowpath = counter("leader_election_slowpath_total", "Renewals that had to read the lease first", "name")

        self.conflicts = counter("fairlead_conflicts_total", "Reconciles that ended with a conflict", "controller")
        self.unchanged = counter(
            "fairlead_unchanged_writes_total", "Writes that were not sent because nothing would change", "controller"
        )
        self.unmapped = counter(
            "fairlead_watch_function_failures_total", "Changes for which a watches= function raised", "controller"
        )
        self.unknown = counter("fairlead_unknown_outcomes_total", "Writes whose outcome is unknown", "controller")
        self.write_loops = counter("fairlead_write_loops_total", "Write loops that were noticed", "controller")
        self.braked = gauge(
            "fairlead_braked_objects", "Objects whose passes wait because of a write loop", "controller"
        )
        self.staleness = gauge(
            "fairlead_cache_staleness_seconds", "Seconds since a watch last received anything", "scope"
        )
        self.lag = gauge("fairlead_loop_lag_seconds", "How late the event loop ran its last heartbeat")
        self.blocked = counter("fairlead_loop_blocked_total", "Times that the event loop was blocked")

    def subscribe(self, history: History) -> None:
        """Count what the records of the history report."""
        history.subscribe(self._count_pass, [ENDED])
        history.subscribe(self._count_unchanged, [SKIPPED])

    def _count_pass(self, record: Record) -> None:
        controller = record.actor.rpartition("/")[2]
        if record.outcome == "cancelled":
            return
        passes = self._passes.get((controller, record.outcome))
        if passes is None:  # Labels are looked up once, because a lookup costs as much as a queue operation.
            passes = self.seconds.labels(controller), self.reconciles.labels(controller, record.outcome)
            self._passes[controller, record.outcome] = passes
        passes[0].observe(record.seconds)
        passes[1].inc()
        error = record.error
        if error is None:
            return
        for is_counted, counter in (
            (record.outcome == "requeue", self.conflicts),
            (may_have_happened(error), self.unknown),
            (record.outcome == "error", self.errors),
            (isinstance(error, Terminal), self.terminal),
            (isinstance(error, HandlerTimeout), self.timeouts),
            (record.outcome == "error" and is_code_error(error), self.panics),
        ):
            if is_counted:
                counter.labels(controller).inc()

    def _count_unchanged(self, record: Record) -> None:
        counter = self._unchanged_by_actor.get(record.actor)
        if counter is None:
            counter = self.unchanged.labels(record.actor.rpartition("/")[2])
            self._unchanged_by_actor[record.actor] = counter
        counter.inc()

    def measure(self, function: Callable[[], None]) -> None:
        """Register a function that sets gauges. It is called before each scrape."""
        self._measures.append(function)

    def collect(self) -> Iterable[Metric]:
        """Call the functions that were registered with `measure`. The registry calls this method before each scrape."""
        for measure in self._measures:
            measure()
        return ()

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus: fairlead's, those of `op.metrics`, and of the process.

        A metric of the operator that has the name of another one, or that raises, is logged once and left out.
        """
        families = {family.name: family for family in self.registry.collect()}
        for registry in self._served:
            try:
                own = list(registry.collect())
            except Exception as error:
                self._warn_once(f"the operator's metrics are not served, because a collector raised {error!r}")
                continue
            for family in own:
                if families.setdefault(family.name, family) is not family:
                    self._warn_once(f"the metric {family.name} is not served, because another one has this name")
        return generate_latest(_Families(families.values()))

    def _warn_once(self, message: str) -> None:
        if message not in self._unserved:
            self._unserved.add(message)
            log.warning("%s", message)


class _Families(CollectorRegistry):
    """A registry of collected metrics, as `generate_latest` expects it."""

    def __init__(self, families: Iterable[Metric]) -> None:
        super().__init__()
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


class QueueMetrics:
    """The metrics of the queue, under the names of client-go."""

    def __init__(self, metrics: Metrics, lanes: Iterable[str]) -> None:
        self._added = {lane: metrics.adds.labels(lane, lane) for lane in lanes}
        self._queued = {lane: metrics.queued.labels(lane, lane) for lane in lanes}
        self._worked = {lane: metrics.worked.labels(lane, lane) for lane in lanes}
        self._retries = {lane: metrics.retries.labels(lane, lane) for lane in lanes}

    def added(self, lane: Hashable) -> None:
        self._added[str(lane)].inc()

    def taken(self, lane: Hashable, waited: float) -> None:
        self._queued[str(lane)].observe(waited)

    def finished(self, lane: Hashable, took: float, outcome: Outcome) -> None:
        self._worked[str(lane)].observe(took)
        if outcome is not Outcome.DONE:
            self._retries[str(lane)].inc()
