"""NamespaceLifecycle: reject creates in a namespace that is missing or terminating, and deletes of some namespaces."""

from typing import Final

from fairlead.server.admission.plugin import CREATE, DELETE, AdmissionAttributes, AdmissionPlugin
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.errors.statuses import forbidden, not_found
from fairlead.server.registry.resource import Resource

_IMMORTAL: Final = frozenset(("default", "kube-system", "kube-public"))


class NamespaceLifecycle(AdmissionPlugin):
    operations = (CREATE, DELETE)

    def handles(self, operation: str, resource: Resource, subresource: str) -> bool:
        is_affected = resource.namespaced if operation == CREATE else _is_namespace(resource)
        return is_affected and super().handles(operation, resource, subresource)

    def admit(self, attributes: AdmissionAttributes) -> None:
        if attributes.operation == CREATE:
            self._check_namespace(attributes)
        elif attributes.name in _IMMORTAL:
            raise forbidden(attributes.resource, attributes.name, "this namespace may not be deleted")

    def _check_namespace(self, attributes: AdmissionAttributes) -> None:
        """Raise 404 if the namespace of a new object is missing, or 403 if the namespace is terminating."""
        namespace = attributes.namespace
        live = self.server.store.table("", "namespaces").get("", namespace)
        if live is None:
            raise not_found(self.server.namespace_resource, namespace)
        is_deleting = live.object["metadata"].get("deletionTimestamp")
        if not is_deleting and live.object.get("status", {}).get("phase") != "Terminating":
            return
        message = f"unable to create new content in namespace {namespace} because it is being terminated"
        error = FieldError("NamespaceTerminating", "metadata.namespace", f"namespace {namespace} is being terminated")
        raise attributes.forbid(message, (error,))


def _is_namespace(resource: Resource) -> bool:
    return (resource.group, resource.plural) == ("", "namespaces")
