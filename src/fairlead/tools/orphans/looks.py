"""Read the parents of candidates from a cluster. Each parent is present, absent since a time, or unknown.

One such read is called a look. Its requests have no resourceVersion, so the server answers with its current state. A
look counts only if the cluster's uid before and after it is the uid that was first recorded for the cluster's name.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from fairlead.api.errors import ApiError, Expired, NotFound
from fairlead.api.kinds import Kind
from fairlead.client.client import Client
from fairlead.tools.orphans.clusters import Cluster, Unreachable
from fairlead.tools.orphans.evidence import Evidence
from fairlead.tools.orphans.rules import Parent

PAGE_SIZE = 500  # Objects per list request, as in kubectl.
MAX_LIST_ATTEMPTS = 3  # A list whose continue token expires starts again, at most this often.

ParentsByKind = dict[tuple[str, str], set[Parent]]


@dataclass(frozen=True, slots=True)
class Absent:
    """The state of a parent that was absent at every look since a time."""

    since: float


@dataclass(slots=True)
class Look:
    """The parents that one look found present or absent in a cluster. The requests were sent at `began` or later."""

    began: float
    uid: str = ""
    unknown: str = ""  # Why nothing is known about the cluster.
    present: set[Parent] = field(default_factory=set)
    absent: dict[Parent, Absent] = field(default_factory=dict)
    doubts: dict[Parent, str] = field(default_factory=dict)  # Why this parent is unknown.

    def of(self, parent: Parent) -> bool | Absent | str:
        """Return True if the parent is present, an `Absent` if it is absent, or a message why that is unknown."""
        if self.unknown:
            return self.unknown
        if parent in self.present:
            return True
        if (absent := self.absent.get(parent)) is not None:
            return absent
        return self.doubts.get(parent) or "it was not looked up"


async def look_by_lists(cluster: Cluster, parents: Iterable[Parent], evidence: Evidence) -> Look:
    """Read many parents with lists. The number of requests depends on kinds and pages, not on the parents."""
    return await _look(cluster, parents, evidence, uses_lists=True)


async def look_by_gets(cluster: Cluster, parents: Iterable[Parent], evidence: Evidence) -> Look:
    """Read a few parents with one GET each."""
    return await _look(cluster, parents, evidence, uses_lists=False)


async def _look(cluster: Cluster, parents: Iterable[Parent], evidence: Evidence, *, uses_lists: bool) -> Look:
    look = Look(evidence.now())
    parents_by_kind: ParentsByKind = {}
    for parent in parents:
        parents_by_kind.setdefault((parent.group, parent.kind), set()).add(parent)
    present_parents: set[Parent] = set()
    readable: set[Parent] = set()
    try:
        look.uid = await _check_identity(cluster, evidence)
        served_kinds = await cluster.kinds()
        for key, parents_of_kind in parents_by_kind.items():
            kind = served_kinds.get(key)
            if kind is None:
                look.doubts |= dict.fromkeys(
                    parents_of_kind, f"it does not serve {key[1]} of {key[0] or 'the core group'}"
                )
                continue
            addressable = {parent for parent in parents_of_kind if parent.namespace or not kind.namespaced}
            look.doubts |= dict.fromkeys(parents_of_kind - addressable, "its namespace is missing")
            try:
                existing_names = await (
                    _list_names(cluster.client, kind) if uses_lists else _get_names(cluster.client, kind, addressable)
                )
            except (ApiError, OSError) as error:
                message = str(error) or type(error).__name__
                look.doubts |= dict.fromkeys(parents_of_kind, f"its {kind.plural} cannot be read: {message}")
                continue
            readable |= addressable
            present_parents |= {
                parent
                for parent in addressable
                if (parent.namespace if kind.namespaced else "", parent.name) in existing_names
            }
        if await _check_identity(cluster, evidence) != look.uid:
            raise Unreachable("its identity changed during the look")
    except Unreachable as error:
        look.unknown = str(error)
        return look
    evidence.record_cluster(cluster.name, look.uid)
    now = evidence.now()
    for parent in readable:
        if parent in present_parents:
            look.present.add(parent)
            evidence.alive(cluster.name, parent)
        else:
            look.absent[parent] = Absent(evidence.absent(cluster.name, parent, now))
    return look


async def _check_identity(cluster: Cluster, evidence: Evidence) -> str:
    uid = await cluster.uid()
    known_uid = evidence.known_uid(cluster.name)
    if known_uid is not None and known_uid != uid:
        raise Unreachable(
            f"it is another cluster than before (kube-system has the uid {uid}, and had {known_uid}): "
            f"if this is intended, remove clusters[{cluster.name!r}] from the evidence; if the old cluster is gone "
            "for good, use --retired"
        )
    return uid


async def _list_names(client: Client, kind: Kind) -> set[tuple[str, str]]:
    """Return (namespace, name) of every object of the kind, including objects that are being deleted."""
    for attempt in range(1, MAX_LIST_ATTEMPTS + 1):
        existing_names: set[tuple[str, str]] = set()
        token: str | None = None
        try:
            while True:
                page = await client.list(kind, limit=PAGE_SIZE, continue_=token, metadata_only=True)
                existing_names.update((obj.namespace or "", obj.name) for obj in page.items)
                token = page.continue_
                if not token:
                    return existing_names
        except Expired:
            if attempt == MAX_LIST_ATTEMPTS:
                raise
    raise AssertionError


async def _get_names(client: Client, kind: Kind, parents_of_kind: Iterable[Parent]) -> set[tuple[str, str]]:
    existing_names = set()
    for parent in sorted(parents_of_kind):
        namespace = parent.namespace if kind.namespaced else ""
        try:
            await client.get(kind, parent.name, namespace or None)
        except NotFound:  # Names the object. A kind that is not served is another error.
            continue
        existing_names.add((namespace, parent.name))
    return existing_names
