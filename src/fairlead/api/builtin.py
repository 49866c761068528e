"""The built-in kinds by name, as `fairlead.ConfigMap` and so on."""

from fairlead.api.kinds import Kind, kind

ConfigMap = kind("v1", "ConfigMap")
Secret = kind("v1", "Secret")
Service = kind("v1", "Service")
ServiceAccount = kind("v1", "ServiceAccount")
Pod = kind("v1", "Pod")
PersistentVolumeClaim = kind("v1", "PersistentVolumeClaim")
Event = kind("v1", "Event")
Endpoints = kind("v1", "Endpoints")
Namespace = kind("v1", "Namespace", namespaced=False)
Node = kind("v1", "Node", namespaced=False)
Deployment = kind("apps/v1", "Deployment")
StatefulSet = kind("apps/v1", "StatefulSet")
DaemonSet = kind("apps/v1", "DaemonSet")
ReplicaSet = kind("apps/v1", "ReplicaSet")
Job = kind("batch/v1", "Job")
CronJob = kind("batch/v1", "CronJob")
Ingress = kind("networking.k8s.io/v1", "Ingress")
NetworkPolicy = kind("networking.k8s.io/v1", "NetworkPolicy")
EndpointSlice = kind("discovery.k8s.io/v1", "EndpointSlice")
Lease = kind("coordination.k8s.io/v1", "Lease")
PodDisruptionBudget = kind("policy/v1", "PodDisruptionBudget")
HorizontalPodAutoscaler = kind("autoscaling/v2", "HorizontalPodAutoscaler")
Role = kind("rbac.authorization.k8s.io/v1", "Role")
RoleBinding = kind("rbac.authorization.k8s.io/v1", "RoleBinding")
ClusterRole = kind("rbac.authorization.k8s.io/v1", "ClusterRole", namespaced=False)
ClusterRoleBinding = kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", namespaced=False)
CustomResourceDefinition = kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", namespaced=False)

BUILTIN: dict[str, Kind] = {name: value for name, value in globals().items() if isinstance(value, Kind)}
