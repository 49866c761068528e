"""What a write may change: the main path all but status, a subresource little else than its own part."""

from fairlead.server.registry.resource import Object, Resource

# What /status of a built-in kind may change of the metadata besides; a custom resource's changes nothing of it.
_ALWAYS_SYSTEM = ("managedFields", "resourceVersion")


def narrow(resource: Resource, subresource: str, obj: Object, old: Object) -> Object:
    """The wanted object with everything that this path may not change taken from the live one."""
    if subresource == "status":
        return _only_status(resource, obj, old)
    if resource.kind == "Namespace" and not resource.group and not subresource:
        obj = _with(obj, "spec", old)  # its finalizers have a path of their own
    if resource.status:
        return _with(obj, "status", old)
    return obj


def _with(obj: Object, key: str, old: Object) -> Object:
    if key in old:
        obj[key] = old[key]
    else:
        obj.pop(key, None)
    return obj


def _only_status(resource: Resource, obj: Object, old: Object) -> Object:
    given = obj["metadata"]
    if resource.custom:
        metadata = dict(old["metadata"])
        for key in _ALWAYS_SYSTEM:
            metadata.pop(key, None)
            if key in given:
                metadata[key] = given[key]
    else:
        metadata = dict(given)
        for key in resource.status_keeps:
            _with(metadata, key, old["metadata"])
    narrowed = {key: value for key, value in old.items() if key not in ("metadata", "status")}
    narrowed["metadata"] = metadata
    if "status" in obj:
        narrowed["status"] = obj["status"]
    return narrowed
