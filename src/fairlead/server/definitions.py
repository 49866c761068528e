"""Custom resource definitions: names accepted, kinds served, instances deleted with their definition."""

from typing import TYPE_CHECKING, Any

from fairlead.api.times import rfc3339
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import structural
from fairlead.server.store import Stored

if TYPE_CHECKING:
    from fairlead.server.app import Server

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
PRESERVING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
GROUP, PLURAL = "apiextensions.k8s.io", "customresourcedefinitions"


class Definitions:
    """Keeps the registry in step with the stored definitions."""

    def __init__(self, server: "Server") -> None:
        self._server = server

    def changed(self, stored: Stored, deleted: bool) -> None:
        """A definition was written: serve what it says."""
        spec = stored.object["spec"]
        group, plural = spec["group"], spec["names"]["plural"]
        if deleted:
            self._server.registry.remove(group, plural)
            return
        if stored.object["metadata"].get("deletionTimestamp"):
            self._clean_up(stored, group, plural)
            return
        settled = self._settled(stored.object)
        if settled is not stored.object:
            table = self._server.store.table(GROUP, PLURAL)
            self._server.store.put(table, settled)
        served = [resource_of(settled, version) for version in spec["versions"] if version.get("served")]
        storage = resource_of(settled, next(v for v in spec["versions"] if v.get("storage")))
        self._server.registry.install(group, plural, served, storage)

    def _settled(self, obj: Object) -> Object:
        """The definition with its names accepted and established."""
        names = obj["spec"]["names"]
        status = obj.get("status") or {}
        conditions = status.get("conditions") or []
        if status.get("acceptedNames") == names and conditions:
            return obj
        now = rfc3339(self._server.world.clock.now())
        made = [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
            _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
        ]
        stored_versions = status.get("storedVersions") or [
            v["name"] for v in obj["spec"]["versions"] if v.get("storage")
        ]
        metadata = obj["metadata"]
        finalizers = metadata.get("finalizers") or []
        if FINALIZER not in finalizers:
            metadata = {**metadata, "finalizers": [*finalizers, FINALIZER]}
        settled = {"acceptedNames": names, "conditions": made, "storedVersions": stored_versions}
        return {**obj, "metadata": metadata, "status": settled}

    def _clean_up(self, stored: Stored, group: str, plural: str) -> None:
        """Delete every instance; when none is left, let the definition go."""
        from fairlead.server.verbs.delete import DeleteOptions, delete_object

        resource = self._server.registry.storage(group, plural)
        table = self._server.store.table(group, plural)
        if resource is not None:
            for _, instance in list(table.scan(None)):
                if not instance.object["metadata"].get("deletionTimestamp"):
                    delete_object(self._server, resource, instance, DeleteOptions())
        self.emptied(group, plural)

    def emptied(self, group: str, plural: str) -> None:
        """An instance went: a deleting definition without instances and other finalizers goes too."""
        if next(self._server.store.table(group, plural).scan(None), None) is not None:
            return
        table = self._server.store.table(GROUP, PLURAL)
        stored = table.get("", f"{plural}.{group}")
        if stored is None or not stored.object["metadata"].get("deletionTimestamp"):
            return
        rest = [f for f in stored.object["metadata"].get("finalizers") or [] if f != FINALIZER]
        self._server.registry.remove(group, plural)
        if rest:
            metadata = {**stored.object["metadata"], "finalizers": rest}
            self._server.store.put(table, {**stored.object, "metadata": metadata})
        else:
            self._server.store.delete(table, stored)


def _condition(kind: str, reason: str, message: str, now: str) -> dict[str, Any]:
    return {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}


def resource_of(definition: Object, version: dict[str, Any]) -> Resource:
    """One version of a custom kind as the verbs see it."""
    spec = definition["spec"]
    names = spec["names"]
    subresources = version.get("subresources") or {}
    return Resource(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        namespaced=spec["scope"] == "Namespaced",
        schema=structural.compile((version.get("schema") or {}).get("openAPIV3Schema") or PRESERVING),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        custom=True,
        status="status" in subresources,
        scale=subresources.get("scale"),
        has_generation=True,
        unconditional_update=False,
    )
