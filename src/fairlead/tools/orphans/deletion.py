"""Delete the orphans of a plan. The parents of each object are read again just before its deletion."""

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
from fairlead.tools.orphans.journal import DeletionJournal
from fairlead.tools.orphans.looks import Look, look_by_gets
from fairlead.tools.orphans.plan import Item, Plan
from fairlead.tools.orphans.rules import Candidate
from fairlead.tools.orphans.verdicts import State, Verdict, judge
from fairlead.writes import WriteError, Writer, delete

PAUSE_BETWEEN_DELETIONS = 0.1
"""Seconds: fewer than ten deletions a second, so a thousand orphans take two minutes and do not load the server."""
CAP_WINDOW = 3600.0
"""Seconds during which deletions count against the cap, for a collector that runs continuously."""


class DeletionOutcome(StrEnum):
    """The outcome of the deletion of one object."""

    DELETED = "deleted"
    GONE = "gone"  # Somebody else deleted it.
    LEFT = "left"  # It is not an orphan any more, or could not be judged.
    FAILED = "failed"  # The server rejected the deletion or did not answer.


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """One object of a plan, the outcome of its deletion, and the reason."""

    item: Item
    outcome: DeletionOutcome
    why: str


def find_exceeded_caps(
    plan: Plan, chosen: Iterable[Item], cap: Cap | None, evidence: Evidence | None = None
) -> list[str]:
    """Return a message for each rule whose cap is exceeded by the chosen items. `cap` replaces the cap of every rule.

    With `evidence`, the deletions of the last hour count too.
    """
    counts_by_rule = Counter(item.candidate.rule.name for item in chosen)
    rules = {item.candidate.rule.name: item.candidate.rule for item in plan.items}
    messages = []
    for name, count in sorted(counts_by_rule.items()):
        recent_count = len(recent_deletions(evidence, name)) if evidence is not None else 0
        selected = plan.selected[name] + recent_count
        limit = cap or rules[name].cap
        if count + recent_count > limit.allows(selected):
            recent_text = f" and {recent_count} were deleted in the last hour" if recent_count else ""
            messages.append(
                f"{name}: {count} of {selected} objects would be deleted{recent_text}, and the cap is "
                f"{limit.allows(selected)} "
                f"({limit}): read the plan, and raise the cap with --max if this is intended"
            )
    return messages


def recent_deletions(evidence: Evidence, rule: str) -> list[float]:
    """Return the times at which objects of a rule were deleted in the last hour."""
    return [deleted_at for deleted_at in evidence.deleted.get(rule, ()) if deleted_at > evidence.now() - CAP_WINDOW]


class OrphanDeleter:
    """Deletes orphans one after another, with a pause between two deletions.

    Guarantees: just before each deletion, the object and its parents are read again. The object is deleted only if the
    rule still selects it and all its parents have been absent for the grace period. The resourceVersion is a
    precondition of the deletion. The journal records each deletion before the request, and an Event reports it.

    Does not guarantee: that a parent is noticed if it is created between that read and the deletion. Two clusters share
    no transaction.
    """

    def __init__(
        self,
        fleet: Fleet,
        evidence: Evidence,
        world: World,
        journal: DeletionJournal,
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
        self,
        items: Sequence[Item],
        ambiguous: dict[str, str],
        report: Callable[[DeletionResult], None] = lambda result: None,
    ) -> list[DeletionResult]:
        """Delete the items that are still orphans. Raises JournalError if a deletion cannot be recorded first."""
        results: list[DeletionResult] = []
        handled_uids: set[str] = set()
        for item in items:
            if item.candidate.uid in handled_uids:  # Two rules may select the same object.
                continue
            handled_uids.add(item.candidate.uid)
            if results:
                await asyncio.sleep(PAUSE_BETWEEN_DELETIONS)
            results.append(await self._delete_item(item, ambiguous))
            report(results[-1])
        return results

    async def _delete_item(self, item: Item, ambiguous: dict[str, str]) -> DeletionResult:
        candidate = item.candidate
        kind, rule = candidate.rule.kind, candidate.rule
        try:
            obj = await self._fleet.downstream.client.get(kind, candidate.name, candidate.namespace)
        except NotFound:
            return DeletionResult(item, DeletionOutcome.GONE, "it is already gone")
        except (ApiError, OSError) as error:
            return DeletionResult(item, DeletionOutcome.FAILED, _format_error(error))
        current = rule.candidate(obj)
        if obj.uid != candidate.uid:
            return DeletionResult(item, DeletionOutcome.LEFT, "another object has this name now")
        if current is None:
            return DeletionResult(item, DeletionOutcome.LEFT, "the rule no longer selects it")
        try:
            verdict = await self._judge(current, ambiguous)
        except Unreachable as error:
            return DeletionResult(item, DeletionOutcome.LEFT, f"downstream: {error}")
        if verdict.state is not State.ORPHAN:
            return DeletionResult(item, DeletionOutcome.LEFT, verdict.why)
        self._write_journal("deleting", current, verdict, obj)
        try:
            await delete(self._writer, kind, obj, unchanged=True)
        except asyncio.CancelledError:
            self._write_journal("interrupted", current, verdict, message="it may or may not have been deleted")
            raise
        except (WriteError, ApiError, UnknownOutcome, OSError) as error:
            is_left = isinstance(error, WriteError)
            self._write_journal("left" if is_left else "failed", current, verdict, message=_format_error(error))
            return DeletionResult(
                item, DeletionOutcome.LEFT if is_left else DeletionOutcome.FAILED, _format_error(error)
            )
        self._evidence.deleted[rule.name] = [*recent_deletions(self._evidence, rule.name), self._evidence.now()]
        self._write_journal("deleted", current, verdict)
        self._recorder.record(obj, "OrphanDeleted", f"{verdict.why}, since {rfc3339(verdict.since or 0)}")
        await self._recorder.flush()
        return DeletionResult(item, DeletionOutcome.DELETED, verdict.why)

    async def _judge(self, candidate: Candidate, ambiguous: dict[str, str]) -> Verdict:
        looks: dict[str, Look] = {}
        name = candidate.cluster
        if await self._fleet.downstream.uid() != self._evidence.downstream:
            raise Unreachable("its identity changed")
        retired = self._fleet.retired - ambiguous.keys()
        if name in ambiguous:
            looks[name] = Look(self._evidence.now(), unknown=ambiguous[name])
        elif name in self._fleet.upstreams and name not in retired:
            looks[name] = await look_by_gets(self._fleet.upstreams[name], candidate.parents, self._evidence)
        grace = candidate.rule.grace if self._grace is None else self._grace
        return judge(candidate, grace, looks, retired, self._evidence)

    def _write_journal(
        self, action: str, candidate: Candidate, verdict: Verdict, obj: Object | None = None, message: str = ""
    ) -> None:
        entry = {
            "time": rfc3339(self._world.clock.now()),
            "what": action,
            **Item(candidate, verdict).to_json(),
        }
        if message:
            entry["said"] = message
        if obj is not None:
            metadata = {key: value for key, value in obj.metadata.items() if key != "managedFields"}
            entry["object"] = {**obj, "metadata": metadata}
        self._journal.write(entry)


def _format_error(error: BaseException) -> str:
    return str(error) or type(error).__name__
