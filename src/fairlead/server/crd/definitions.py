"""Custom resource definitions: names accepted, kinds served, instances deleted with their definition."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairlead.api.times import rfc3339
from fairlead.server.discovery import version_priority
from fairlead.server.errors.statuses import forbidden
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import structural
from fairlead.server.storage.store import Table
from fairlead.server.storage.stored import Stored
from fairlead.server.write.managed_fields import get_managed_fields

if TYPE_CHECKING:
    from fairlead.server.app import Server

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
GROUP, PLURAL = "apiextensions.k8s.io", "customresourcedefinitions"
MARKED = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
CONTROLLER = "kube-apiserver"  # as whom the server writes a definition's status


class Definitions:
    """Keeps the registry in step with the stored definitions, and their status in step with the registry."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._lost: dict[tuple[str, str], str] = {}

    @property
    def _table(self) -> Table:
        return self._server.store.table(GROUP, PLURAL)

    @property
    def _now(self) -> str:
        return rfc3339(self._server.world.clock.now())

    def changed(self, stored: Stored, deleted: bool) -> None:
        """A definition was written: settle its names, serve what it says, or clean up after it."""
        spec = stored.object["spec"]
        group, plural = spec["group"], spec["names"]["plural"]
        if deleted:
            self._lost.pop((group, plural), None)
            self._server.registry.remove(group, plural)
        elif stored.object["metadata"].get("deletionTimestamp"):
            if (group, plural) in self._lost:
                self._serve(stored.object, group, plural)  # the version that was taken away may be back
            self._clean_up(stored, group, plural)
        else:
            stored = self._settle(stored)
            self._serve(stored.object, group, plural)
            return
        for other in self._others(group, plural):  # a name that went may be what another definition waits for
            self.changed(other, False)

    def lost(self, resource: Resource) -> str:
        """The version, no more in the definition, that an instance of the kind is still stored at; empty for none."""
        return self._lost.get((resource.group, resource.plural), "")

    def restored(self) -> None:
        """Serve what the stored definitions say, and nothing else: they are settled already."""
        for resource in list(self._server.registry.custom()):
            self._server.registry.remove(resource.group, resource.plural)
        for _, stored in self._table.scan(None):
            spec = stored.object["spec"]
            self._serve(stored.object, spec["group"], spec["names"]["plural"])

    def admit_create(self, resource: Resource, name: str) -> None:
        """Nothing new while its definition goes."""
        stored = self._table.get("", f"{resource.plural}.{resource.group}")
        if stored is not None and stored.object["metadata"].get("deletionTimestamp"):
            message = "create not allowed while custom resource definition is terminating"
            raise forbidden(resource, name, message)

    def marked(self, obj: Object) -> Object:
        """A definition as its first DELETE leaves it: marked, kept by the finalizer, its condition says so."""
        metadata = {**obj["metadata"], "deletionTimestamp": self._now}
        finalizers = metadata.get("finalizers") or []
        if FINALIZER not in finalizers:
            metadata["finalizers"] = [*finalizers, FINALIZER]
        status = obj.get("status") or {}
        condition = self._condition("Terminating", "True", "InstanceDeletionPending", MARKED)
        conditions = _with_condition(status.get("conditions") or [], condition)
        return {**obj, "metadata": metadata, "status": {**status, "conditions": conditions}}

    def emptied(self, group: str, plural: str) -> None:
        """An instance went: a deleting definition without instances and other finalizers goes too."""
        if next(self._server.store.table(group, plural).scan(None), None) is not None:
            return
        stored = self._table.get("", f"{plural}.{group}")
        if stored is None or not stored.object["metadata"].get("deletionTimestamp"):
            return
        self._server.registry.remove(group, plural)
        rest = [f for f in stored.object["metadata"].get("finalizers") or [] if f != FINALIZER]
        if rest:
            metadata = {**stored.object["metadata"], "finalizers": rest}
            if rest != stored.object["metadata"].get("finalizers"):
                self._server.store.put(self._table, {**stored.object, "metadata": metadata})
        else:
            self._server.store.delete(self._table, stored)
        for other in self._others(group, plural):
            self.changed(other, False)

    def _clean_up(self, stored: Stored, group: str, plural: str) -> None:
        """Delete every instance; when none is left, let the definition go. One that cannot be read keeps it."""
        from fairlead.server.verbs.delete import DeleteOptions, delete_object

        if (group, plural) in self._lost:
            return
        resource = self._server.registry.storage(group, plural)
        if resource is not None:
            for _, instance in list(self._server.store.table(group, plural).scan(None)):
                if not instance.object["metadata"].get("deletionTimestamp"):
                    delete_object(self._server, resource, instance, DeleteOptions())
        self.emptied(group, plural)

    def _serve(self, obj: Object, group: str, plural: str) -> None:
        established = any(
            c["type"] == "Established" and c["status"] == "True" for c in obj["status"].get("conditions") or ()
        )
        if not established:
            return
        versions = obj["spec"]["versions"]
        storage = resource_of(obj, next(v for v in versions if v.get("storage")))
        served = [
            storage if version.get("storage") else resource_of(obj, version, storage)
            for version in versions
            if version.get("served")
        ]
        self._look_for_lost(obj, group, plural)
        self._server.registry.install(group, plural, served, storage)

    def _look_for_lost(self, obj: Object, group: str, plural: str) -> None:
        """Note whether instances are stored at a version that the definition has no more: nobody can read them."""
        known = {f"{group}/{version['name']}" for version in obj["spec"]["versions"]}
        before = self._server.registry.storage(group, plural)
        if before is None:
            sure = obj["metadata"].get("generation") == 1
        else:
            sure = all(f"{group}/{version['name']}" in known for version in before.definition["spec"]["versions"])
        if sure and (group, plural) not in self._lost:
            return
        self._lost.pop((group, plural), None)
        for _, instance in self._server.store.table(group, plural).scan(None):
            if instance.object["apiVersion"] not in known:
                self._lost[group, plural] = instance.object["apiVersion"]
                return

    def _others(self, group: str, plural: str) -> Iterator[Stored]:
        for _, stored in list(self._table.scan(None)):
            spec = stored.object["spec"]
            deleting = stored.object["metadata"].get("deletionTimestamp")
            if spec["group"] == group and spec["names"]["plural"] != plural and not deleting:
                yield stored

    def _settle(self, stored: Stored) -> Stored:
        """The definition with the names that are free accepted, and established once all of them are."""
        obj = stored.object
        status = obj.get("status") or {}
        conditions = status.get("conditions") or []
        accepted, refusal = self._accepted(obj)
        if refusal:
            conditions = _with_condition(conditions, self._condition("NamesAccepted", "False", *refusal))
        else:
            condition = self._condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")
            conditions = _with_condition(conditions, condition)
        established = any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
        if not established:
            condition = (
                self._condition("Established", "False", "NotAccepted", "not all names are accepted")
                if refusal
                else self._condition(
                    "Established", "True", "InitialNamesAccepted", "the initial names have been accepted"
                )
            )
            conditions = _with_condition(conditions, condition)
        settled = {**status, "acceptedNames": accepted, "conditions": conditions}
        if settled == status:
            return stored
        return self._written(stored, {**obj, "status": settled})

    def _written(self, live: Stored, obj: Object) -> Stored:
        resource = self._server.registry.find(GROUP, "v1", PLURAL)
        assert resource is not None
        obj, managed = self._server.field_tracker.track_server_update(
            resource, live, obj, CONTROLLER, "status", self._now
        )
        stored = self._server.store.put(self._table, obj)
        stored.derived["managed"] = managed
        assert get_managed_fields(stored) is managed
        return stored

    def _accepted(self, obj: Object) -> tuple[Object, tuple[str, str] | None]:
        """The names that no other definition of the group has, and (reason, message) of the last one that is taken."""
        spec = obj["spec"]
        wanted = spec["names"]
        accepted = dict((obj.get("status") or {}).get("acceptedNames") or {"kind": "", "plural": ""})
        names: set[str] = set()
        kinds: set[str] = set()
        for other in self._others(spec["group"], wanted["plural"]):
            taken = (other.object.get("status") or {}).get("acceptedNames") or {}
            names.update(n for n in (taken.get("plural"), taken.get("singular"), *(taken.get("shortNames") or ())) if n)
            kinds.update(n for n in (taken.get("kind"), taken.get("listKind")) if n)
        refusal: tuple[str, str] | None = None
        for key, taken_names in (("plural", names), ("singular", names), ("kind", kinds), ("listKind", kinds)):
            value = wanted.get(key) or ""
            if value and value in taken_names:
                refusal = (f"{key[0].upper()}{key[1:]}Conflict", f'"{value}" is already in use')
            elif value:
                accepted[key] = value
            if key == "singular":
                short = wanted.get("shortNames") or []
                used = [n for n in short if n in names]
                if used:
                    shown = [f'"{n}" is already in use' for n in used]
                    refusal = ("ShortNamesConflict", shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]")
                else:
                    accepted.pop("shortNames", None)
                    accepted |= {"shortNames": short} if short else {}
        accepted.pop("categories", None)
        if wanted.get("categories"):
            accepted["categories"] = wanted["categories"]
        return accepted, refusal

    def _condition(self, kind: str, status: str, reason: str, message: str) -> Object:
        return {
            "type": kind,
            "status": status,
            "lastTransitionTime": self._now,
            "reason": reason,
            "message": message,
        }


