"""The verdict on one object, from looks and evidence alone. Asks nobody and changes nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fairlead.api.times import rfc3339
from fairlead.tools.orphans.durations import words
from fairlead.tools.orphans.evidence import Evidence
from fairlead.tools.orphans.looks import Absent, Look
from fairlead.tools.orphans.rules import Candidate


class State(StrEnum):
    """What is to become of an object."""

    ORPHAN = "orphan"  # every parent gone for as long as the grace: may be deleted
    WAITING = "waiting"  # every parent gone, not for long enough yet
    KEPT = "kept"
    REFUSED = "refused"  # something about it is not known, so it is left alone


@dataclass(frozen=True, slots=True)
class Verdict:
    """A state and its reason; for orphans and those who wait, since when, from when on, and what was seen."""

    state: State
    why: str
    since: float | None = None
    due: float | None = None
    evidence: tuple[str, ...] = ()


def judge(
    candidate: Candidate, grace: float, looks: Mapping[str, Look], retired: frozenset[str], evidence: Evidence
) -> Verdict:
    """An orphan has parents, all of them absent for the grace at the least, seen so at this very look."""
    if candidate.kept:
        return Verdict(State.KEPT, candidate.kept)
    if candidate.unreadable:
        return Verdict(State.REFUSED, f"it {candidate.unreadable}")
    name = candidate.cluster
    if name in retired:
        since = evidence.named_retired(name)
        return _aged(f"cluster {name} is retired", since, evidence.now(), grace, (_retired(name, since),))
    look = looks.get(name)
    if look is None:
        return Verdict(State.REFUSED, f"nothing is known of cluster {name}: name it with --upstream or --retired")
    absences: list[float] = []
    seen: list[str] = []
    unknown = ""
    for parent in candidate.parents:
        match look.of(parent):
            case Absent(since):
                absences.append(since)
                seen.append(
                    f"{parent} was not in {name} ({look.uid}) at {rfc3339(look.began)}, nor since {rfc3339(since)}"
                )
            case str(why):
                unknown = unknown or f"{parent} in {name}: {why}"
            case _:
                return Verdict(State.KEPT, f"{parent} is in {name}")
    if unknown:
        return Verdict(State.REFUSED, unknown)
    count = len(absences)
    what = f"{candidate.parents[0]} is gone" if count == 1 else f"all its {count} parents are gone"
    return _aged(f"{what} from {name}", max(absences), look.began, grace, tuple(seen))


def _aged(why: str, since: float, now: float, grace: float, seen: tuple[str, ...]) -> Verdict:
    # the look began a moment before the absence that it found was noted, hence the max
    age = max(0.0, now - since)
    if age >= grace:
        return Verdict(State.ORPHAN, why, since, since + grace, seen)
    return Verdict(State.WAITING, f"{why}, for {words(age)} of {words(grace)}", since, since + grace, seen)


def _retired(name: str, since: float) -> str:
    return f"cluster {name} was named as retired since {rfc3339(since)}"
