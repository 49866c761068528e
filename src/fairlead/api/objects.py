"""Objects: the JSON of a Kubernetes object as a dict, with properties for the fields that are read most."""

from collections.abc import Mapping
from typing import Any


class Object(dict[str, Any]):
    """A Kubernetes object: a dict with properties for the fields that are read most.

    Guarantees: the properties read only the dict itself, so they show every change of the dict.

    Does not guarantee: that `obj.labels`, `obj.spec` or `obj.status` is part of the object. An absent field reads as a
    new empty dict, and a change of that dict does not change the object.

    Example:
        obj.spec["who"]; obj.name; obj.is_true("Ready")
    """

    __slots__ = ()

    @property
    def metadata(self) -> dict[str, Any]:
        return self.get("metadata") or {}

    @property
    def api_version(self) -> str:
        return self.get("apiVersion") or ""

    @property
    def kind(self) -> str:
        return self.get("kind") or ""

    @property
    def name(self) -> str:
        return self.metadata.get("name") or ""

    @property
    def namespace(self) -> str | None:
        return self.metadata.get("namespace") or None

    @property
    def uid(self) -> str:
        return self.metadata.get("uid") or ""

    @property
    def resource_version(self) -> str:
        return self.metadata.get("resourceVersion") or ""

    @property
    def generation(self) -> int:
        return self.metadata.get("generation") or 0

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def finalizers(self) -> list[str]:
        return self.metadata.get("finalizers") or []

    @property
    def deleting(self) -> bool:
        return bool(self.metadata.get("deletionTimestamp"))

    @property
    def spec(self) -> dict[str, Any]:
        return self.get("spec") or {}

    @property
    def status(self) -> dict[str, Any]:
        return self.get("status") or {}

    def condition(self, type: str) -> dict[str, Any] | None:  # noqa: A002 - the API's own word
        """Return a copy of the status condition of that type, or None if the status has no such condition."""
        for condition in self.status.get("conditions") or ():
            if condition.get("type") == type:
                return dict(condition)
        return None

    def is_true(self, type: str) -> bool:  # noqa: A002 - the API's own word
        """Return whether the status condition of that type exists and is "True"."""
        condition = self.condition(type)
        return condition is not None and condition.get("status") == "True"


def is_removed(obj: Mapping[str, Any], *, is_deletion: bool = False) -> bool:
    """Return whether the write that returned `obj` also removed the object from the server.

    A write that removes the last finalizer of a deleted object removes the object, and the response is the removed
    object. Set `is_deletion` if `obj` is the response of a DELETE: it removed the object unless finalizers or a grace
    period are left.
    """
    metadata = obj.get("metadata") or {}
    is_namespace = obj.get("kind") == "Namespace" and obj.get("apiVersion") == "v1"
    is_held = bool(
        metadata.get("finalizers")
        or metadata.get("deletionGracePeriodSeconds")
        or (is_namespace and (obj.get("spec") or {}).get("finalizers"))
    )
    is_deleting = bool(metadata.get("deletionTimestamp"))
    return not (is_deleting and is_held) if is_deletion else is_deleting and not is_held


def as_integer(resource_version: str) -> int:
    """Return a resourceVersion as an integer, or 0 if it is not numeric, as with some aggregated APIs."""
    return int(resource_version) if resource_version.isascii() and resource_version.isdigit() else 0
