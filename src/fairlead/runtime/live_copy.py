"""A copy of the server's objects of one kind, for a clean-up handler that reads a kind which is not watched."""

from collections.abc import Iterable

from fairlead.api import selectors
from fairlead.api.objects import Object


class LiveCopy:
    """The objects of one kind, in one namespace or in all, as a live list returned them. It reads like a cache."""

    def __init__(self, objects: Iterable[Object]) -> None:
        self._objects = list(objects)

    def get(self, name: str, namespace: str | None = None) -> Object | None:
        """Return the object, or None if it does not exist."""
        return next((obj for obj in self.list(namespace) if obj.name == name), None)

    def owned_by(self, uid: str, exclude: Iterable[tuple[str | None, str]] = ()) -> "list[Object]":
        """Return the objects that have an ownerReference with that uid, except those in `exclude`."""
        excluded = {(namespace or None, name) for namespace, name in exclude}
        return [
            obj
            for obj in self._objects
            if (obj.namespace or None, obj.name) not in excluded
            and any(ref.get("uid") == uid for ref in obj.metadata.get("ownerReferences") or ())
        ]

    def list(self, namespace: str | None = None, *, labels: str | None = None) -> "list[Object]":
        """Return the objects that match the label selector, in one namespace or in all."""
        selector = selectors.parse_labels(labels or "")
        return [
            obj
            for obj in self._objects
            if selector.matches(obj.labels) and (not namespace or not obj.namespace or obj.namespace == namespace)
        ]
