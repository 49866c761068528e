"""Kubernetes controllers that never fight over what they write.

Importing this package is cheap: each name loads the module behind it on first use.
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

__all__ = [
    "ApiError",
    "ClusterContext",
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "Context",
    "CronJob",
    "CustomResourceDefinition",
    "DaemonSet",
    "Deployment",
    "Draft",
    "EndpointSlice",
    "Endpoints",
    "Event",
    "ForeignObject",
    "HorizontalPodAutoscaler",
    "ImmutableField",
    "Ingress",
    "Job",
    "Kind",
    "Lease",
    "LeaseLost",
    "Namespace",
    "NetworkPolicy",
    "Node",
    "Object",
    "ObjectDeleted",
    "Operator",
    "Outcome",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "ReadContext",
    "ReplicaSet",
    "RequeueAfter",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "StatefulSet",
    "Terminal",
    "UnknownOutcome",
    "Wait",
    "World",
    "WriteError",
    "__version__",
    "errors",
    "generation_changed",
    "kind",
    "select",
]

if TYPE_CHECKING:
    from fairlead import errors
    from fairlead.api.builtin import (
        ClusterRole,
        ClusterRoleBinding,
        ConfigMap,
        CronJob,
        CustomResourceDefinition,
        DaemonSet,
        Deployment,
        Endpoints,
        EndpointSlice,
        Event,
        HorizontalPodAutoscaler,
        Ingress,
        Job,
        Lease,
        Namespace,
        NetworkPolicy,
        Node,
        PersistentVolumeClaim,
        Pod,
        PodDisruptionBudget,
        ReplicaSet,
        Role,
        RoleBinding,
        Secret,
        Service,
        ServiceAccount,
        StatefulSet,
    )
    from fairlead.api.errors import ApiError, UnknownOutcome
    from fairlead.api.kinds import Kind, kind
    from fairlead.api.objects import Object
    from fairlead.api.world import World
    from fairlead.runtime.context import Context
    from fairlead.runtime.leases import LeaseLost
    from fairlead.runtime.operator import Operator
    from fairlead.runtime.outcomes import Outcome, RequeueAfter, Terminal, Wait
    from fairlead.runtime.predicates import generation_changed
    from fairlead.runtime.read_context import ReadContext
    from fairlead.runtime.sources import select
    from fairlead.runtime.write_context import ClusterContext
    from fairlead.writes.draft import Draft
    from fairlead.writes.errors import ForeignObject, ImmutableField, ObjectDeleted, WriteError
else:
    from fairlead.lazy_exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "fairlead.api.builtin": (
                "ClusterRole", "ClusterRoleBinding", "ConfigMap", "CronJob", "CustomResourceDefinition", "DaemonSet",
                "Deployment", "EndpointSlice", "Endpoints", "Event", "HorizontalPodAutoscaler", "Ingress", "Job",
                "Lease", "Namespace", "NetworkPolicy", "Node", "PersistentVolumeClaim", "Pod", "PodDisruptionBudget",
                "ReplicaSet", "Role", "RoleBinding", "Secret", "Service", "ServiceAccount", "StatefulSet",
            ),
            "fairlead.api.errors": ("ApiError", "UnknownOutcome"),
            "fairlead.api.kinds": ("Kind", "kind"),
            "fairlead.api.objects": ("Object",),
            "fairlead.api.world": ("World",),
            "fairlead.errors": ("errors",),
            "fairlead.runtime.context": ("Context",),
            "fairlead.runtime.read_context": ("ReadContext",),
            "fairlead.runtime.write_context": ("ClusterContext",),
            "fairlead.runtime.leases": ("LeaseLost",),
            "fairlead.runtime.operator": ("Operator",),
            "fairlead.runtime.outcomes": ("Outcome", "RequeueAfter", "Terminal", "Wait"),
            "fairlead.runtime.predicates": ("generation_changed",),
            "fairlead.runtime.sources": ("select",),
            "fairlead.writes.draft": ("Draft",),
            "fairlead.writes.errors": ("ForeignObject", "ImmutableField", "ObjectDeleted", "WriteError"),
        },
    )  # fmt: skip
