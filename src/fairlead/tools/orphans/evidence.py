"""The evidence: which parents were absent in which cluster, and since when.

A parent that is present again loses its entry. A parent that cannot be read keeps its entry, so a restart does not
restart the grace period. Evidence alone never causes a deletion: the parents are read again before each deletion.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.api.times import parse, rfc3339_micro
from fairlead.api.world import World
from fairlead.tools.orphans.rules import Parent

VERSION = 1


class UnusableEvidence(Exception):
    """The stored evidence cannot be used. The message names the reason."""


@dataclass(slots=True)
class ClusterRecord:
    """The uid of one cluster when it was first seen, and its absent parents with the time of the first absence."""

    uid: str
    absent: dict[Parent, float] = field(default_factory=dict)


class Evidence:
    """The absent parents of all clusters, the retired clusters, and the recent deletions.

    `now` starts with the wall-clock time and is monotonic from then on, so a change of the system time does not shorten
    a grace period. A recorded time in the future counts as now.
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
        """Return the uid that the cluster had when this name was first seen, or None for an unknown name."""
        record = self.clusters.get(cluster)
        return record.uid if record else None

    def record_cluster(self, cluster: str, uid: str) -> None:
        """Record the uid of a cluster. A uid that was recorded before under this name stays."""
        self.clusters.setdefault(cluster, ClusterRecord(uid))

    def absent(self, cluster: str, parent: Parent, now: float) -> float:
        """Record that a parent was absent at `now`, and return the time since which it has been absent."""
        return self.clusters[cluster].absent.setdefault(parent, now)

    def alive(self, cluster: str, parent: Parent) -> None:
        """Record that a parent is present, and forget the time since which it was absent."""
        if cluster in self.clusters:
            self.clusters[cluster].absent.pop(parent, None)

    def retired_since(self, cluster: str) -> float:
        """Return the time since which the cluster is retired. A cluster that was not retired before is retired now."""
        return self.retired.setdefault(cluster, self.now())

    def forget_except(self, wanted: Mapping[str, Iterable[Parent]], retired: Iterable[str]) -> None:
        """Forget the parents that are not in `wanted` and the retired clusters that are not in `retired`."""
        for name, record in self.clusters.items():
            wanted_parents = set(wanted.get(name, ()))
            record.absent = {parent: since for parent, since in record.absent.items() if parent in wanted_parents}
        self.retired = {name: since for name, since in self.retired.items() if name in set(retired)}

    def to_json(self) -> dict[str, Any]:
        clusters = {
            name: {
                "uid": record.uid,
                "absent": [_build_entry(parent, since) for parent, since in sorted(record.absent.items())],
            }
            for name, record in sorted(self.clusters.items())
        }
        return {
            "version": VERSION,
            "downstream": self.downstream,
            "clusters": clusters,
            "shared": dict(sorted(self.shared.items())),
            "retired": {name: rfc3339_micro(since) for name, since in sorted(self.retired.items())},
            "deleted": {
                rule: [rfc3339_micro(deleted_at) for deleted_at in times]
                for rule, times in sorted(self.deleted.items())
            },
        }

    def read(self, content: Any) -> None:
        """Load the evidence from the JSON that `to_json` returned. Raises UnusableEvidence for any other content."""
        if not isinstance(content, dict) or content.get("version") != VERSION:
            raise UnusableEvidence("it is not evidence of this version of fairlead")
        if content.get("downstream") != self.downstream:
            raise UnusableEvidence("it belongs to another downstream cluster")
        try:
            for name, entry in content["clusters"].items():
                record = ClusterRecord(_expect_text(entry["uid"]))
                for group, kind, namespace, parent, since in entry["absent"]:
                    key = Parent(_expect_text(group), _expect_text(kind), _expect_text(namespace), _expect_text(parent))
                    record.absent[key] = self._parse_time(since)
                self.clusters[name] = record
            self.shared = {uid: [_expect_text(name) for name in names] for uid, names in content["shared"].items()}
            self.retired = {name: self._parse_time(since) for name, since in content["retired"].items()}
            self.deleted = {
                rule: [self._parse_time(deleted_at) for deleted_at in times]
                for rule, times in content["deleted"].items()
            }
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UnusableEvidence(f"its content is damaged ({type(error).__name__})") from None

    def _parse_time(self, text: str) -> float:
        return min(parse(text), self.now())


def _build_entry(parent: Parent, since: float) -> list[str]:
    return [parent.group, parent.kind, parent.namespace, parent.name, rfc3339_micro(since)]


def _expect_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    return value
