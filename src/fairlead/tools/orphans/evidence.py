"""Absence with a time: which parents were seen absent, in which cluster, since when.

A parent that is seen alive loses its entry; one that cannot be looked at keeps it. So a run that dies and starts again
neither forgets nor shortens the grace, and time away never counts as a look: every deletion needs one of its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.api.times import parse, rfc3339_micro
from fairlead.api.world import World
from fairlead.tools.orphans.rules import Parent

VERSION = 1


class Unusable(Exception):
    """What was recorded cannot be read. The message says why."""


@dataclass(slots=True)
class Record:
    """Of one cluster: which it was when first seen, and its absent parents."""

    uid: str
    absent: dict[Parent, float] = field(default_factory=dict)


class Evidence:
    """What was seen so far. Its clock starts with the wall's and then only counts: one that is set forward while the
    process runs does not shorten a grace, and a moment recorded in the future is taken for now.
    """

    def __init__(self, world: World, downstream: str) -> None:
        self.downstream = downstream
        self.clusters: dict[str, Record] = {}
        self.shared: dict[str, list[str]] = {}  # uid of a cluster that was met under several names at once
        self.retired: dict[str, float] = {}
        self.deleted: dict[str, list[float]] = {}  # by rule, the moments
        self._clock = world.clock
        self._wall, self._count = world.clock.now(), world.clock.monotonic()

    def now(self) -> float:
        return self._wall + self._clock.monotonic() - self._count

    def known_uid(self, cluster: str) -> str | None:
        """Which cluster that name was when it was first seen."""
        record = self.clusters.get(cluster)
        return record.uid if record else None

    def met(self, cluster: str, uid: str) -> None:
        """The cluster was reached and is this one. The first is remembered; later ones change nothing."""
        self.clusters.setdefault(cluster, Record(uid))

    def absent(self, cluster: str, parent: Parent, moment: float) -> float:
        """It was not there; answers since when it was not."""
        return self.clusters[cluster].absent.setdefault(parent, moment)

    def alive(self, cluster: str, parent: Parent) -> None:
        """It was there: whatever was known of its absence is over."""
        if cluster in self.clusters:
            self.clusters[cluster].absent.pop(parent, None)

    def named_retired(self, cluster: str) -> float:
        """Since when the cluster is named as retired."""
        return self.retired.setdefault(cluster, self.now())

    def keep_only(self, wanted: Mapping[str, Iterable[Parent]], retired: Iterable[str]) -> None:
        """Drop what nothing points at any more, and clusters that are no longer named as retired."""
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
            raise Unusable("it is not evidence of this version of fairlead")
        if content.get("downstream") != self.downstream:
            raise Unusable("it was recorded for another downstream cluster")
        try:
            for name, said in content["clusters"].items():
                record = Record(_text(said["uid"]))
                for group, kind, namespace, parent, since in said["absent"]:
                    key = Parent(_text(group), _text(kind), _text(namespace), _text(parent))
                    record.absent[key] = self._moment(since)
                self.clusters[name] = record
            self.shared = {uid: [_text(name) for name in names] for uid, names in content["shared"].items()}
            self.retired = {name: self._moment(since) for name, since in content["retired"].items()}
            self.deleted = {rule: [self._moment(at) for at in times] for rule, times in content["deleted"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Unusable(f"its content is not what was written ({type(error).__name__})") from None

    def _moment(self, text: str) -> float:
        return min(parse(text), self.now())


def _entry(parent: Parent, since: float) -> list[str]:
    return [parent.group, parent.kind, parent.namespace, parent.name, rfc3339_micro(since)]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    return value
