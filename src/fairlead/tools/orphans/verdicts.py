"""Decide whether one object is an orphan, from the looks at the clusters and the evidence."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fairlead.api.times import rfc3339
from fairlead.tools.orphans.durations import format_duration
from fairlead.tools.orphans.evidence import Evidence
from fairlead.tools.orphans.looks import Absent, Look
from fairlead.tools.orphans.rules import Candidate


class State(StrEnum):
    """The possible verdicts on an object."""

    ORPHAN = "orphan"  # Every parent was absent for the grace period: it may be deleted.
    WAITING = "waiting"  # Every parent is absent, but not for long enough.
    KEPT = "kept"
    REFUSED = "refused"  # Something is unknown, so it stays.


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on an object with its reason. For orphans and waiting objects also the times and the evidence."""

    state: State
    why: str
    since: float | None = None
    due: float | None = None
    evidence: tuple[str, ...] = ()


def judge(
    candidate: Candidate, grace: float, looks: Mapping[str, Look], retired: frozenset[str], evidence: Evidence
) -> Verdict:
    """Return the verdict on a candidate.

    A candidate is an orphan if it has parents and all of them are absent now and were absent for the grace period.
    """
    if candidate.kept:
        return Verdict(State.KEPT, candidate.kept)
    if candidate.unreadable:
        return Verdict(State.REFUSED, f"it {candidate.unreadable}")
    name = candidate.cluster
    if name in retired:
        since = evidence.retired_since(name)
        return _judge_age(f"cluster {name} is retired", since, evidence.now(), grace, (_describe_retired(name, since),))
    look = looks.get(name)
    if look is None:
        return Verdict(State.REFUSED, f"the cluster {name} is unknown: name it with --upstream or --retired")
    absent_since: list[float] = []
    observations: list[str] = []
    unknown = ""
    for parent in candidate.parents:
        match look.of(parent):
            case Absent(since):
                absent_since.append(since)
                observations.append(
                    f"{parent} was absent from {name} ({look.uid}) at {rfc3339(look.began)}, and since {rfc3339(since)}"
                )
            case str(why):
                unknown = unknown or f"{parent} in {name}: {why}"
            case _:
                return Verdict(State.KEPT, f"{parent} is in {name}")
    if unknown:
        return Verdict(State.REFUSED, unknown)
    count = len(absent_since)
    summary = f"{candidate.parents[0]} is gone" if count == 1 else f"all its {count} parents are gone"
    return _judge_age(f"{summary} from {name}", max(absent_since), look.began, grace, tuple(observations))


def _judge_age(reason: str, since: float, now: float, grace: float, observations: tuple[str, ...]) -> Verdict:
    # The look began just before its absences were recorded, so the age may be negative.
    age = max(0.0, now - since)
    if age >= grace:
        return Verdict(State.ORPHAN, reason, since, since + grace, observations)
    return Verdict(
        State.WAITING,
        f"{reason}, for {format_duration(age)} of {format_duration(grace)}",
        since,
        since + grace,
        observations,
    )


def _describe_retired(name: str, since: float) -> str:
    return f"cluster {name} has been retired since {rfc3339(since)}"
