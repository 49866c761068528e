"""The scope of a watch: the kind, namespace and selectors of the objects that the watch reports."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.api import selectors
from fairlead.api.kinds import Kind
from fairlead.cache.entries import Transform


@dataclass(frozen=True, eq=False)
class Scope:
    """The objects of one watch: a kind, one namespace or all, and optional label and field selectors.

    Equal scopes share one watch. The comparison ignores the kind's plural, which may be a guess before discovery.
    """

    kind: Kind
    namespace: str | None = None
    labels: str | None = None
    fields: str | None = None
    metadata_only: bool = False
    transform: Transform | None = None

    def _identity(self) -> tuple[object, ...]:
        return self.kind.key, self.namespace, self.labels, self.fields, self.metadata_only, self.transform

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scope) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    @property
    def is_unfiltered(self) -> bool:
        """Whether the scope has no selectors, so that an object that is not in the cache does not exist."""
        return not self.labels and not self.fields

    def includes_namespace(self, namespace: str | None) -> bool:
        """Return whether the scope contains the objects of that namespace."""
        return self.namespace is None or self.namespace == namespace

    def matches(self, obj: Mapping[str, Any]) -> bool | None:
        """Return whether the selectors match an object of this kind and namespace.

        The result is None if the field selector uses a field that only the server can evaluate.
        """
        metadata = obj.get("metadata") or {}
        if self.labels and not selectors.parse_labels(self.labels).matches(metadata.get("labels")):
            return False
        if not self.fields:
            return True
        selector = selectors.parse_fields(self.fields)
        values = {"metadata.name": metadata.get("name"), "metadata.namespace": metadata.get("namespace")}
        if any(condition.path not in values for condition in selector.conditions):
            return None
        return selector.matches(lambda path: values[path] or "")

    def __str__(self) -> str:
        parts = [str(self.kind), f"in {self.namespace}" if self.namespace else ""]
        parts += [selector for selector in (self.labels, self.fields) if selector]
        return " ".join(part for part in parts if part)
