"""Namespace lifecycle: nothing is created in a namespace that is missing or on its way out."""

from typing import TYPE_CHECKING, Any

from fairlead.server.errors.field_errors import FieldError
from fairlead.server.errors.statuses import forbidden, not_found
from fairlead.server.registry.resource import Resource

if TYPE_CHECKING:
    from fairlead.server.app import Server

IMMORTAL = frozenset(("default", "kube-system", "kube-public"))


def admit_create(server: "Server", resource: Resource, namespace: str, obj: dict[str, Any]) -> None:
    """Refuse a create in a namespace that is missing (404) or terminating (403)."""
    if not resource.namespaced:
        return
    live = server.store.table("", "namespaces").get("", namespace)
    if live is None:
        raise not_found(server.namespace_resource, namespace)
    stamp = live.object["metadata"].get("deletionTimestamp")
    if not stamp and live.object.get("status", {}).get("phase") != "Terminating":
        return
    given = obj.get("metadata") or {}
    name = given.get("name") or given.get("generateName") or ""
    message = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = FieldError("NamespaceTerminating", "metadata.namespace", f"namespace {namespace} is being terminated")
    raise forbidden(resource, name, message, [cause])
