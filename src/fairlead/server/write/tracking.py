"""Who owns which field: managedFields as each write leaves them."""

from typing import TYPE_CHECKING

from fairlead.api.fields import FieldSet, path
from fairlead.server import ownership
from fairlead.server.errors.statuses import status_error, unclassified
from fairlead.server.registry.lookup import Registry
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import codec
from fairlead.server.schema.nodes import Node
from fairlead.server.storage import versions
from fairlead.server.storage.stored import Stored

if TYPE_CHECKING:
    from fairlead.server.write.pipeline import Write

_STATUS = FieldSet.of(path("status"))
_SPEC = FieldSet.of(path("spec"))
_ALL_BUT_STATUS = FieldSet.of(path("metadata"), path("spec"))


class KindSchemas:
    """The versions of one kind, as ownership asks for them."""

    def __init__(self, registry: Registry, resource: Resource) -> None:
        self._registry = registry
        self._resource = resource

    def node(self, api_version: str) -> Node | None:
        resource = self._resource
        if api_version == resource.api_version:
            return resource.schema
        if resource.custom:
            return versions.schema(resource, api_version)
        group, _, version = api_version.rpartition("/")
        found = self._registry.find(group, version, resource.plural) if group == resource.group else None
        return found.schema if found else None

    def convert(self, obj: Object, api_version: str) -> Object:
        """Custom resources change their version's name only: what the other version lacks is an error, as it should."""
        resource = self._resource
        if obj.get("apiVersion") == api_version:
            return obj
        found = self._registry.find(resource.group, api_version.rpartition("/")[2], resource.plural)
        if found is None or found.custom:
            return {**obj, "apiVersion": api_version}
        return versions.convert(found, obj)

    def empty(self, api_version: str) -> Object:
        nothing: Object = {} if self._resource.custom else codec.zero_value(self._resource.schema)
        return nothing | {"apiVersion": api_version, "kind": self._resource.kind}


def managed_of(stored: Stored) -> ownership.Managed:
    """The decoded managedFields of a stored object."""
    managed: ownership.Managed | None = stored.derived.get("managed")
    if managed is None:
        managed = stored.derived["managed"] = ownership.decode(stored.object["metadata"].get("managedFields"))
    return managed


def bare_of(stored: Stored) -> Object:
    """A stored object without its managedFields."""
    obj: Object | None = stored.derived.get("bare")
    if obj is None:
        obj = stored.derived["bare"] = without_managed(stored.object)
    return obj


def without_managed(obj: Object) -> Object:
    metadata = obj.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}


def with_managed(obj: Object, managed: ownership.Managed) -> Object:
    metadata = dict(obj.get("metadata") or {})
    metadata.pop("managedFields", None)
    if managed:
        metadata["managedFields"] = ownership.encode(managed)
    return {**obj, "metadata": metadata}


def reset_fields(resource: Resource, subresource: str) -> FieldSet | None:
    """What a write on this path never changes and so never owns."""
    if subresource == "status" and resource.custom:
        return _ALL_BUT_STATUS
    if subresource == "status":
        keeps = [path("metadata", key) for key in resource.status_keeps]
        return FieldSet.of(path("spec"), *keeps) if keeps else _SPEC
    if resource.resets:
        return FieldSet.of(path("status"), *map(path, resource.resets))
    return _STATUS if resource.status else None


def _everywhere(resource: Resource, subresource: str) -> bool:
    """Whether that holds for entries of the kind's other versions too; a custom resource's main path forgets them."""
    return bool(subresource) or not resource.custom


class Tracking:
    """Settles metadata.managedFields of what is written."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def created(self, write: "Write", obj: Object) -> Object:
        """A new object: its writer owns what those do not that it says to own it."""
        resource = write.resource
        said = ownership.sent(ownership.NOTHING, (obj.get("metadata") or {}).get("managedFields"))
        obj = without_managed(obj)
        managed = ownership.update(
            None,
            said,
            obj,
            manager=write.options.manager,
            api_version=resource.api_version,
            subresource=write.subresource,
            schemas=KindSchemas(self._registry, resource),
            reset=reset_fields(resource, write.subresource),
            reset_everywhere=_everywhere(resource, write.subresource),
            now=write.now,
        )
        write.managed = managed
        return with_managed(obj, managed)

    def updated(self, write: "Write", live: Stored, obj: Object) -> Object:
        """A changed object: its writer owns what changed."""
        resource = write.resource
        sent = (obj.get("metadata") or {}).get("managedFields")
        before = managed_of(live)
        asked = not write.subresource and sent != live.object["metadata"].get("managedFields")
        start = ownership.sent(before, sent) if asked else before  # a subresource cannot reset them
        obj = without_managed(obj)
        managed = ownership.update(
            bare_of(live),
            start,
            obj,
            manager=write.options.manager,
            api_version=resource.api_version,
            subresource=write.subresource,
            schemas=KindSchemas(self._registry, resource),
            reset=reset_fields(resource, write.subresource),
            reset_everywhere=_everywhere(resource, write.subresource),
            now=write.now,
        )
        write.managed = managed
        return with_managed(obj, managed)

    def by_server(
        self, resource: Resource, live: Stored, obj: Object, manager: str, subresource: str, now: str
    ) -> tuple[Object, ownership.Managed]:
        """An object as the server itself changed it, owned under its own name."""
        obj = without_managed(obj)
        managed = ownership.update(
            bare_of(live),
            managed_of(live),
            obj,
            manager=manager,
            api_version=resource.api_version,
            subresource=subresource,
            schemas=KindSchemas(self._registry, resource),
            reset=reset_fields(resource, subresource),
            now=now,
        )
        return with_managed(obj, managed), managed

    def applied(self, write: "Write", live: Stored | None, config: Object) -> tuple[Object, ownership.Managed]:
        """The merged object (without managedFields; the very live one when nothing changed) and its owners."""
        resource = write.resource
        try:
            made = ownership.apply(
                bare_of(live) if live else None,
                managed_of(live) if live else ownership.NOTHING,
                config,
                manager=write.options.manager,
                force=write.options.force,
                api_version=resource.api_version,
                subresource=write.subresource,
                schemas=KindSchemas(self._registry, resource),
                reset=reset_fields(resource, write.subresource),
                reset_everywhere=_everywhere(resource, write.subresource),
                now=write.now,
            )
        except ownership.FieldConflict as conflict:
            raise status_error(409, "Conflict", conflict.message, {"causes": conflict.causes}) from None
        except ownership.TypedError as error:
            raise unclassified(str(error)) from None
        return made.object, made.managed
