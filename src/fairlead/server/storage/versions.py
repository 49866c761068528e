"""Conversion between the versions of a kind: objects are stored at one version and returned at that of the request.

A custom resource is converted by the webhook of its definition, or else by changing its apiVersion and pruning it with
the schema of the other version. Two built-in kinds have conversion functions. A custom resource is read with the
current schema: new defaults appear, removed fields disappear, and the resourceVersion stays the same.
"""

from typing import Any

from fairlead.server.errors.statuses import StatusError, status_error, unclassified
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import codec, defaulting, pruning, structural
from fairlead.server.schema.nodes import Node
from fairlead.server.storage.stored import Stored
from fairlead.server.webhooks.calls import current_memory


def view(resource: Resource, stored: Stored) -> Stored:
    """Return a stored object as it is read at the version of `resource`, or `stored` itself if nothing differs."""
    if stored.normalized_for is resource or not (resource.custom or resource.storage):
        return stored
    cached = stored.derived.get(("view", resource.version))
    if cached is not None and cached[0] is resource:
        cached_view: Stored = cached[1]
        return cached_view
    if _needs_webhook(resource, stored):
        return convert_all(resource, [stored])[0]
    obj = read(resource, stored.object)
    result = stored if obj == stored.object else Stored(obj, stored.version, resource)
    stored.derived["view", resource.version] = (resource, result)
    return result


def convert_all(resource: Resource, items: list[Stored]) -> list[Stored]:
    """Return stored objects as they are read at the version of `resource`, by one call of the conversion webhook.

    The result is kept with each object, like the watch cache of a real server keeps its objects at each version.
    Raises WebhookCallNeeded if the call has not been made yet.
    """
    views = current_memory().values
    pending = [item for item in items if _needs_webhook(resource, item) and (id(item), resource.version) not in views]
    pending = [item for item in pending if _get_cached(resource, item) is None]
    if pending and resource.converter is not None:
        sources = [_decode(resource, item.object) for item in pending]
        for item, obj in zip(pending, resource.converter.convert(sources, resource.api_version), strict=True):
            keep_view(resource, item, pruning.prune(resource.schema, obj)[0])
            # Many objects do not fit into the cache. This request needs all of them.
            views[id(item), resource.version] = item, _get_cached(resource, item)
    kept = (views.get((id(item), resource.version)) for item in items)
    return [found[1] if found else view(resource, item) for item, found in zip(items, kept, strict=True)]


def keep_view(resource: Resource, stored: Stored, obj: Object) -> None:
    """Keep an object as the view of a stored object at the version of `resource`."""
    metadata = {**obj["metadata"], "resourceVersion": stored.object["metadata"]["resourceVersion"]}
    result = Stored({**obj, "metadata": metadata}, stored.version, resource)
    stored.derived["view", resource.version] = (resource, result)


def forget_view(resource: Resource, stored: Stored) -> None:
    """Let the next view of a stored object call the conversion webhook again."""
    stored.derived.pop(("view", resource.version), None)


def _get_cached(resource: Resource, stored: Stored) -> Stored | None:
    cached = stored.derived.get(("view", resource.version))
    return cached[1] if cached is not None and cached[0] is resource else None


def _needs_webhook(resource: Resource, stored: Stored) -> bool:
    return resource.converter is not None and stored.object.get("apiVersion") != resource.api_version


def expect_readable(resource: Resource, stored: Stored) -> Stored:
    """Return `stored`. Raises 500 if its CRD no longer has the version at which the object is stored."""
    if not resource.custom or stored.normalized_for is resource:
        return stored
    api_version = stored.object["apiVersion"]
    if schema(resource, api_version) is None:
        raise unclassified(format_unreadable_version(api_version))
    return stored


def format_unreadable_version(api_version: str) -> str:
    """Return the error message for an object stored at `api_version`, a version that its CRD no longer has."""
    return f"request to convert CR from an invalid group/version: {api_version}"


def build_unreadable_list_error(resource: Resource, api_version: str) -> StatusError:
    """Return the error for a list or watch of a kind that has an unreadable object."""
    message = f"failed to list {resource.api_version}, Kind={resource.kind}: {format_unreadable_version(api_version)}"
    return status_error(429, "TooManyRequests", f"storage is (re)initializing: {message}", {"retryAfterSeconds": 1})


def read(resource: Resource, obj: Object) -> Object:
    """Return a stored object as clients read it at the version of `resource`.

    The object is decoded and defaulted at the version at which it is stored, and then converted.
    """
    return convert(resource, _decode(resource, obj))


def _decode(resource: Resource, obj: Object) -> Object:
    """Return a stored object as it is decoded at the version at which it is stored: pruned and with defaults."""
    if not resource.custom:
        return obj
    node = schema(resource, obj.get("apiVersion"))
    if node is None:
        storage = resource.storage or resource
        obj, node = set_api_version(storage, obj), storage.schema
    obj, _ = pruning.prune(node, obj)
    defaulted: Object = defaulting.apply_defaults(node, obj)
    return defaulted


def schema(resource: Resource, api_version: Any) -> Node | None:
    """Return the schema of a version of a custom resource, served or not, or None if its CRD lacks the version."""
    for candidate in (resource, resource.storage):
        if candidate is not None and candidate.api_version == api_version:
            return candidate.schema
    for version in resource.definition["spec"]["versions"]:
        if f"{resource.group}/{version['name']}" == api_version:
            return structural.compile_version(version)
    return None


def convert(resource: Resource, obj: Object) -> Object:
    """Return the object converted to the version of `resource`, or `obj` itself if it has that version."""
    if obj.get("apiVersion") == resource.api_version:
        return obj
    if resource.convert is not None:
        return codec.decode(resource.schema, resource.convert(obj)).object
    if resource.converter is not None:
        obj = resource.converter.convert([obj], resource.api_version)[0]
    converted, _ = pruning.prune(resource.schema, set_api_version(resource, obj))
    return converted


def convert_unpruned(resource: Resource, obj: Object) -> Object:
    """Return the object converted to the version of `resource`. Undeclared fields of a custom resource stay."""
    if obj.get("apiVersion") == resource.api_version:
        return obj
    if resource.converter is not None:
        return resource.converter.convert([obj], resource.api_version)[0]
    return set_api_version(resource, obj) if resource.custom else convert(resource, obj)


def stored_form(resource: Resource, obj: Object) -> Object:
    """Return the object converted to the storage version of its kind."""
    return convert(resource.storage, obj) if resource.storage is not None else obj


def is_current(resource: Resource, stored: Stored | None) -> bool:
    """Return whether an object is stored at the current storage version. If not, every write stores it again."""
    return (
        stored is None
        or not resource.custom
        or stored.object.get("apiVersion") == (resource.storage or resource).api_version
    )


def read_back(resource: Resource, obj: Object) -> Object:
    """Return the object as it would be read after being stored at the storage version."""
    return read(resource, convert(resource.storage, obj)) if resource.storage is not None else obj


def set_api_version(resource: Resource, obj: Object) -> Object:
    return obj if obj.get("apiVersion") == resource.api_version else {**obj, "apiVersion": resource.api_version}
