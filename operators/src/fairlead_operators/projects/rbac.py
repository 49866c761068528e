"""What a project consists of: pure functions from a Project to its objects."""

from typing import Any

import fairlead as fl
from fairlead_operators.projects.kinds import CLAIMS, CREATE_ACTOR, FINALIZER, MANAGED, PROJECT_LABEL

RBAC = "rbac.authorization.k8s.io"
READ_SECRETS = "kargo-controller-read-secrets"
SYSTEM_BINDINGS = {
    "kargo-project-admin": ["kargo-api", "kargo-admin"],
    "kargo-project-secrets-reader": ["kargo-external-webhooks-server"],
}
"""Bindings in every project namespace to the ClusterRole of the same name, and the system's accounts that get it."""

_ALL = ["*"]
_READ = ["get", "list", "watch"]
DEFAULT_ROLES: dict[str, list[dict[str, Any]]] = {
    "kargo-admin": [
        {"apiGroups": [""], "resources": ["secrets", "serviceaccounts", "configmaps"], "verbs": _ALL},
        {"apiGroups": [RBAC], "resources": ["roles", "rolebindings"], "verbs": _ALL},
        {"apiGroups": ["kargo.akuity.io"], "resources": _ALL, "verbs": _ALL},
    ],
    "kargo-viewer": [
        {"apiGroups": [""], "resources": ["events", "serviceaccounts"], "verbs": _READ},
        {"apiGroups": ["kargo.akuity.io"], "resources": _ALL, "verbs": _READ},
    ],
    "kargo-promoter": [
        {"apiGroups": ["kargo.akuity.io"], "resources": _ALL, "verbs": _READ},
        {"apiGroups": ["kargo.akuity.io"], "resources": ["stages"], "verbs": ["promote"]},
        {"apiGroups": ["kargo.akuity.io"], "resources": ["promotions"], "verbs": ["create"]},
    ],
}
"""What the users of a project start from. From then on the roles are theirs to edit."""


def namespace_of(project: fl.Object) -> fl.Object:
    made: fl.Object = fl.Namespace(project.name, labels={PROJECT_LABEL: "true"})
    made["metadata"]["finalizers"] = [FINALIZER]
    return made


def system_bindings(project: fl.Object, system: str) -> list[fl.Object]:
    """The system's own access to the project: ours, and nobody else's to edit."""
    return [
        binding(name, project.name, "ClusterRole", name, [(account, system) for account in accounts])
        for name, accounts in SYSTEM_BINDINGS.items()
    ]


def controller_binding(project: str, account: str, system: str) -> fl.Object:
    """The access of one of the system's controllers to a project's secrets."""
    return binding(f"{account}-read-secrets", project, "ClusterRole", READ_SECRETS, [(account, system)])


def user_objects(project: fl.Object) -> list[fl.Object]:
    """What users start from: made once, then theirs."""
    made: list[fl.Object] = []
    creator = project.annotations.get(CREATE_ACTOR)
    for name, rules in DEFAULT_ROLES.items():
        claims = {CLAIMS: creator} if creator and name == "kargo-admin" else {}
        annotations = {MANAGED: "true"}
        made.append(fl.ServiceAccount(name, project.name, annotations={**annotations, **claims}))
        made.append(fl.Role(name, project.name, annotations=annotations, rules=rules))
        bound = binding(name, project.name, "Role", name, [(name, project.name)])
        bound["metadata"]["annotations"] = annotations
        made.append(bound)
    return [*made, *cluster_objects(project)]


def cluster_objects(project: fl.Object) -> list[fl.Object]:
    """What lets the project's admins see and delete the project itself."""
    name = f"kargo-project-admin-{project.name}"
    rules = [
        {
            "apiGroups": ["kargo.akuity.io"],
            "resources": ["projects"],
            "resourceNames": [project.name],
            "verbs": ["get", "delete"],
        }
    ]
    role = fl.ClusterRole(name, annotations={MANAGED: "true"}, rules=rules)
    bound = binding(name, None, "ClusterRole", name, [("kargo-admin", project.name)])
    bound["metadata"]["annotations"] = {MANAGED: "true"}
    return [role, bound]


def binding(name: str, namespace: str | None, role: str, of: str, accounts: list[tuple[str, str]]) -> fl.Object:
    kind = fl.RoleBinding if namespace else fl.ClusterRoleBinding
    subjects = [{"kind": "ServiceAccount", "name": account, "namespace": where} for account, where in accounts]
    made: fl.Object = kind(name, namespace, roleRef={"apiGroup": RBAC, "kind": role, "name": of}, subjects=subjects)
    return made
