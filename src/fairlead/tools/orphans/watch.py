"""The collector that is always on: a look at everything, again and again, and what has been an orphan for long enough
goes."""

import logging
from collections.abc import Callable, Iterable, Sequence

from fairlead.api.errors import UserError
from fairlead.api.text import printable
from fairlead.api.world import World
from fairlead.runtime.context import ReadContext
from fairlead.runtime.operator import Operator
from fairlead.tools.orphans.act import Actor, Done, Outcome, over_cap
from fairlead.tools.orphans.caps import Cap
from fairlead.tools.orphans.clusters import Cluster, Fleet, Unreachable
from fairlead.tools.orphans.evidence import Evidence
from fairlead.tools.orphans.journal import Journal
from fairlead.tools.orphans.judging import State
from fairlead.tools.orphans.plan import Plan, scan
from fairlead.tools.orphans.rules import Rule
from fairlead.tools.orphans.stores import Store

log = logging.getLogger("fairlead.tools.orphans")

# A look once a minute costs a cluster a few lists; more often would learn little within a grace of minutes, more
# seldom would let a parent that came and went unseen pass for one that was away all the time.
LOOK = 60.0
_TICK = 1.0


class Collector:
    """One pass at a time over a fleet. Nothing is carried from one to the next but the evidence.

    In a dry run nothing is deleted, recorded or written in the journal: what would go is logged.
    """

    def __init__(
        self,
        fleet: Fleet,
        rules: Sequence[Rule],
        world: World,
        store: Store,
        journal: Journal,
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
        self._told: set[str] = set()

    async def if_due(self) -> None:
        """Take a look if it is time for one; what goes wrong is logged, and tried again."""
        if self._world.clock.monotonic() < self._due:
            return
        try:
            after = await self.look()
        except (UserError, Unreachable) as error:
            log.warning("nothing was judged: %s", printable(str(error)))
            self._evidence, after = None, LOOK  # what was recorded is read again
        self._due = self._world.clock.monotonic() + after

    async def look(self) -> float:
        """One pass; answers in how many seconds the next one is due."""
        evidence = await self._known()
        plan = await scan(self._fleet, self._rules, evidence, grace=self._grace)
        if not self._dry_run:
            await self._store.save(evidence)
        self._tell(plan)
        orphans = plan.of(State.ORPHAN)
        too_many = over_cap(plan, orphans, self._cap, evidence)
        for problem in too_many:
            log.error("nothing was deleted: %s", printable(problem))
        if orphans and not too_many and not self._dry_run:
            actor = Actor(self._fleet, evidence, self._world, self._journal, grace=self._grace)
            await actor.delete(orphans, plan.barred, _log)
            await self._store.save(evidence)
        waiting = [item.verdict.due for item in plan.items if item.verdict.state is State.WAITING]
        soonest = min((due - evidence.now() for due in waiting if due is not None), default=LOOK)
        return min(LOOK, max(0.0, soonest) + _TICK)

    async def _known(self) -> Evidence:
        if self._evidence is None:
            evidence = Evidence(self._world, await self._fleet.downstream.uid())
            await self._store.load(evidence)
            self._evidence = evidence
        return self._evidence

    def _tell(self, plan: Plan) -> None:
        """Log what is not known, and in a dry run what would go, each once until it changes."""
        said = {f"{item.candidate} is left alone: {item.verdict.why}" for item in plan.of(State.REFUSED)}
        said |= {f"left alone: {problem}" for problem in plan.problems}
        if self._dry_run:
            said |= {f"{item.candidate} would be deleted: {item.verdict.why}" for item in plan.of(State.ORPHAN)}
        for line in sorted(said - self._told):
            log.warning("%s", printable(line))
        self._told = said


def fleet(view: ReadContext, retired: Iterable[str] = ()) -> Fleet:
    """The operator's own cluster is the downstream one, the others that it was given are the upstreams."""
    upstreams = {name: Cluster(name, view.cluster(name).unguarded) for name in view.clusters}
    return Fleet(Cluster("downstream", view.unguarded), upstreams, frozenset(retired))


def operator(collector: Callable[[ReadContext], Collector], name: str = "fairlead-orphans") -> Operator:
    """An operator that collects, so that it can be run with a lease, probes and metrics as any other.

    `collector` is called once, when this process leads, with what it may use: deletions by `view.unguarded` are sent
    only while the lease is held.
    """
    op = Operator(name)

    @op.timer(_TICK)
    async def look(view: ReadContext) -> None:
        if "collector" not in view.resources:
            view.resources["collector"] = collector(view)
        made: Collector = view.resources["collector"]
        await made.if_due()

    return op


def _log(done: Done) -> None:
    level = logging.INFO if done.outcome in (Outcome.DELETED, Outcome.GONE) else logging.WARNING
    log.log(level, "%s", printable(f"{done.item.candidate}: {done.outcome.value}: {done.why}"))
