"""Namespace lifecycle: reject a create in a namespace that is missing or terminating."""

from typing import TYPE_CHECKING, Any

from fairlead.server.errors.field_errors import FieldError
from fairlead.server.errors.statuses import forbidden, not_found
from fairlead.server.registry.resource import Resource

if TYPE_CHECKING:
    from fairlead.server.app import Server

IMMORTAL = frozenset(("default", "kube-system", "kube-public"))


def admit_create(server: "Server", resource: Resource, namespace: str, obj: dict[str, Any]) -> None:
    """Raise 404 if the namespace of a new object is missing, or 403 if the namespace is terminating."""
    if not resource.namespaced:
        return
    live = server.store.table("", "namespaces").get("", namespace)
    if live is None:
        raise not_found(server.namespace_resource, namespace)
    is_deleting = live.object["metadata"].get("deletionTimestamp")
    if not is_deleting and live.object.get("status", {}).get("phase") != "Terminating":
        return
    metadata = obj.get("metadata") or {}
    name = metadata.get("name") or metadata.get("generateName") or ""
    message = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = FieldError("NamespaceTerminating", "metadata.namespace", f"namespace {namespace} is being terminated")
    raise forbidden(resource, name, message, [error])
