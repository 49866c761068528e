"""A plan: one pass over the fleet, and what it says should go, wait, stay, or cannot be judged."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlead.api.errors import ApiError, Expired
from fairlead.api.times import rfc3339
from fairlead.client.client import Client
from fairlead.client.discovery import NotServed
from fairlead.tools.orphans.clusters import AT_ONCE, Fleet, Unreachable
from fairlead.tools.orphans.evidence import Evidence
from fairlead.tools.orphans.judging import State, Verdict, judge
from fairlead.tools.orphans.looks import ATTEMPTS, PAGE, Look, at_all
from fairlead.tools.orphans.mixups import mixed_up
from fairlead.tools.orphans.rules import Candidate, Parent, Rule

VERSION = 1
Progress = Callable[[str, int, int], None]
"""Told as a scan goes on: what is being done, how many are done, of how many (0: not known)."""


@dataclass(frozen=True, slots=True)
class Item:
    """An object that a rule selects, and the verdict on it."""

    candidate: Candidate
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        candidate, verdict = self.candidate, self.verdict
        return {
            "rule": candidate.rule.name,
            "apiVersion": candidate.rule.kind.api_version,
            "kind": candidate.rule.kind.kind,
            "namespace": candidate.namespace,
            "name": candidate.name,
            "uid": candidate.uid,
            "resourceVersion": candidate.resource_version,
            "cluster": candidate.cluster,
            "state": verdict.state.value,
            "why": verdict.why,
            "since": None if verdict.since is None else rfc3339(verdict.since),
            "due": None if verdict.due is None else rfc3339(verdict.due),
            "evidence": list(verdict.evidence),
        }


@dataclass(slots=True)
class Plan:
    """What one pass found. Objects that are kept are only counted."""

    made: float
    downstream: str
    items: list[Item] = field(default_factory=list)
    selected: Counter[str] = field(default_factory=Counter)  # by rule
    kept: Counter[str] = field(default_factory=Counter)  # by rule
    looks: dict[str, Look] = field(default_factory=dict)
    barred: dict[str, str] = field(default_factory=dict)  # clusters that seem to be mixed up, and why
    retired: frozenset[str] = frozenset()
    problems: list[str] = field(default_factory=list)  # what could not be read downstream
    notes: list[str] = field(default_factory=list)

    def of(self, state: State) -> list[Item]:
        return [item for item in self.items if item.verdict.state is state]

    @property
    def complete(self) -> bool:
        """Whether everything could be judged."""
        return not self.problems and not self.of(State.REFUSED)

    def to_json(self) -> dict[str, Any]:
        clusters: dict[str, dict[str, Any]] = {
            name: {"state": "unknown", "why": look.unknown} if look.unknown else {"state": "looked at", "uid": look.uid}
            for name, look in sorted(self.looks.items())
        }
        clusters |= {name: {"state": "retired"} for name in sorted(self.retired)}
        return {
            "version": VERSION,
            "made": rfc3339(self.made),
            "downstream": self.downstream,
            "selected": dict(self.selected),
            "kept": dict(self.kept),
            "clusters": clusters,
            "problems": self.problems,
            "notes": self.notes,
            "items": [item.to_json() for item in self.items],
        }


async def scan(
    fleet: Fleet,
    rules: Sequence[Rule],
    evidence: Evidence,
    *,
    grace: float | None = None,
    progress: Progress = lambda what, done, total: None,
) -> Plan:
    """Judge everything that the rules select, by live lists: a few for each cluster, however many objects there are.

    Deletes nothing, writes nothing but into `evidence`. What cannot be read ends up in `problems` or as REFUSED, never
    as an orphan. `grace` replaces that of every rule. Raises Unreachable when the downstream cluster is.
    """
    plan = Plan(evidence.now(), await fleet.downstream.uid())
    if plan.downstream != evidence.downstream:
        raise Unreachable("it is another cluster than the one that the evidence is about")
    candidates = await _select(fleet.downstream.client, rules, plan, progress)
    wanted: dict[str, set[Parent]] = {}
    for candidate in candidates:
        wanted.setdefault(candidate.cluster, set()).update(candidate.parents)
    plan.barred = await mixed_up(fleet, evidence)
    plan.looks = {name: Look(plan.made, unknown=why) for name, why in plan.barred.items()}
    plan.retired = fleet.retired - plan.barred.keys()
    out = fleet.retired | plan.barred.keys()
    names = [name for name in fleet.upstreams if wanted.get(name) and name not in out]
    room, done = asyncio.Semaphore(AT_ONCE), 0

    async def look(name: str) -> None:
        nonlocal done
        async with room:
            plan.looks[name] = await at_all(fleet.upstreams[name], wanted[name], evidence)
        done += 1
        progress("clusters looked at", done, len(names))

    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(look(name))
    if not plan.problems:
        evidence.keep_only(wanted, fleet.retired)
    for candidate in candidates:
        rule = candidate.rule
        verdict = judge(candidate, rule.grace if grace is None else grace, plan.looks, plan.retired, evidence)
        if verdict.state is State.KEPT:
            plan.kept[rule.name] += 1
        else:
            plan.items.append(Item(candidate, verdict))
    return plan


async def _select(client: Client, rules: Iterable[Rule], plan: Plan, progress: Progress) -> list[Candidate]:
    found: list[Candidate] = []
    for rule in rules:
        mine: list[Candidate] = []
        plan.selected[rule.name] = 0
        try:
            async for candidate in _every(client, rule):
                mine.append(candidate)
                if len(mine) % PAGE == 0:
                    progress(f"objects selected by {rule.name}", len(mine), 0)
        except NotServed:
            plan.notes.append(
                f"{rule.name}: the downstream cluster serves no {rule.kind.kind} in {rule.kind.api_version}"
            )
            continue
        except (ApiError, OSError) as error:
            what = str(error) or type(error).__name__
            plan.problems.append(f"{rule.name}: {rule.kind.kind}s cannot be listed downstream: {what}")
            continue
        plan.selected[rule.name] = len(mine)
        found += mine
    return found


async def _every(client: Client, rule: Rule) -> AsyncIterator[Candidate]:
    """Each object that the rule selects, once, whatever starts over in between."""
    seen: set[str] = set()
    for attempt in range(1, ATTEMPTS + 1):
        token: str | None = None
        try:
            while True:
                page = await client.list(rule.kind, labels=rule.selector, limit=PAGE, continue_=token)
                for obj in page.items:
                    if obj.uid not in seen and (candidate := rule.candidate(obj)) is not None:
                        seen.add(obj.uid)
                        yield candidate
                token = page.continue_
                if not token:
                    return
        except Expired:
            if attempt == ATTEMPTS:
                raise
