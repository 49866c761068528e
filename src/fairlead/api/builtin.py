"""The built-in kinds. `fairlead.ConfigMap` and so on come from here."""

from dataclasses import replace

from fairlead.api.kinds import Kind, kind


def _builtin(api_version: str, name: str, *fields: str, namespaced: bool = True) -> Kind:
    return replace(kind(api_version, name, namespaced=namespaced), fields=frozenset(fields or ("spec", "status")))


_RBAC = "rbac.authorization.k8s.io/v1"

ConfigMap = _builtin("v1", "ConfigMap", "data", "binaryData", "immutable")
Secret = _builtin("v1", "Secret", "data", "stringData", "immutable", "type")
Service = _builtin("v1", "Service")
ServiceAccount = _builtin("v1", "ServiceAccount", "secrets", "imagePullSecrets", "automountServiceAccountToken")
Pod = _builtin("v1", "Pod")
PersistentVolumeClaim = _builtin("v1", "PersistentVolumeClaim")
Event = _builtin(
    "v1", "Event", "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type",
    "eventTime", "series", "action", "related", "reportingComponent", "reportingInstance",
)  # fmt: skip
Endpoints = _builtin("v1", "Endpoints", "subsets")
Namespace = _builtin("v1", "Namespace", namespaced=False)
Node = _builtin("v1", "Node", namespaced=False)
Deployment = _builtin("apps/v1", "Deployment")
StatefulSet = _builtin("apps/v1", "StatefulSet")
DaemonSet = _builtin("apps/v1", "DaemonSet")
ReplicaSet = _builtin("apps/v1", "ReplicaSet")
Job = _builtin("batch/v1", "Job")
CronJob = _builtin("batch/v1", "CronJob")
Ingress = _builtin("networking.k8s.io/v1", "Ingress")
NetworkPolicy = _builtin("networking.k8s.io/v1", "NetworkPolicy", "spec")
EndpointSlice = _builtin("discovery.k8s.io/v1", "EndpointSlice", "addressType", "endpoints", "ports")
Lease = _builtin("coordination.k8s.io/v1", "Lease", "spec")
PodDisruptionBudget = _builtin("policy/v1", "PodDisruptionBudget")
HorizontalPodAutoscaler = _builtin("autoscaling/v2", "HorizontalPodAutoscaler")
Role = _builtin(_RBAC, "Role", "rules")
RoleBinding = _builtin(_RBAC, "RoleBinding", "subjects", "roleRef")
ClusterRole = _builtin(_RBAC, "ClusterRole", "rules", "aggregationRule", namespaced=False)
ClusterRoleBinding = _builtin(_RBAC, "ClusterRoleBinding", "subjects", "roleRef", namespaced=False)
CustomResourceDefinition = _builtin("apiextensions.k8s.io/v1", "CustomResourceDefinition", namespaced=False)

BUILTIN: dict[str, Kind] = {name: value for name, value in globals().items() if isinstance(value, Kind)}
"""Every built-in kind by name."""
