"""A plan: the result of one scan of all clusters, with a verdict on each object that a rule selects."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlead.api.errors import ApiError, Expired
from fairlead.api.times import rfc3339
from fairlead.client.client import Client
from fairlead.client.discovery import NotServed
from fairlead.tools.orphans.ambiguous_clusters import find_ambiguous_clusters
from fairlead.tools.orphans.clusters import CONCURRENT_CLUSTERS, Fleet, Unreachable
from fairlead.tools.orphans.evidence import Evidence
from fairlead.tools.orphans.looks import MAX_LIST_ATTEMPTS, PAGE_SIZE, Look, look_by_lists
from fairlead.tools.orphans.rules import Candidate, OrphanRule, Parent
from fairlead.tools.orphans.verdicts import State, Verdict, judge

VERSION = 1
Progress = Callable[[str, int, int], None]
"""Called during a scan: what is counted, how many are done, and of how many (0 if unknown)."""


@dataclass(frozen=True, slots=True)
class Item:
    """A downstream object that a rule selects, and the verdict on it: orphan, waiting, kept or refused."""

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
    """The result of one scan. Objects with the verdict KEPT are only counted."""

    created_at: float
    downstream: str
    items: list[Item] = field(default_factory=list)
    selected: Counter[str] = field(default_factory=Counter)  # by rule
    kept: Counter[str] = field(default_factory=Counter)  # by rule
    looks: dict[str, Look] = field(default_factory=dict)
    ambiguous: dict[str, str] = field(default_factory=dict)  # clusters that must not be judged, and why
    retired: frozenset[str] = frozenset()
    problems: list[str] = field(default_factory=list)  # What could not be read downstream.
    notes: list[str] = field(default_factory=list)

    def of(self, state: State) -> list[Item]:
        return [item for item in self.items if item.verdict.state is state]

    @property
    def complete(self) -> bool:
        """Whether every selected object could be judged."""
        return not self.problems and not self.of(State.REFUSED)

    def to_json(self) -> dict[str, Any]:
        clusters: dict[str, dict[str, Any]] = {
            name: {"state": "unknown", "why": look.unknown} if look.unknown else {"state": "looked at", "uid": look.uid}
            for name, look in sorted(self.looks.items())
        }
        clusters |= {name: {"state": "retired"} for name in sorted(self.retired)}
        return {
            "version": VERSION,
            "made": rfc3339(self.created_at),
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
    rules: Sequence[OrphanRule],
    evidence: Evidence,
    *,
    grace: float | None = None,
    progress: Progress = lambda step, done, total: None,
) -> Plan:
    """List the objects that the rules select and their parents, and return a plan with a verdict on each object.

    The scan deletes nothing and changes only `evidence`. If an object or a cluster cannot be read, the objects that
    depend on it get the verdict REFUSED or are listed in `problems`. They are never orphans. `grace` replaces the grace
    period of every rule. Raises Unreachable if the downstream cluster cannot be read.
    """
    plan = Plan(evidence.now(), await fleet.downstream.uid())
    if plan.downstream != evidence.downstream:
        raise Unreachable("it is not the cluster of the evidence")
    candidates = await _select_candidates(fleet.downstream.client, rules, plan, progress)
    parents_by_cluster: dict[str, set[Parent]] = {}
    for candidate in candidates:
        parents_by_cluster.setdefault(candidate.cluster, set()).update(candidate.parents)
    plan.ambiguous = await find_ambiguous_clusters(fleet, evidence)
    plan.looks = {name: Look(plan.created_at, unknown=reason) for name, reason in plan.ambiguous.items()}
    plan.retired = fleet.retired - plan.ambiguous.keys()
    excluded = fleet.retired | plan.ambiguous.keys()
    names = [name for name in fleet.upstreams if parents_by_cluster.get(name) and name not in excluded]
    semaphore, completed = asyncio.Semaphore(CONCURRENT_CLUSTERS), 0

    async def look_at(name: str) -> None:
        nonlocal completed
        async with semaphore:
            plan.looks[name] = await look_by_lists(fleet.upstreams[name], parents_by_cluster[name], evidence)
        completed += 1
        progress("clusters looked at", completed, len(names))

    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(look_at(name))
    if not plan.problems:
        evidence.forget_except(parents_by_cluster, fleet.retired)
    for candidate in candidates:
        rule = candidate.rule
        verdict = judge(candidate, rule.grace if grace is None else grace, plan.looks, plan.retired, evidence)
        if verdict.state is State.KEPT:
            plan.kept[rule.name] += 1
        else:
            plan.items.append(Item(candidate, verdict))
    return plan


async def _select_candidates(
    client: Client, rules: Iterable[OrphanRule], plan: Plan, progress: Progress
) -> list[Candidate]:
    candidates: list[Candidate] = []
    for rule in rules:
        selected: list[Candidate] = []
        plan.selected[rule.name] = 0
        try:
            async for candidate in _list_candidates(client, rule):
                selected.append(candidate)
                if len(selected) % PAGE_SIZE == 0:
                    progress(f"objects selected by {rule.name}", len(selected), 0)
        except NotServed:
            plan.notes.append(
                f"{rule.name}: the downstream cluster does not serve {rule.kind.kind} in {rule.kind.api_version}"
            )
            continue
        except (ApiError, OSError) as error:
            message = str(error) or type(error).__name__
            plan.problems.append(f"{rule.name}: {rule.kind.kind}s cannot be listed downstream: {message}")
            continue
        plan.selected[rule.name] = len(selected)
        candidates += selected
    return candidates


async def _list_candidates(client: Client, rule: OrphanRule) -> AsyncIterator[Candidate]:
    """Yield each object that the rule selects. No object is yielded twice, also if a list has to start again."""
    seen_uids: set[str] = set()
    for attempt in range(1, MAX_LIST_ATTEMPTS + 1):
        token: str | None = None
        try:
            while True:
                page = await client.list(rule.kind, labels=rule.selector, limit=PAGE_SIZE, continue_=token)
                for obj in page.items:
                    if obj.uid not in seen_uids and (candidate := rule.candidate(obj)) is not None:
                        seen_uids.add(obj.uid)
                        yield candidate
                token = page.continue_
                if not token:
                    return
        except Expired:
            if attempt == MAX_LIST_ATTEMPTS:
                raise
