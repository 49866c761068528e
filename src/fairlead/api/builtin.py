"""The built-in kinds. `fairlead.ConfigMap` and so on come from here."""

from dataclasses import replace

from fairlead.api.kinds import Kind, kind


def _build_kind(api_version: str, name: str, *fields: str, namespaced: bool = True) -> Kind:
    return replace(kind(api_version, name, namespaced=namespaced), fields=frozenset(fields or ("spec", "status")))


_RBAC = "rbac.authorization.k8s.io/v1"

ConfigMap = _build_kind("v1", "ConfigMap", "data", "binaryData", "immutable")
Secret = _build_kind("v1", "Secret", "data", "stringData", "immutable", "type")
Service = _build_kind("v1", "Service")
ServiceAccount = _build_kind("v1", "ServiceAccount", "secrets", "imagePullSecrets", "automountServiceAccountToken")
Pod = _build_kind("v1", "Pod")
PersistentVolumeClaim = _build_kind("v1", "PersistentVolumeClaim")
Event = _build_kind(
    "v1", "Event", "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type",
    "eventTime", "series", "action", "related", "reportingComponent", "reportingInstance",
)  # fmt: skip
Endpoints = _build_kind("v1", "Endpoints", "subsets")
Namespace = _build_kind("v1", "Namespace", namespaced=False)
Node = _build_kind("v1", "Node", namespaced=False)
Deployment = _build_kind("apps/v1", "Deployment")
StatefulSet = _build_kind("apps/v1", "StatefulSet")
DaemonSet = _build_kind("apps/v1", "DaemonSet")
ReplicaSet = _build_kind("apps/v1", "ReplicaSet")
Job = _build_kind("batch/v1", "Job")
CronJob = _build_kind("batch/v1", "CronJob")
Ingress = _build_kind("networking.k8s.io/v1", "Ingress")
NetworkPolicy = _build_kind("networking.k8s.io/v1", "NetworkPolicy", "spec")
EndpointSlice = _build_kind("discovery.k8s.io/v1", "EndpointSlice", "addressType", "endpoints", "ports")
Lease = _build_kind("coordination.k8s.io/v1", "Lease", "spec")
PodDisruptionBudget = _build_kind("policy/v1", "PodDisruptionBudget")
HorizontalPodAutoscaler = _build_kind("autoscaling/v2", "HorizontalPodAutoscaler")
Role = _build_kind(_RBAC, "Role", "rules")
RoleBinding = _build_kind(_RBAC, "RoleBinding", "subjects", "roleRef")
ClusterRole = _build_kind(_RBAC, "ClusterRole", "rules", "aggregationRule", namespaced=False)
ClusterRoleBinding = _build_kind(_RBAC, "ClusterRoleBinding", "subjects", "roleRef", namespaced=False)
CustomResourceDefinition = _build_kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", namespaced=False)

BUILTIN: dict[str, Kind] = {name: value for name, value in globals().items() if isinstance(value, Kind)}
"""Every built-in kind by name."""
