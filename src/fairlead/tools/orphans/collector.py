"""The continuous collector: scan the clusters periodically, and delete the orphans."""

import logging
from collections.abc import Callable, Iterable, Sequence

from fairlead.api.errors import UserError
from fairlead.api.text import printable
from fairlead.api.world import World
from fairlead.runtime.operator import Operator
from fairlead.runtime.read_context import ReadContext
from fairlead.tools.orphans.caps import Cap
from fairlead.tools.orphans.clusters import Cluster, Fleet, Unreachable
from fairlead.tools.orphans.deletion import DeletionOutcome, DeletionResult, OrphanDeleter, find_exceeded_caps
from fairlead.tools.orphans.evidence import Evidence
from fairlead.tools.orphans.evidence_stores import EvidenceStore
from fairlead.tools.orphans.journal import DeletionJournal
from fairlead.tools.orphans.plan import Plan
from fairlead.tools.orphans.plan import scan as make_plan
from fairlead.tools.orphans.rules import OrphanRule
from fairlead.tools.orphans.verdicts import State

log = logging.getLogger("fairlead.tools.orphans")

LOOK_INTERVAL = 60.0
"""Seconds between scans. A scan costs a few lists per cluster. A longer interval would more often miss a parent that
was present only between two scans."""
_TICK = 1.0


class Collector:
    """Scans a fleet of clusters and deletes orphans. Only the evidence is kept from one scan to the next.

    A dry run logs the objects that would be deleted. It deletes nothing, and writes no evidence and no journal.
    """

    def __init__(
        self,
        fleet: Fleet,
        rules: Sequence[OrphanRule],
        world: World,
        store: EvidenceStore,
        journal: DeletionJournal,
        *,
        grace: float | None = None,
        cap: Cap | None = None,
        dry_run: bool = False,
    ) -> None:
        self._fleet, self._rules, self._world = fleet, rules, world
        self._store, self._journal = store, journal
        self._grace, self._cap, self._dry_run = grace, cap, dry_run
        self._evidence: Evidence | None = None
        self._due = float("-inf")
        self._logged: set[str] = set()

    async def scan_if_due(self) -> None:
        """Scan if the time of the next scan has come. After an error, log it and schedule another scan."""
        if self._world.clock.monotonic() < self._due:
            return
        try:
            after = await self.scan()
        except (UserError, Unreachable) as error:
            log.warning("nothing was judged: %s", printable(str(error)))
            self._evidence, after = None, LOOK_INTERVAL  # The evidence is loaded again.
        self._due = self._world.clock.monotonic() + after

    async def scan(self) -> float:
        """Scan the clusters, delete the orphans, and return the seconds until the next scan."""
        evidence = await self._load_evidence()
        plan = await make_plan(self._fleet, self._rules, evidence, grace=self._grace)
        if not self._dry_run:
            await self._store.save(evidence)
        self._log_changes(plan)
        orphans = plan.of(State.ORPHAN)
        too_many = find_exceeded_caps(plan, orphans, self._cap, evidence)
        for problem in too_many:
            log.error("nothing was deleted: %s", printable(problem))
        if orphans and not too_many and not self._dry_run:
            actor = OrphanDeleter(self._fleet, evidence, self._world, self._journal, grace=self._grace)
            await actor.delete(orphans, plan.ambiguous, _log_result)
            await self._store.save(evidence)
        waiting = [item.verdict.due for item in plan.items if item.verdict.state is State.WAITING]
        soonest = min((due - evidence.now() for due in waiting if due is not None), default=LOOK_INTERVAL)
        return min(LOOK_INTERVAL, max(0.0, soonest) + _TICK)

    async def _load_evidence(self) -> Evidence:
        if self._evidence is None:
            evidence = Evidence(self._world, await self._fleet.downstream.uid())
            await self._store.load(evidence)
            self._evidence = evidence
        return self._evidence

    def _log_changes(self, plan: Plan) -> None:
        """Log the objects that cannot be judged, and in a dry run those that would be deleted.

        A line that the last scan logged too is not logged again.
        """
        lines = {f"{item.candidate} stays: {item.verdict.why}" for item in plan.of(State.REFUSED)}
        lines |= {f"not judged: {problem}" for problem in plan.problems}
        if self._dry_run:
            lines |= {f"{item.candidate} would be deleted: {item.verdict.why}" for item in plan.of(State.ORPHAN)}
        for line in sorted(lines - self._logged):
            log.warning("%s", printable(line))
        self._logged = lines


def fleet_of(view: ReadContext, retired: Iterable[str] = ()) -> Fleet:
    """Return the fleet of an operator. Its home cluster is the downstream cluster, all others are upstreams."""
    upstreams = {name: Cluster(name, view.cluster(name).unguarded) for name in view.clusters}
    return Fleet(Cluster("downstream", view.unguarded), upstreams, frozenset(retired))


def operator(collector: Callable[[ReadContext], Collector], name: str = "fairlead-orphans") -> Operator:
    """Return an operator that runs the collector. It has a lease, probes and metrics like any other operator.

    `collector` is called once, when this process becomes the leader. Deletions with `view.unguarded` are sent only
    while the lease is held.
    """
    op = Operator(name)

    @op.timer(_TICK)
    async def look(view: ReadContext) -> None:
        if "collector" not in view.resources:
            view.resources["collector"] = collector(view)
        current: Collector = view.resources["collector"]
        await current.scan_if_due()

    return op


def _log_result(result: DeletionResult) -> None:
    level = logging.INFO if result.outcome in (DeletionOutcome.DELETED, DeletionOutcome.GONE) else logging.WARNING
    log.log(level, "%s", printable(f"{result.item.candidate}: {result.outcome.value}: {result.why}"))
