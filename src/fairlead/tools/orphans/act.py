"""Deleting what a plan found: each object judged once more, live, a moment before it goes."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fairlead.api.errors import ApiError, NotFound, UnknownOutcome
from fairlead.api.objects import Object
from fairlead.api.times import rfc3339
from fairlead.api.world import World
from fairlead.runtime.events import Recorder
from fairlead.tools.orphans.caps import Cap
from fairlead.tools.orphans.clusters import Fleet, Unreachable
from fairlead.tools.orphans.evidence import Evidence
from fairlead.tools.orphans.journal import Journal
from fairlead.tools.orphans.judging import State, Verdict, judge
from fairlead.tools.orphans.looks import Look, at_each
from fairlead.tools.orphans.plan import Item, Plan
from fairlead.tools.orphans.rules import Candidate
from fairlead.writes import WriteError, Writer, delete

# Between two: not ten a second, so a thousand orphans take two minutes, and nobody else on the server notices.
PAUSE = 0.1
WINDOW = 3600.0
"""A cap that is spent stays so for an hour, for what runs without end."""


class Outcome(StrEnum):
    """What became of one object."""

    DELETED = "deleted"
    GONE = "gone"  # someone else was faster
    LEFT = "left"  # it is no orphan any more, or could not be judged
    FAILED = "failed"  # the server refused, or did not answer


@dataclass(frozen=True, slots=True)
class Done:
    """One object and what became of it."""

    item: Item
    outcome: Outcome
    why: str


def over_cap(plan: Plan, chosen: Iterable[Item], cap: Cap | None, evidence: Evidence | None = None) -> list[str]:
    """Why this would be too much, for each rule that it would be for. `cap` replaces that of every rule.

    With `evidence`, what was deleted in the last hour counts too.
    """
    wanted = Counter(item.candidate.rule.name for item in chosen)
    rules = {item.candidate.rule.name: item.candidate.rule for item in plan.items}
    said = []
    for name, count in sorted(wanted.items()):
        before = len(recent(evidence, name)) if evidence is not None else 0
        selected = plan.selected[name] + before
        limit = cap or rules[name].cap
        if count + before > limit.allows(selected):
            already = f" and {before} went in the last hour" if before else ""
            said.append(
                f"{name}: {count} of {selected} objects would go{already}, and the cap is {limit.allows(selected)} "
                f"({limit}): read the plan, then raise it with --max if that is meant"
            )
    return said


def recent(evidence: Evidence, rule: str) -> list[float]:
    """When objects of the rule were deleted in the last hour."""
    return [moment for moment in evidence.deleted.get(rule, ()) if moment > evidence.now() - WINDOW]


class Actor:
    """Deletes orphans, one after another, at a bounded rate.

    Guarantees: an object goes only if, at a look of its own a moment before, the rule still selects it, all its
    parents are absent and have been for the grace; and only the very version that was judged. Each deletion is in the
    journal before it is asked for, and an Event. Not guaranteed: that a parent made in the moment between the look
    and the deletion is seen, since two clusters share no transaction.
    """

    def __init__(
        self,
        fleet: Fleet,
        evidence: Evidence,
        world: World,
        journal: Journal,
        *,
        grace: float | None = None,
        component: str = "fairlead-orphans",
    ) -> None:
        self._fleet = fleet
        self._evidence = evidence
        self._journal = journal
        self._grace = grace
        self._world = world
        client = fleet.downstream.client
        self._writer = Writer(client, world, component)
        self._recorder = Recorder(client, world, component, component)

    async def delete(
        self, items: Sequence[Item], barred: dict[str, str], told: Callable[[Done], None] = lambda done: None
    ) -> list[Done]:
        """Delete those that still are orphans. Raises JournalError before anything goes unrecorded."""
        done: list[Done] = []
        seen: set[str] = set()
        for item in items:
            if item.candidate.uid in seen:  # two rules may want the same object gone
                continue
            seen.add(item.candidate.uid)
            if done:
                await asyncio.sleep(PAUSE)
            done.append(await self._one(item, barred))
            told(done[-1])
        return done

    async def _one(self, item: Item, barred: dict[str, str]) -> Done:
        candidate = item.candidate
        kind, rule = candidate.rule.kind, candidate.rule
        try:
            obj = await self._fleet.downstream.client.get(kind, candidate.name, candidate.namespace)
        except NotFound:
            return Done(item, Outcome.GONE, "it is gone already")
        except (ApiError, OSError) as error:
            return Done(item, Outcome.FAILED, _said(error))
        now = rule.candidate(obj)
        if obj.uid != candidate.uid:
            return Done(item, Outcome.LEFT, "another object has its name by now")
        if now is None:
            return Done(item, Outcome.LEFT, "the rule does not select it any more")
        try:
            verdict = await self._judge(now, barred)
        except Unreachable as error:
            return Done(item, Outcome.LEFT, f"downstream: {error}")
        if verdict.state is not State.ORPHAN:
            return Done(item, Outcome.LEFT, verdict.why)
        self._write("deleting", now, verdict, obj)
        try:
            await delete(self._writer, kind, obj, unchanged=True)
        except asyncio.CancelledError:
            self._write("interrupted", now, verdict, said="whether it went is not known")
            raise
        except (WriteError, ApiError, UnknownOutcome, OSError) as error:
            left = isinstance(error, WriteError)
            self._write("left" if left else "failed", now, verdict, said=_said(error))
            return Done(item, Outcome.LEFT if left else Outcome.FAILED, _said(error))
        self._evidence.deleted[rule.name] = [*recent(self._evidence, rule.name), self._evidence.now()]
        self._write("deleted", now, verdict)
        self._recorder.record(obj, "OrphanDeleted", f"{verdict.why}, since {rfc3339(verdict.since or 0)}")
        await self._recorder.flush()
        return Done(item, Outcome.DELETED, verdict.why)

    async def _judge(self, candidate: Candidate, barred: dict[str, str]) -> Verdict:
        looks: dict[str, Look] = {}
        name = candidate.cluster
        if await self._fleet.downstream.uid() != self._evidence.downstream:
            raise Unreachable("it became another cluster")
        retired = self._fleet.retired - barred.keys()
        if name in barred:
            looks[name] = Look(self._evidence.now(), unknown=barred[name])
        elif name in self._fleet.upstreams and name not in retired:
            looks[name] = await at_each(self._fleet.upstreams[name], candidate.parents, self._evidence)
        grace = candidate.rule.grace if self._grace is None else self._grace
        return judge(candidate, grace, looks, retired, self._evidence)

    def _write(
        self, what: str, candidate: Candidate, verdict: Verdict, obj: Object | None = None, said: str = ""
    ) -> None:
        entry = {
            "time": rfc3339(self._world.clock.now()),
            "what": what,
            **Item(candidate, verdict).to_json(),
        }
        if said:
            entry["said"] = said
        if obj is not None:
            metadata = {key: value for key, value in obj.metadata.items() if key != "managedFields"}
            entry["object"] = {**obj, "metadata": metadata}
        self._journal.write(entry)


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__
