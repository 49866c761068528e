"""Compute metadata.managedFields for each write."""

from typing import TYPE_CHECKING

from fairlead.api.fields import FieldSet, path
from fairlead.server import ownership
from fairlead.server.errors.statuses import StatusError, status_error, unclassified
from fairlead.server.ownership import FieldWrite
from fairlead.server.registry.lookup import Registry
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import codec
from fairlead.server.schema.nodes import Node
from fairlead.server.storage import versions
from fairlead.server.storage.stored import Stored

if TYPE_CHECKING:
    from fairlead.server.write.write_request import Write

_STATUS = FieldSet.of(path("status"))
_SPEC = FieldSet.of(path("spec"))
_ALL_BUT_STATUS = FieldSet.of(path("metadata"), path("spec"))


class RegisteredVersions:
    """The versions of one kind in the registry. Implements ownership.KindVersions."""

    def __init__(self, registry: Registry, resource: Resource) -> None:
        self._registry = registry
        self._resource = resource

    def find_schema(self, api_version: str) -> Node | None:
        resource = self._resource
        if api_version == resource.api_version:
            return resource.schema
        if resource.custom:
            return versions.schema(resource, api_version)
        group, _, version = api_version.rpartition("/")
        if group != resource.group:
            return None
        other = self._registry.find(group, version, resource.plural)
        return other.schema if other else None

    def convert(self, obj: Object, api_version: str) -> Object:
        """Return the object converted to a version.

        A custom resource is not pruned, so undeclared fields cause errors.
        """
        resource = self._resource
        if obj.get("apiVersion") == api_version:
            return obj
        target = self._registry.find(resource.group, api_version.rpartition("/")[2], resource.plural)
        if resource.converter is not None and api_version != obj.get("apiVersion"):
            return resource.converter.convert([obj], api_version)[0]
        if target is None or target.custom:
            return {**obj, "apiVersion": api_version}
        return versions.convert(target, obj)

    def build_empty(self, api_version: str) -> Object:
        empty: Object = {} if self._resource.custom else codec.zero_value(self._resource.schema)
        return empty | {"apiVersion": api_version, "kind": self._resource.kind}


def get_managed_fields(stored: Stored) -> ownership.ManagedFields:
    """Return the decoded managed fields of a stored object. The result is cached with the object."""
    managed_fields: ownership.ManagedFields | None = stored.derived.get("managed")
    if managed_fields is None:
        managed_fields = stored.derived["managed"] = ownership.decode(stored.object["metadata"].get("managedFields"))
    return managed_fields


def get_unmanaged(stored: Stored) -> Object:
    """Return a stored object without its managedFields. Every call returns the same dict."""
    obj: Object | None = stored.derived.get("unmanaged")
    if obj is None:
        obj = stored.derived["unmanaged"] = remove_managed_fields(stored.object)
    return obj


def remove_managed_fields(obj: Object) -> Object:
    """Return the object without metadata.managedFields."""
    metadata = obj.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}


def set_managed_fields(obj: Object, managed_fields: ownership.ManagedFields) -> Object:
    """Return the object with metadata.managedFields set to these entries."""
    metadata = dict(obj.get("metadata") or {})
    metadata.pop("managedFields", None)
    if managed_fields:
        metadata["managedFields"] = ownership.encode(managed_fields)
    return {**obj, "metadata": metadata}


def find_reset_fields(resource: Resource, subresource: str) -> FieldSet | None:
    """Return the fields that a write to this (sub)resource never changes and never owns, or None for none."""
    if subresource == "status" and resource.custom:
        return _ALL_BUT_STATUS
    if subresource == "status":
        immutable = [path("metadata", key) for key in resource.status_immutable_metadata]
        return FieldSet.of(path("spec"), *immutable) if immutable else _SPEC
    if subresource == "approval":
        return FieldSet.of(path("spec"), path("status", "certificate"))
    if resource.reset_fields:
        return FieldSet.of(path("status"), *map(path, resource.reset_fields))
    return _STATUS if resource.has_status else None


class FieldTracker:
    """Computes metadata.managedFields of written objects."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def track_create(self, write: "Write", obj: Object) -> Object:
        """Return a new object with its managedFields.

        The writer owns every field that the submitted managedFields do not assign to another manager.
        """
        submitted = (obj.get("metadata") or {}).get("managedFields")
        managed_fields = ownership.read_submitted(ownership.NO_MANAGED_FIELDS, submitted)
        obj = remove_managed_fields(obj)
        write.managed = ownership.update(None, managed_fields, obj, self._build_field_write(write))
        return set_managed_fields(obj, write.managed)

    def track_update(self, write: "Write", live: Stored, obj: Object) -> Object:
        """Return a changed object with its managedFields. The writer owns the changed fields."""
        submitted = (obj.get("metadata") or {}).get("managedFields")
        managed_fields = get_managed_fields(live)
        # A write to a subresource cannot change or reset them.
        if not write.subresource and submitted != live.object["metadata"].get("managedFields"):
            managed_fields = ownership.read_submitted(managed_fields, submitted)
        obj = remove_managed_fields(obj)
        try:
            write.managed = ownership.update(get_unmanaged(live), managed_fields, obj, self._build_field_write(write))
        except StatusError:  # A conversion webhook failed. A real server then forgets all owners and goes on.
            write.managed = ownership.NO_MANAGED_FIELDS
        return set_managed_fields(obj, write.managed)

    def track_server_update(
        self, resource: Resource, live: Stored, obj: Object, manager: str, subresource: str, now: str
    ) -> tuple[Object, ownership.ManagedFields]:
        """Return an object that the server itself changed, without managedFields, and its managed fields."""
        obj = remove_managed_fields(obj)
        field_write = FieldWrite(
            manager,
            resource.api_version,
            RegisteredVersions(self._registry, resource),
            now,
            subresource,
            find_reset_fields(resource, subresource),
        )
        managed_fields = ownership.update(get_unmanaged(live), get_managed_fields(live), obj, field_write)
        return set_managed_fields(obj, managed_fields), managed_fields

    def apply(self, write: "Write", live: Stored | None, config: Object) -> tuple[Object, ownership.ManagedFields]:
        """Return the object after an apply, without managedFields, and its managed fields.

        If nothing changes, the object is the dict of `get_unmanaged`.
        """
        try:
            result = ownership.apply(
                get_unmanaged(live) if live else None,
                get_managed_fields(live) if live else ownership.NO_MANAGED_FIELDS,
                config,
                self._build_field_write(write),
                force=write.options.force,
            )
        except ownership.FieldConflict as conflict:
            raise status_error(409, "Conflict", conflict.message, {"causes": conflict.causes}) from None
        except ownership.TypedError as error:
            raise unclassified(str(error)) from None
        return result.object, result.managed

    def _build_field_write(self, write: "Write") -> FieldWrite:
        resource, subresource = write.resource, write.subresource
        return FieldWrite(
            write.options.manager,
            resource.api_version,
            RegisteredVersions(self._registry, resource),
            write.now,
            subresource,
            find_reset_fields(resource, subresource),
            # On the main path of a custom resource, the reset fields of other versions are forgotten.
            resets_all_versions=bool(subresource) or not resource.custom,
        )
