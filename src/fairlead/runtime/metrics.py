"""Metrics under the names that controller-runtime's dashboards know, plus what only we can count."""

from collections.abc import Callable, Hashable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.registry import Collector

from fairlead.queue import Outcome

# controller-runtime's own buckets, so that quantiles compare
_SECONDS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 1.75,
    2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
)  # fmt: skip
_QUEUE_SECONDS = tuple(10.0**power for power in range(-8, 4))


class Metrics(Collector):
    """The metrics of one run of an operator, in a registry of its own: nothing is global."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._measures: list[Callable[[], None]] = []
        registry.register(self)  # first, so that what is measured now is set before it is told

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
            "controller_runtime_terminal_reconcile_errors_total", "Reconciles that gave up", "controller"
        )
        self.panics = counter(f"{reconcile}_panics_total", "Reconciles that raised what nobody expects", "controller")
        self.timeouts = counter(f"{reconcile}_timeouts_total", "Reconciles that ran out of time", "controller")
        self.seconds = histogram(f"{reconcile}_time_seconds", "Seconds a reconcile takes", _SECONDS, "controller")
        self.max_workers = gauge(
            "controller_runtime_max_concurrent_reconciles", "Reconciles that may run at once", "controller"
        )
        self.workers = gauge("controller_runtime_active_workers", "Reconciles running now", "controller")

        queue = ("name", "controller")
        self.depth = gauge("workqueue_depth", "Keys waiting to be looked at", *queue, "priority")
        self.adds = counter("workqueue_adds_total", "Keys added", *queue)
        self.retries = counter("workqueue_retries_total", "Keys put back after a failure", *queue)
        self.queued = histogram("workqueue_queue_duration_seconds", "Seconds a key waits", _QUEUE_SECONDS, *queue)
        self.worked = histogram("workqueue_work_duration_seconds", "Seconds a key is held", _QUEUE_SECONDS, *queue)
        self.unfinished = gauge("workqueue_unfinished_work_seconds", "Seconds held by keys not done yet", *queue)
        self.longest = gauge("workqueue_longest_running_processor_seconds", "Longest of those", *queue)

        self.requests = counter("rest_client_requests_total", "Requests by answer", "code", "method", "host")
        self.leading = gauge("leader_election_master_status", "1 while this process holds the lease", "name")
        self.slowpath = counter("leader_election_slowpath_total", "Renewals that had to read the lease first", "name")

        self.conflicts = counter("fairlead_conflicts_total", "Reconciles that met a conflict", "controller")
        self.unchanged = counter(
            "fairlead_unchanged_writes_total", "Writes not sent: nothing would change", "controller"
        )
        self.unmapped = counter(
            "fairlead_watch_function_failures_total", "Changes that a function in watches= raised on", "controller"
        )
        self.unknown = counter("fairlead_unknown_outcomes_total", "Writes whose answer was lost", "controller")
        self.staleness = gauge("fairlead_cache_staleness_seconds", "Seconds since a watch last heard anything", "scope")
        self.lag = gauge("fairlead_loop_lag_seconds", "How late the event loop ran its last heartbeat")
        self.blocked = counter("fairlead_loop_blocked_total", "Times that something blocked the event loop")

    def measure(self, now: Callable[[], None]) -> None:
        """Call this before each scrape: it sets what is a state and not an event."""
        self._measures.append(now)

    def collect(self) -> Iterable[Metric]:
        """For the registry: nothing of its own."""
        for measure in self._measures:
            measure()
        return ()

    def text(self) -> bytes:
        """All of them in Prometheus' text form."""
        return generate_latest(self.registry)


class QueueMetrics:
    """The queue's own numbers, under client-go's names."""

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
