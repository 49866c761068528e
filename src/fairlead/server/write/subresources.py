"""The parts of an object that a subresource may change: /status only the status, the main path all but the status."""

from fairlead.server.registry import certificate_requests
from fairlead.server.registry.resource import Object, Resource

# The metadata that /status of a custom resource takes from the request. All other metadata stays.
_ALWAYS_SUBMITTED = ("managedFields", "resourceVersion")
_CERTIFICATE_REQUEST = ("certificates.k8s.io", "CertificateSigningRequest")


def keep_other_parts(resource: Resource, subresource: str, obj: Object, old: Object) -> Object:
    """Return `obj` with every part that this subresource may not change copied from the live object `old`."""
    if subresource == "approval":
        return certificate_requests.keep_certificate(_keep_all_but_status(resource, obj, old), old)
    if subresource == "status" and (resource.group, resource.kind) == _CERTIFICATE_REQUEST:
        return certificate_requests.keep_decisions(_keep_all_but_status(resource, obj, old), old)
    if subresource == "status":
        return _keep_all_but_status(resource, obj, old)
    if resource.kind == "Namespace" and not resource.group and not subresource:
        obj = _copy_field(obj, "spec", old)  # Its finalizers are changed only through /finalize.
    if resource.has_status:
        return _copy_field(obj, "status", old)
    return obj


def _copy_field(obj: Object, key: str, old: Object) -> Object:
    if key in old:
        obj[key] = old[key]
    else:
        obj.pop(key, None)
    return obj


def _keep_all_but_status(resource: Resource, obj: Object, old: Object) -> Object:
    submitted = obj["metadata"]
    if resource.custom:
        metadata = dict(old["metadata"])
        for key in _ALWAYS_SUBMITTED:
            metadata.pop(key, None)
            if key in submitted:
                metadata[key] = submitted[key]
    else:
        metadata = dict(submitted)
        for key in resource.status_immutable_metadata:
            _copy_field(metadata, key, old["metadata"])
    result = {key: value for key, value in old.items() if key not in ("metadata", "status")}
    result["metadata"] = metadata
    if "status" in obj:
        result["status"] = obj["status"]
    return result
