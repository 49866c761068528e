"""Versions of one kind: objects are kept at the storage version and shown at the one that was asked for.

Custom resources are converted by naming the other version and dropping what its schema does not know, the two built-in
kinds that have another form by rules of their own. A custom resource is read by today's schema: new defaults show,
removed fields vanish, the resourceVersion stays.
"""

from typing import Any

from fairlead.server.errors.statuses import StatusError, status_error, unclassified
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import codec, defaulting, pruning, structural
from fairlead.server.schema.nodes import Node
from fairlead.server.storage.stored import Stored


def view(resource: Resource, stored: Stored) -> Stored:
    """A stored object as this version shows it; the very one where nothing differs."""
    if stored.seen is resource or not (resource.custom or resource.storage):
        return stored
    cached = stored.derived.get(("view", resource.version))
    if cached is not None and cached[0] is resource:
        found: Stored = cached[1]
        return found
    obj = read(resource, stored.object)
    shown = stored if obj == stored.object else Stored(obj, stored.version, resource)
    stored.derived["view", resource.version] = (resource, shown)
    return shown


def expect_readable(resource: Resource, stored: Stored) -> Stored:
    """The stored object, unless its definition has the version no more that it is stored at: that is a 500."""
    if resource.custom and stored.seen is not resource and schema(resource, stored.object["apiVersion"]) is None:
        raise unclassified(unreadable(stored.object["apiVersion"]))
    return stored


def unreadable(api_version: str) -> str:
    return f"request to convert CR from an invalid group/version: {api_version}"


def not_listed(resource: Resource, api_version: str) -> StatusError:
    """A whole kind cannot be listed or watched while one object of it cannot be read."""
    told = f"failed to list {resource.api_version}, Kind={resource.kind}: {unreadable(api_version)}"
    return status_error(429, "TooManyRequests", f"storage is (re)initializing: {told}", {"retryAfterSeconds": 1})


def read(resource: Resource, obj: Object) -> Object:
    """An object as it was stored, decoded and defaulted at the version it was stored at, then converted."""
    if not resource.custom:
        return convert(resource, obj)
    node = schema(resource, obj.get("apiVersion"))
    if node is None:
        obj, node = named(resource.storage or resource, obj), (resource.storage or resource).schema
    obj, _ = pruning.prune(node, obj)
    obj = defaulting.default(node, obj)
    return convert(resource, obj)


def schema(resource: Resource, api_version: Any) -> Node | None:
    """The schema of a version of a custom kind, served or not; None of one that its definition does not have."""
    for known in (resource, resource.storage):
        if known is not None and known.api_version == api_version:
            return known.schema
    for version in resource.definition["spec"]["versions"]:
        if f"{resource.group}/{version['name']}" == api_version:
            return structural.of_version(version)
    return None


def convert(resource: Resource, obj: Object) -> Object:
    """An object of another version at this one; itself where it is of this one already."""
    if obj.get("apiVersion") == resource.api_version:
        return obj
    if resource.convert is not None:
        return codec.decode(resource.schema, resource.convert(obj)).object
    converted, _ = pruning.prune(resource.schema, named(resource, obj))
    return converted


def stored_form(resource: Resource, obj: Object) -> Object:
    """An object as it is kept."""
    return convert(resource.storage, obj) if resource.storage is not None else obj


def is_current(resource: Resource, kept: Stored | None) -> bool:
    """Whether an object is kept at today's storage version: if not, any write stores it anew."""
    return (
        kept is None
        or not resource.custom
        or kept.object.get("apiVersion") == (resource.storage or resource).api_version
    )


def read_back(resource: Resource, obj: Object) -> Object:
    """An object as it would be read if it were kept."""
    return read(resource, convert(resource.storage, obj)) if resource.storage is not None else obj


def named(resource: Resource, obj: Object) -> Object:
    return obj if obj.get("apiVersion") == resource.api_version else {**obj, "apiVersion": resource.api_version}
