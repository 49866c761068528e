"""What one watch watches."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.api import selectors
from fairlead.api.kinds import Kind
from fairlead.cache.entries import Transform


@dataclass(frozen=True, eq=False)
class Scope:
    """A kind, in one namespace or all, perhaps selected, perhaps only its metadata, perhaps transformed.

    Two who ask for equal scopes share one watch. A kind is the same whether or not discovery has settled its plural.
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
    def whole(self) -> bool:
        """Everything in the namespace is here: what is not, does not exist."""
        return not self.labels and not self.fields

    def reaches(self, namespace: str | None) -> bool:
        """Whether it looks at that namespace at all."""
        return self.namespace is None or self.namespace == namespace

    def selects(self, obj: Mapping[str, Any]) -> bool | None:
        """Whether an object of the kind and namespace is selected; None when only the server can tell."""
        metadata = obj.get("metadata") or {}
        if self.labels and not selectors.parse_labels(self.labels).matches(metadata.get("labels")):
            return False
        if not self.fields:
            return True
        fields = selectors.parse_fields(self.fields)
        told = {"metadata.name": metadata.get("name"), "metadata.namespace": metadata.get("namespace")}
        if any(condition.path not in told for condition in fields.conditions):
            return None
        return fields.matches(lambda path: told[path] or "")

    def __str__(self) -> str:
        parts = [str(self.kind), f"in {self.namespace}" if self.namespace else ""]
        parts += [text for text in (self.labels, self.fields) if text]
        return " ".join(part for part in parts if part)
