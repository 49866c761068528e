"""MutatingAdmissionWebhook and ValidatingAdmissionWebhook: they call the webhooks of stored configurations.

Few servers have webhooks. The modules that call them are imported with the first call, to keep the start fast.
"""

from typing import TYPE_CHECKING, Final

from fairlead.server.admission.plugin import CONNECT, CREATE, DELETE, UPDATE, AdmissionAttributes, AdmissionPlugin
from fairlead.server.registry.resource import Resource

if TYPE_CHECKING:
    from fairlead.server.app import Server

# Webhooks never see their own configurations, or else nobody could repair a wrong one.
_EXEMPT_KINDS: Final = frozenset(
    {
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    }
)


class _WebhookPlugin(AdmissionPlugin):
    operations = (CREATE, UPDATE, DELETE, CONNECT)
    subresources = None
    plural: str  # of the configurations

    def __init__(self, server: "Server") -> None:
        super().__init__(server)
        self.configurations = server.store.table("admissionregistration.k8s.io", self.plural)

    def handles(self, operation: str, resource: Resource, subresource: str) -> bool:
        return resource.group != "admissionregistration.k8s.io" or resource.kind not in _EXEMPT_KINDS

    @property
    def is_dynamic(self) -> bool:
        return bool(self.configurations.objects.get(""))


class MutatingAdmissionWebhook(_WebhookPlugin):
    plural = "mutatingwebhookconfigurations"

    def admit(self, attributes: AdmissionAttributes) -> None:
        if self.configurations.objects.get(""):
            from fairlead.server.admission.webhooks import dispatch

            dispatch.mutate(self.server, self.configurations, attributes)


class ValidatingAdmissionWebhook(_WebhookPlugin):
    plural = "validatingwebhookconfigurations"

    def validate(self, attributes: AdmissionAttributes) -> None:
        if self.configurations.objects.get(""):
            from fairlead.server.admission.webhooks import dispatch

            dispatch.validate(self.server, self.configurations, attributes)
