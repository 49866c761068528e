"""Whose copy an object is: cluster, group, kind, namespace and name, read from its labels."""

from collections.abc import Mapping
from dataclasses import dataclass


class Unreadable(Exception):
    """The labels do not say whose copy it is. The message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The upstream object that a downstream one was made from."""

    cluster: str
    group: str
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Labels:
    """How identity is written in labels: `prefix` + cluster-name, group, kind, namespace, name.

    `encodings` are the ways in which a cluster was ever written, each by what stands before the name; the longest that
    fits is the one meant. So `cluster-project-a` and the older `cluster-_project-a` both name project-a. A name's "/"
    is written "_".
    """

    prefix: str = "meta.datumapis.com/upstream-"
    encodings: tuple[str, ...] = ("cluster-_", "cluster-")

    @property
    def cluster(self) -> str:
        """The label that every copy carries."""
        return f"{self.prefix}cluster-name"

    def read(self, labels: Mapping[str, str]) -> Identity:
        """The identity that the labels say. Raises Unreadable when one is missing or in no known encoding."""
        said = {}
        for word in ("group", "kind", "namespace", "name"):
            if (value := labels.get(self.prefix + word)) is None:
                raise Unreadable(f"has no label {self.prefix}{word}")
            said[word] = value
        if not said["kind"] or not said["name"]:
            raise Unreadable(f"has an empty label {self.prefix}{'name' if said['kind'] else 'kind'}")
        return Identity(self._decode(labels.get(self.cluster, "")), **said)

    def _decode(self, label: str) -> str:
        for encoding in sorted(self.encodings, key=len, reverse=True):
            if label.startswith(encoding) and label != encoding:
                return label.removeprefix(encoding).replace("_", "/")
        raise Unreadable(f"names its cluster in no known encoding: {label!r}")
