"""CustomResourceDefinitions: accept their names, add their kinds to the registry, delete their instances."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairlead.api.times import rfc3339
from fairlead.server.discovery import version_priority
from fairlead.server.errors.statuses import forbidden
from fairlead.server.registry.resource import Converter, Object, Resource
from fairlead.server.schema import structural
from fairlead.server.storage.store import ObjectTable
from fairlead.server.storage.stored import Stored
from fairlead.server.write.managed_fields import get_managed_fields

if TYPE_CHECKING:
    from fairlead.server.app import Server

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
GROUP, PLURAL = "apiextensions.k8s.io", "customresourcedefinitions"
MARKED = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
CONTROLLER = "kube-apiserver"  # the field manager of the status of a CRD


class CustomResourceDefinitions:
    """Adds the kinds of all stored CRDs to the registry, and maintains the status of the CRDs."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self.has_conversion_webhooks = False  # whether a CRD had one since the server started
        # (group, plural) -> a version that the CRD no longer has, but that an object is still stored at
        self._removed_versions: dict[tuple[str, str], str] = {}

    @property
    def _table(self) -> ObjectTable:
        return self._server.store.table(GROUP, PLURAL)

    @property
    def _now(self) -> str:
        return rfc3339(self._server.world.clock.now())

    def after_write(self, stored: Stored, is_deleted: bool) -> None:
        """Process the write of a CRD: accept its names and serve its kinds, or delete its instances."""
        spec = stored.object["spec"]
        group, plural = spec["group"], spec["names"]["plural"]
        if is_deleted:
            self._removed_versions.pop((group, plural), None)
            self._server.registry.remove(group, plural)
            self._server.store.table(group, plural).wake()  # The watches of its instances end.
        elif stored.object["metadata"].get("deletionTimestamp"):
            if (group, plural) in self._removed_versions:
                self._register_kinds(stored.object, group, plural)  # The removed version may exist again.
            self._delete_instances(stored, group, plural)
        else:
            stored = self._update_status(stored)
            self._register_kinds(stored.object, group, plural)
            return
        for other in self._list_other_crds(group, plural):  # Another CRD may wait for a name that is now free.
            self.after_write(other, False)

    def find_removed_version(self, resource: Resource) -> str:
        """Return an apiVersion at which instances are stored although their CRD no longer has it, or ""."""
        return self._removed_versions.get((resource.group, resource.plural), "")

    def serve_stored(self) -> None:
        """Register exactly the kinds of the stored CRDs.

        Used after loading the store, where every status is up to date.
        """
        for resource in list(self._server.registry.custom()):
            self._server.registry.remove(resource.group, resource.plural)
        for _, stored in self._table.scan(None):
            spec = stored.object["spec"]
            self._register_kinds(stored.object, spec["group"], spec["names"]["plural"])

    def admit_create(self, resource: Resource, name: str) -> None:
        """Raise 403 for the create of an instance whose CRD is being deleted."""
        stored = self._table.get("", f"{resource.plural}.{resource.group}")
        if stored is not None and stored.object["metadata"].get("deletionTimestamp"):
            message = "create not allowed while custom resource definition is terminating"
            raise forbidden(resource, name, message)

    def mark_for_deletion(self, obj: Object) -> Object:
        """Return a CRD as its first DELETE leaves it.

        The CRD gets a deletionTimestamp, the cleanup finalizer and a Terminating condition.
        """
        metadata = {**obj["metadata"], "deletionTimestamp": self._now}
        finalizers = metadata.get("finalizers") or []
        if FINALIZER not in finalizers:
            metadata["finalizers"] = [*finalizers, FINALIZER]
        status = obj.get("status") or {}
        condition = self._build_condition("Terminating", "True", "InstanceDeletionPending", MARKED)
        conditions = _set_condition(status.get("conditions") or [], condition)
        return {**obj, "metadata": metadata, "status": {**status, "conditions": conditions}}

    def after_instance_delete(self, group: str, plural: str) -> None:
        """Remove a CRD that is being deleted once it has neither instances nor other finalizers."""
        if next(self._server.store.table(group, plural).scan(None), None) is not None:
            return
        stored = self._table.get("", f"{plural}.{group}")
        if stored is None or not stored.object["metadata"].get("deletionTimestamp"):
            return
        self._server.registry.remove(group, plural)
        remaining = [f for f in stored.object["metadata"].get("finalizers") or [] if f != FINALIZER]
        if remaining:
            metadata = {**stored.object["metadata"], "finalizers": remaining}
            if remaining != stored.object["metadata"].get("finalizers"):
                self._server.store.put(self._table, {**stored.object, "metadata": metadata})
        else:
            self._server.store.delete(self._table, stored)
        for other in self._list_other_crds(group, plural):
            self.after_write(other, False)

    def _delete_instances(self, stored: Stored, group: str, plural: str) -> None:
        """Delete all instances of a CRD, and the CRD if no instance remains. An unreadable instance keeps the CRD."""
        from fairlead.server.verbs.delete import DeleteOptions, delete_object

        if (group, plural) in self._removed_versions:
            return
        resource = self._server.registry.storage(group, plural)
        if resource is not None:
            for _, instance in list(self._server.store.table(group, plural).scan(None)):
                if not instance.object["metadata"].get("deletionTimestamp"):
                    delete_object(self._server, resource, instance, DeleteOptions())
        self.after_instance_delete(group, plural)

    def _register_kinds(self, obj: Object, group: str, plural: str) -> None:
        is_established = any(
            c["type"] == "Established" and c["status"] == "True" for c in obj["status"].get("conditions") or ()
        )
        if not is_established:
            return
        versions = obj["spec"]["versions"]
        converter = self._create_converter(obj)
        storage = build_resource(obj, next(v for v in versions if v.get("storage")), converter=converter)
        served_versions = [
            storage if version.get("storage") else build_resource(obj, version, storage, converter)
            for version in versions
            if version.get("served")
        ]
        self._find_unreadable_instances(obj, group, plural)
        self._server.registry.install(group, plural, served_versions, storage)

    def _create_converter(self, obj: Object) -> Converter | None:
        if (obj["spec"].get("conversion") or {}).get("strategy") != "Webhook":
            return None
        from fairlead.server.webhooks.conversion import ConversionWebhook

        self.has_conversion_webhooks = True
        return ConversionWebhook(obj, self._server.store, self._server.world)

    def _find_unreadable_instances(self, obj: Object, group: str, plural: str) -> None:
        """Record the version of a stored instance that the CRD no longer has, because that instance cannot be read."""
        declared_versions = {f"{group}/{version['name']}" for version in obj["spec"]["versions"]}
        before = self._server.registry.storage(group, plural)
        if before is None:
            has_all_versions = obj["metadata"].get("generation") == 1
        else:
            versions = before.definition["spec"]["versions"]
            has_all_versions = all(f"{group}/{version['name']}" in declared_versions for version in versions)
        if has_all_versions and (group, plural) not in self._removed_versions:
            return
        self._removed_versions.pop((group, plural), None)
        for _, instance in self._server.store.table(group, plural).scan(None):
            if instance.object["apiVersion"] not in declared_versions:
                self._removed_versions[group, plural] = instance.object["apiVersion"]
                return

    def _list_other_crds(self, group: str, plural: str) -> Iterator[Stored]:
        for _, stored in list(self._table.scan(None)):
            spec = stored.object["spec"]
            deleting = stored.object["metadata"].get("deletionTimestamp")
            if spec["group"] == group and spec["names"]["plural"] != plural and not deleting:
                yield stored

    def _update_status(self, stored: Stored) -> Stored:
        """Accept the names of a CRD that no other CRD uses, and return the stored CRD.

        The CRD becomes Established if all its names are accepted.
        """
        obj = stored.object
        status = obj.get("status") or {}
        conditions = status.get("conditions") or []
        accepted, name_conflict = self._accept_names(obj)
        if name_conflict:
            conditions = _set_condition(conditions, self._build_condition("NamesAccepted", "False", *name_conflict))
        else:
            condition = self._build_condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")
            conditions = _set_condition(conditions, condition)
        is_established = any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
        if not is_established:
            condition = (
                self._build_condition("Established", "False", "NotAccepted", "not all names are accepted")
                if name_conflict
                else self._build_condition(
                    "Established", "True", "InitialNamesAccepted", "the initial names have been accepted"
                )
            )
            conditions = _set_condition(conditions, condition)
        new_status = {**status, "acceptedNames": accepted, "conditions": conditions}
        if new_status == status:
            return stored
        return self._store_crd(stored, {**obj, "status": new_status})

    def _store_crd(self, live: Stored, obj: Object) -> Stored:
        resource = self._server.registry.find(GROUP, "v1", PLURAL)
        assert resource is not None
        obj, managed_fields = self._server.field_tracker.track_server_update(
            resource, live, obj, CONTROLLER, "status", self._now
        )
        stored = self._server.store.put(self._table, obj)
        stored.derived["managed"] = managed_fields
        assert get_managed_fields(stored) is managed_fields
        return stored

    def _accept_names(self, obj: Object) -> tuple[Object, tuple[str, str] | None]:
        """Return the names that no other CRD of the group uses, and (reason, message) of the last conflict or None."""
        spec = obj["spec"]
        requested = spec["names"]
        accepted = dict((obj.get("status") or {}).get("acceptedNames") or {"kind": "", "plural": ""})
        names: set[str] = set()
        kinds: set[str] = set()
        for other in self._list_other_crds(spec["group"], requested["plural"]):
            other_names = (other.object.get("status") or {}).get("acceptedNames") or {}
            names.update(
                n
                for n in (
                    other_names.get("plural"),
                    other_names.get("singular"),
                    *(other_names.get("shortNames") or ()),
                )
                if n
            )
            kinds.update(n for n in (other_names.get("kind"), other_names.get("listKind")) if n)
        name_conflict: tuple[str, str] | None = None
        for key, taken_names in (("plural", names), ("singular", names), ("kind", kinds), ("listKind", kinds)):
            value = requested.get(key) or ""
            if value and value in taken_names:
                name_conflict = (f"{key[0].upper()}{key[1:]}Conflict", f'"{value}" is already in use')
            elif value:
                accepted[key] = value
            if key == "singular":
                short_names = requested.get("shortNames") or []
                used = [n for n in short_names if n in names]
                if used:
                    messages = [f'"{n}" is already in use' for n in used]
                    message = messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
                    name_conflict = ("ShortNamesConflict", message)
                else:
                    accepted.pop("shortNames", None)
                    accepted |= {"shortNames": short_names} if short_names else {}
        accepted.pop("categories", None)
        if requested.get("categories"):
            accepted["categories"] = requested["categories"]
        return accepted, name_conflict

    def _build_condition(self, kind: str, status: str, reason: str, message: str) -> Object:
        return {
            "type": kind,
            "status": status,
            "lastTransitionTime": self._now,
            "reason": reason,
            "message": message,
        }