def _with_condition(conditions: list[Object], condition: Object) -> list[Object]:
    """The list with this condition in its place; its time moves only when its status does."""
    made = list(conditions)
    for index, old in enumerate(made):
        if old["type"] == condition["type"]:
            time = "lastTransitionTime"
            kept = old[time] if old["status"] == condition["status"] else condition[time]
            made[index] = {**condition, time: kept}
            return made
    return [*made, condition]


def resource_of(definition: Object, version: dict[str, Any], storage: Resource | None = None) -> Resource:
    """One version of a custom kind as the verbs see it."""
    spec = definition["spec"]
    names = spec["names"]
    subresources = version.get("subresources") or {}
    selectable = tuple(f["jsonPath"].lstrip(".") for f in version.get("selectableFields") or ())
    return Resource(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        namespaced=spec["scope"] == "Namespaced",
        schema=structural.compile_version(version),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        custom=True,
        status=subresources.get("status") is not None,
        scale=subresources.get("scale"),
        has_generation=True,
        unconditional_update=False,
        deprecation=_deprecation(spec, names, version),
        columns=version.get("additionalPrinterColumns"),
        selectable=selectable,
        storage=storage,
        definition=definition,
    )


def _deprecation(spec: Object, names: Object, version: Object) -> str:
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning"):
        return str(version["deprecationWarning"])
    told = f"{spec['group']}/{version['name']} {names['kind']} is deprecated"
    for other in spec["versions"]:
        newer = version_priority(other["name"]) < version_priority(version["name"])
        if newer and other.get("served") and not other.get("deprecated"):
            return f"{told}; use {spec['group']}/{other['name']} {names['kind']}"
    return told
