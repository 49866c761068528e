"""Field selectors: which fields of a kind can be selected by, and what stands in them."""

from typing import Any

from fairlead.server.errors.field_errors import quote_go
from fairlead.server.registry.resource import Object, Resource

_NAME = ("metadata.name",)
_BOTH = ("metadata.name", "metadata.namespace")
_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

# What each built-in kind can be selected by beyond the common two; kinds that are not here know only those.
_FIELDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): (
        *_BOTH,
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    ("", "Node"): (*_NAME, "spec.unschedulable"),
    ("", "ReplicationController"): (*_BOTH, "status.replicas"),
    ("", "Event"): (
        *_BOTH,
        *(f"involvedObject.{f}" for f in _INVOLVED),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    ("events.k8s.io", "Event"): (
        *_BOTH,
        *(f"regarding.{f}" for f in _INVOLVED),
        "reason",
        "reportingController",
        "type",
    ),
    ("", "Namespace"): (*_NAME, "status.phase"),
    ("", "Secret"): (*_BOTH, "type"),
    ("", "Service"): (*_BOTH, "spec.clusterIP", "spec.type"),
    ("batch", "Job"): (*_BOTH, "status.successful"),
    ("certificates.k8s.io", "CertificateSigningRequest"): (*_NAME, "spec.signerName"),
    ("resource.k8s.io", "ResourceSlice"): (*_NAME, "spec.driver", "spec.nodeName"),
}


def selectable(resource: Resource) -> tuple[str, ...]:
    """The fields that a selector of this kind may name."""
    if resource.custom:
        return (*(_BOTH if resource.namespaced else _NAME), *resource.selectable)
    return _FIELDS.get((resource.group, resource.kind), _BOTH)


def refusal(resource: Resource, path: str) -> str:
    """What is said of a field that cannot be selected by."""
    if resource.custom:
        return f"field label not supported: {path}"
    if (resource.group, resource.kind) == ("batch", "Job"):
        return f"field label {quote_go(path)} not supported for Job"
    if resource.kind == "ResourceSlice":
        return f"field label not supported for {resource.api_version}, Kind=ResourceSlice: {path}"
    if (resource.group, resource.kind) in _FIELDS:
        return f"field label not supported: {path}"
    return f'{quote_go(path)} is not a known field selector: only "metadata.name", "metadata.namespace"'


def value(resource: Resource, obj: Object, path: str) -> str:
    """What stands in a field, as a selector compares it."""
    if path == "source" and resource.kind == "Event":
        return (obj.get("source") or {}).get("component") or obj.get("reportingComponent") or ""
    found: Any = obj
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    if isinstance(found, bool) or (found is None and path in ("spec.hostNetwork", "spec.unschedulable")):
        return "true" if found else "false"
    if found is None and path in ("status.successful", "status.replicas"):
        return "0"
    return "" if found is None else str(found)
