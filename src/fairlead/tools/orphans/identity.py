"""Read from an object's labels which upstream object it is a copy of."""

from collections.abc import Mapping
from dataclasses import dataclass


class UnreadableIdentity(Exception):
    """The labels do not identify the upstream object. The message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The upstream object that a downstream one was made from."""

    cluster: str
    group: str
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class IdentityLabels:
    """The labels that identify the upstream object: `prefix` + cluster-name, group, kind, namespace, name.

    `encodings` are the prefixes of a cluster's name that were ever used; the longest match counts. So
    `cluster-project-a` and the older `cluster-_project-a` both name project-a. A "/" in the name is written "_".
    """

    prefix: str = "meta.datumapis.com/upstream-"
    encodings: tuple[str, ...] = ("cluster-_", "cluster-")

    @property
    def cluster(self) -> str:
        """The label that every copy has."""
        return f"{self.prefix}cluster-name"

    def read(self, labels: Mapping[str, str]) -> Identity:
        """Return the identity in the labels. Raises UnreadableIdentity if one is missing or not decodable."""
        values = {}
        for word in ("group", "kind", "namespace", "name"):
            if (value := labels.get(self.prefix + word)) is None:
                raise UnreadableIdentity(f"has no label {self.prefix}{word}")
            values[word] = value
        if not values["kind"] or not values["name"]:
            raise UnreadableIdentity(f"has an empty label {self.prefix}{'name' if values['kind'] else 'kind'}")
        return Identity(self._decode(labels.get(self.cluster, "")), **values)

    def _decode(self, label: str) -> str:
        for encoding in sorted(self.encodings, key=len, reverse=True):
            if label.startswith(encoding) and label != encoding:
                return label.removeprefix(encoding).replace("_", "/")
        raise UnreadableIdentity(f"has an unknown form of its cluster's name: {label!r}")
