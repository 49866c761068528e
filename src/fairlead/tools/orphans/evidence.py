"""The evidence: which parents were absent, in which cluster, since when.

A parent that is found loses its entry; a parent that cannot be read keeps it. So a restart neither forgets nor shortens
the grace period. Time between two runs never counts as a look: every deletion needs a look of its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.api.times import parse, rfc3339_micro
from fairlead.api.world import World
from fairlead.tools.orphans.rules import Parent

VERSION = 1


class UnusableEvidence(Exception):
    """Recorded evidence that cannot be used. The message says why."""


@dataclass(slots=True)
class ClusterRecord:
    """One cluster: its identity when it was first seen, and its absent parents."""

    uid: str
    absent: dict[Parent, float] = field(default_factory=dict)


class Evidence:
    """Everything that was seen so far.

    Its clock starts at the wall clock and is monotonic from then on: setting the wall clock forward does not shorten a
    grace period, and a recorded time in the future counts as now.
    """

    def __init__(self, world: World, downstream: str) -> None:
        self.downstream = downstream
        self.clusters: dict[str, ClusterRecord] = {}
        self.shared: dict[str, list[str]] = {}  # uid -> names, for a cluster seen under several names at once
        self.retired: dict[str, float] = {}
        self.deleted: dict[str, list[float]] = {}  # rule -> times of deletions
        self._clock = world.clock
        self._wall, self._count = world.clock.now(), world.clock.monotonic()

    def now(self) -> float:
        return self._wall + self._clock.monotonic() - self._count

    def known_uid(self, cluster: str) -> str | None:
        """Return the identity of the cluster when it was first seen under this name."""
        record = self.clusters.get(cluster)
        return record.uid if record else None

    def record_cluster(self, cluster: str, uid: str) -> None:
        """Remember the identity of a cluster, unless one is known for this name."""
        self.clusters.setdefault(cluster, ClusterRecord(uid))

    def absent(self, cluster: str, parent: Parent, moment: float) -> float:
        """Record that a parent was absent, and return since when."""
        return self.clusters[cluster].absent.setdefault(parent, moment)

    def alive(self, cluster: str, parent: Parent) -> None:
        """Record that a parent is present, which ends its absence."""
        if cluster in self.clusters:
            self.clusters[cluster].absent.pop(parent, None)

    def retired_since(self, cluster: str) -> float:
        """Return since when the cluster is retired; now, if it is new."""
        return self.retired.setdefault(cluster, self.now())

    def forget_except(self, wanted: Mapping[str, Iterable[Parent]], retired: Iterable[str]) -> None:
        """Forget parents that no object refers to, and clusters that are no longer retired."""
        for name, record in self.clusters.items():
            pointed_at = set(wanted.get(name, ()))
            record.absent = {parent: since for parent, since in record.absent.items() if parent in pointed_at}
        self.retired = {name: since for name, since in self.retired.items() if name in set(retired)}

    def to_json(self) -> dict[str, Any]:
        clusters = {
            name: {"uid": record.uid, "absent": [_entry(p, since) for p, since in sorted(record.absent.items())]}
            for name, record in sorted(self.clusters.items())
        }
        return {
            "version": VERSION,
            "downstream": self.downstream,
            "clusters": clusters,
            "shared": dict(sorted(self.shared.items())),
            "retired": {name: rfc3339_micro(since) for name, since in sorted(self.retired.items())},
            "deleted": {rule: [rfc3339_micro(at) for at in times] for rule, times in sorted(self.deleted.items())},
        }

    def read(self, content: Any) -> None:
        """Take over what was recorded. Raises Unusable on anything that `to_json` did not write."""
        if not isinstance(content, dict) or content.get("version") != VERSION:
            raise UnusableEvidence("it is not evidence of this version of fairlead")
        if content.get("downstream") != self.downstream:
            raise UnusableEvidence("it belongs to another downstream cluster")
        try:
            for name, entry in content["clusters"].items():
                record = ClusterRecord(_text(entry["uid"]))
                for group, kind, namespace, parent, since in entry["absent"]:
                    key = Parent(_text(group), _text(kind), _text(namespace), _text(parent))
                    record.absent[key] = self._parse_time(since)
                self.clusters[name] = record
            self.shared = {uid: [_text(name) for name in names] for uid, names in content["shared"].items()}
            self.retired = {name: self._parse_time(since) for name, since in content["retired"].items()}
            self.deleted = {rule: [self._parse_time(at) for at in times] for rule, times in content["deleted"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UnusableEvidence(f"its content is damaged ({type(error).__name__})") from None

    def _parse_time(self, text: str) -> float:
        return min(parse(text), self.now())


def _entry(parent: Parent, since: float) -> list[str]:
    return [parent.group, parent.kind, parent.namespace, parent.name, rfc3339_micro(since)]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    return value
