"""Field selectors: the fields that each kind supports, and how their values are read."""

from typing import Any

from fairlead.api.gojson import quote_go
from fairlead.server.registry.resource import Object, Resource

_NAME = ("metadata.name",)
_NAME_AND_NAMESPACE = ("metadata.name", "metadata.namespace")
_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

# The fields of each built-in kind; all other kinds support only metadata.name and metadata.namespace.
_FIELDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): (
        *_NAME_AND_NAMESPACE,
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
    ("", "ReplicationController"): (*_NAME_AND_NAMESPACE, "status.replicas"),
    ("", "Event"): (
        *_NAME_AND_NAMESPACE,
        *(f"involvedObject.{f}" for f in _INVOLVED),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    ("events.k8s.io", "Event"): (
        *_NAME_AND_NAMESPACE,
        *(f"regarding.{f}" for f in _INVOLVED),
        "reason",
        "reportingController",
        "type",
    ),
    ("", "Namespace"): (*_NAME, "status.phase"),
    ("", "Secret"): (*_NAME_AND_NAMESPACE, "type"),
    ("", "Service"): (*_NAME_AND_NAMESPACE, "spec.clusterIP", "spec.type"),
    ("batch", "Job"): (*_NAME_AND_NAMESPACE, "status.successful"),
    ("certificates.k8s.io", "CertificateSigningRequest"): (*_NAME, "spec.signerName"),
    ("resource.k8s.io", "ResourceSlice"): (*_NAME, "spec.driver", "spec.nodeName"),
}


def list_selectable_fields(resource: Resource) -> tuple[str, ...]:
    """Return the fields that a field selector of this kind may use."""
    if resource.custom:
        return (*(_NAME_AND_NAMESPACE if resource.namespaced else _NAME), *resource.selectable)
    return _FIELDS.get((resource.group, resource.kind), _NAME_AND_NAMESPACE)


def unsupported_field_message(resource: Resource, path: str) -> str:
    """Return the error message for a field that selectors of this kind may not use."""
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
    """Return the value of a field as text, as a field selector compares it."""
    if path == "source" and resource.kind == "Event":
        return (obj.get("source") or {}).get("component") or obj.get("reportingComponent") or ""
    value_at_path: Any = obj
    for part in path.split("."):
        value_at_path = value_at_path.get(part) if isinstance(value_at_path, dict) else None
    if isinstance(value_at_path, bool) or (
        value_at_path is None and path in ("spec.hostNetwork", "spec.unschedulable")
    ):
        return "true" if value_at_path else "false"
    if value_at_path is None and path in ("status.successful", "status.replicas"):
        return "0"
    return "" if value_at_path is None else str(value_at_path)
