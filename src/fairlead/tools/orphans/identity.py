"""Find the original of a copied object by its labels."""

from collections.abc import Mapping
from dataclasses import dataclass


class UnreadableIdentity(Exception):
    """The labels of a copy do not identify its original. The message names the wrong label."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The upstream object (original) that a downstream object was copied from."""

    cluster: str
    group: str
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class IdentityLabels:
    """The labels that identify the original of a copy: `prefix` + cluster-name, group, kind, namespace, name.

    `encodings` are all prefixes of the cluster name that were ever used, and the longest match counts. With `cluster-`
    and the older `cluster-_`, both `cluster-project-a` and `cluster-_project-a` name project-a. A "/" in the name is
    written "_".
    """

    prefix: str = "meta.datumapis.com/upstream-"
    encodings: tuple[str, ...] = ("cluster-_", "cluster-")

    @property
    def cluster(self) -> str:
        """The key of the label with the cluster name, which every copy has."""
        return f"{self.prefix}cluster-name"

    def read(self, labels: Mapping[str, str]) -> Identity:
        """Return the original that the labels name. Raises UnreadableIdentity if a label is missing or invalid."""
        values = {}
        for field_name in ("group", "kind", "namespace", "name"):
            if (value := labels.get(self.prefix + field_name)) is None:
                raise UnreadableIdentity(f"has no label {self.prefix}{field_name}")
            values[field_name] = value
        if not values["kind"] or not values["name"]:
            raise UnreadableIdentity(f"has an empty label {self.prefix}{'name' if values['kind'] else 'kind'}")
        return Identity(self._decode(labels.get(self.cluster, "")), **values)

    def _decode(self, label: str) -> str:
        for encoding in sorted(self.encodings, key=len, reverse=True):
            if label.startswith(encoding) and label != encoding:
                return label.removeprefix(encoding).replace("_", "/")
        raise UnreadableIdentity(f"has an unknown form of its cluster's name: {label!r}")