def _set_condition(conditions: list[Object], condition: Object) -> list[Object]:
    """Return the conditions with `condition` added or replaced.

    lastTransitionTime changes only if the status changes.
    """
    result = list(conditions)
    for index, old in enumerate(result):
        if old["type"] == condition["type"]:
            is_same = old["status"] == condition["status"]
            time = (old if is_same else condition)["lastTransitionTime"]
            result[index] = {**condition, "lastTransitionTime": time}
            return result
    return [*result, condition]


def build_resource(
    definition: Object, version: dict[str, Any], storage: Resource | None = None, converter: Converter | None = None
) -> Resource:
    """Return the Resource of one version of a CRD. `storage` is the Resource of its storage version."""
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
        has_status=subresources.get("status") is not None,
        scale=subresources.get("scale"),
        has_generation=True,
        allows_unconditional_update=False,
        deprecation=_build_deprecation_warning(spec, names, version),
        columns=version.get("additionalPrinterColumns"),
        selectable=selectable,
        storage=storage,
        converter=converter,
        definition=definition,
    )


def _build_deprecation_warning(spec: Object, names: Object, version: Object) -> str:
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning"):
        return str(version["deprecationWarning"])
    message = f"{spec['group']}/{version['name']} {names['kind']} is deprecated"
    for other in spec["versions"]:
        newer_versions = version_priority(other["name"]) < version_priority(version["name"])
        if newer_versions and other.get("served") and not other.get("deprecated"):
            return f"{message}; use {spec['group']}/{other['name']} {names['kind']}"
    return message
