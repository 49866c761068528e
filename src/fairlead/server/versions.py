"""Versions of one kind: objects are kept at the storage version and shown at the one that was asked for.

Custom resources are converted by naming the other version and dropping what its schema does not know, the two built-in
kinds that have another form by rules of their own. A custom resource is read by today's schema: new defaults show,
removed fields vanish, the resourceVersion stays.
"""

from typing import Any

from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import codec, defaulting, pruning, structural
from fairlead.server.schema.nodes import Node
from fairlead.server.stored import Stored


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
