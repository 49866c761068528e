"""Live looks at parents: present, absent since, or unknown. What is not known is never absent.

Every read goes without a resourceVersion, so it is answered with what is there now, not by a replica's memory. A look
counts only if the cluster says before and after that it is the one that was first seen under its name.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from fairlead.api.errors import ApiError, Expired, NotFound
from fairlead.api.kinds import Kind
from fairlead.client.client import Client
from fairlead.tools.orphans.clusters import Cluster, Unreachable
from fairlead.tools.orphans.evidence import Evidence
from fairlead.tools.orphans.rules import Parent

PAGE = 500  # objects a list request: what kubectl asks for
ATTEMPTS = 3  # a list that takes longer than the server remembers starts over, so often

Wanted = dict[tuple[str, str], set[Parent]]


@dataclass(frozen=True, slots=True)
class Absent:
    """Not there at this look, nor at any since then."""

    since: float


@dataclass(slots=True)
class Look:
    """What one look at a cluster found of the parents asked for. `began`: when, at the earliest, it was so."""

    began: float
    uid: str = ""
    unknown: str = ""  # why nothing is known at all
    present: set[Parent] = field(default_factory=set)
    absent: dict[Parent, Absent] = field(default_factory=dict)
    doubts: dict[Parent, str] = field(default_factory=dict)  # why this one is not known

    def of(self, parent: Parent) -> bool | Absent | str:
        """True when it lives, its absence when it does not, why it is not known otherwise."""
        if self.unknown:
            return self.unknown
        if parent in self.present:
            return True
        if (absent := self.absent.get(parent)) is not None:
            return absent
        return self.doubts.get(parent) or "nobody looked"


async def at_all(cluster: Cluster, parents: Iterable[Parent], evidence: Evidence) -> Look:
    """Look at a whole cluster by lists: their number depends on kinds and pages, not on how many ask."""
    return await _look(cluster, parents, evidence, by_lists=True)


async def at_each(cluster: Cluster, parents: Iterable[Parent], evidence: Evidence) -> Look:
    """Look at a few parents, one request each."""
    return await _look(cluster, parents, evidence, by_lists=False)


async def _look(cluster: Cluster, parents: Iterable[Parent], evidence: Evidence, *, by_lists: bool) -> Look:
    look = Look(evidence.now())
    wanted: Wanted = {}
    for parent in parents:
        wanted.setdefault((parent.group, parent.kind), set()).add(parent)
    alive: set[Parent] = set()
    looked: set[Parent] = set()
    try:
        look.uid = await _identified(cluster, evidence)
        served = await cluster.kinds()
        for key, asked in wanted.items():
            kind = served.get(key)
            if kind is None:
                look.doubts |= dict.fromkeys(asked, f"it serves no {key[1]} of {key[0] or 'the core group'}")
                continue
            placed = {parent for parent in asked if parent.namespace or not kind.namespaced}
            look.doubts |= dict.fromkeys(asked - placed, "its namespace is not said")
            try:
                found = await (_listed(cluster.client, kind) if by_lists else _got(cluster.client, kind, placed))
            except (ApiError, OSError) as error:
                what = str(error) or type(error).__name__
                look.doubts |= dict.fromkeys(asked, f"its {kind.plural} cannot be read: {what}")
                continue
            looked |= placed
            alive |= {p for p in placed if (p.namespace if kind.namespaced else "", p.name) in found}
        if await _identified(cluster, evidence) != look.uid:
            raise Unreachable("it became another cluster while it was looked at")
    except Unreachable as error:
        look.unknown = str(error)
        return look
    evidence.met(cluster.name, look.uid)
    moment = evidence.now()
    for parent in looked:
        if parent in alive:
            look.present.add(parent)
            evidence.alive(cluster.name, parent)
        else:
            look.absent[parent] = Absent(evidence.absent(cluster.name, parent, moment))
    return look


async def _identified(cluster: Cluster, evidence: Evidence) -> str:
    uid = await cluster.uid()
    known = evidence.known_uid(cluster.name)
    if known is not None and known != uid:
        raise Unreachable(
            f"it is another cluster than before (kube-system is {uid}, was {known}): if that is meant, remove "
            f"clusters[{cluster.name!r}] from the evidence; if the old one is gone for good, name it as retired"
        )
    return uid


async def _listed(client: Client, kind: Kind) -> set[tuple[str, str]]:
    """Every object of the kind, by namespace and name; one that is being deleted lives."""
    for attempt in range(1, ATTEMPTS + 1):
        found: set[tuple[str, str]] = set()
        token: str | None = None
        try:
            while True:
                page = await client.list(kind, limit=PAGE, continue_=token, metadata_only=True)
                found.update((obj.namespace or "", obj.name) for obj in page.items)
                token = page.continue_
                if not token:
                    return found
        except Expired:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError


async def _got(client: Client, kind: Kind, asked: Iterable[Parent]) -> set[tuple[str, str]]:
    found = set()
    for parent in sorted(asked):
        namespace = parent.namespace if kind.namespaced else ""
        try:
            await client.get(kind, parent.name, namespace or None)
        except NotFound:  # names the object; that the kind is not served is another error
            continue
        found.add((namespace, parent.name))
    return found
