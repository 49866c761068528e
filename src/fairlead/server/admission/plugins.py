"""The table of admission plugins: the names, defaults and order of a real server."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from fairlead.server.admission.classes import (
    DefaultIngressClass,
    DefaultStorageClass,
    DefaultTolerationSeconds,
    Priority,
    RuntimeClass,
)
from fairlead.server.admission.limit_ranges import LimitRanger
from fairlead.server.admission.namespaces import NamespaceLifecycle
from fairlead.server.admission.plugin import AdmissionPlugin
from fairlead.server.admission.volume_expansion import PersistentVolumeClaimResize
from fairlead.server.admission.webhooks.plugins import MutatingAdmissionWebhook, ValidatingAdmissionWebhook

if TYPE_CHECKING:
    from fairlead.server.app import Server

CreatePlugin = Callable[["Server"], AdmissionPlugin]

# Every plugin of a real server in the order in which it runs them. None: the plugin does not exist here.
_PLUGINS: Final[dict[str, CreatePlugin | None]] = {
    "AlwaysAdmit": None,
    "NamespaceAutoProvision": None,
    "NamespaceLifecycle": NamespaceLifecycle,
    "NamespaceExists": None,
    "LimitPodHardAntiAffinityTopology": None,
    "LimitRanger": LimitRanger,
    "ServiceAccount": None,
    "NodeRestriction": None,
    "TaintNodesByCondition": None,
    "AlwaysPullImages": None,
    "ImagePolicyWebhook": None,
    "PodSecurity": None,
    "PodNodeSelector": None,
    "Priority": Priority,
    "DefaultTolerationSeconds": DefaultTolerationSeconds,
    "PodTolerationRestriction": None,
    "EventRateLimit": None,
    "ExtendedResourceToleration": None,
    "DefaultStorageClass": DefaultStorageClass,
    "StorageObjectInUseProtection": None,
    "PodGroupProtection": None,
    "OwnerReferencesPermissionEnforcement": None,
    "PersistentVolumeClaimResize": PersistentVolumeClaimResize,
    "RuntimeClass": RuntimeClass,
    "CertificateApproval": None,
    "CertificateSigning": None,
    "ClusterTrustBundleAttest": None,
    "CertificateSubjectRestriction": None,
    "DefaultIngressClass": DefaultIngressClass,
    "DenyServiceExternalIPs": None,
    "PodTopologyLabels": None,
    "PodGroupWorkloadExists": None,
    "NodeDeclaredFeatureValidator": None,
    "JobValidation": None,
    "PodResizeValidator": None,
    "MutatingAdmissionPolicy": None,
    "MutatingAdmissionWebhook": MutatingAdmissionWebhook,
    "ValidatingAdmissionPolicy": None,
    "ValidatingAdmissionWebhook": ValidatingAdmissionWebhook,
    "ResourceQuota": None,
    "AlwaysDeny": None,
}
_OFF_BY_DEFAULT: Final = frozenset(
    {
        "AlwaysAdmit",
        "AlwaysDeny",
        "AlwaysPullImages",
        "DenyServiceExternalIPs",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "ImagePolicyWebhook",
        "LimitPodHardAntiAffinityTopology",
        "NamespaceAutoProvision",
        "NamespaceExists",
        "NodeRestriction",
        "OwnerReferencesPermissionEnforcement",
        "PodNodeSelector",
        "PodTolerationRestriction",
    }
)


def find_enabled(enable: Iterable[str], disable: Iterable[str]) -> Iterator[tuple[str, CreatePlugin]]:
    """Yield name and class of each plugin that is on by default or enabled, and not disabled, in order.

    Raises ValueError for a name that no plugin of a real server has.
    """
    enabled, disabled = set(enable), set(disable)
    if unknown := sorted((enabled | disabled) - _PLUGINS.keys()):
        raise ValueError(f"no such admission plugin: {', '.join(unknown)}; use {', '.join(sorted(_PLUGINS))}")
    for name, create in _PLUGINS.items():
        is_enabled = name in enabled or name not in _OFF_BY_DEFAULT
        if create is not None and is_enabled and name not in disabled:
            yield name, create


def find_missing(enable: Iterable[str]) -> list[str]:
    """Return which plugins of a real server do not exist in this one, of the plugins to enable."""
    return [name for name in enable if name in _PLUGINS and _PLUGINS[name] is None]
