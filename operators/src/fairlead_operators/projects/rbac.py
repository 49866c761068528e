"""Build the namespace, roles and bindings of a Project."""

from typing import Any

import fairlead as fl
from fairlead_operators.projects.kinds import CLAIMS, CREATE_ACTOR, FINALIZER, MANAGED, PROJECT_LABEL

RBAC = "rbac.authorization.k8s.io"
READ_SECRETS = "kargo-controller-read-secrets"
SYSTEM_BINDINGS = {
    "kargo-project-admin": ["kargo-api", "kargo-admin"],
    "kargo-project-secrets-reader": ["kargo-external-webhooks-server"],
}
"""The bindings in each project namespace, and their ServiceAccounts. The ClusterRole has the binding's name."""

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
"""The initial rules of the roles of a project. Users may edit them afterwards."""


def namespace_of(project: fl.Object) -> fl.Object:
    """Return the payload of a project's namespace, with a label and our finalizer."""
    namespace: fl.Object = fl.Namespace(project.name, labels={PROJECT_LABEL: "true"})
    namespace["metadata"]["finalizers"] = [FINALIZER]
    return namespace


def system_bindings(project: fl.Object, system: str) -> list[fl.Object]:
    """Return the bindings that give Kargo access to the project. The operator owns them."""
    return [
        make_binding(name, project.name, "ClusterRole", name, [(account, system) for account in accounts])
        for name, accounts in SYSTEM_BINDINGS.items()
    ]


def controller_binding(project: str, account: str, system: str) -> fl.Object:
    """Return the binding that lets a Kargo controller read the project's secrets."""
    return make_binding(f"{account}-read-secrets", project, "ClusterRole", READ_SECRETS, [(account, system)])


def user_objects(project: fl.Object) -> list[fl.Object]:
    """Return the accounts, roles and bindings that the operator creates once and users may edit."""
    objects: list[fl.Object] = []
    creator = project.annotations.get(CREATE_ACTOR)
    for name, rules in DEFAULT_ROLES.items():
        claims = {CLAIMS: creator} if creator and name == "kargo-admin" else {}
        annotations = {MANAGED: "true"}
        objects.append(fl.ServiceAccount(name, project.name, annotations={**annotations, **claims}))
        objects.append(fl.Role(name, project.name, annotations=annotations, rules=rules))
        role_binding = make_binding(name, project.name, "Role", name, [(name, project.name)])
        role_binding["metadata"]["annotations"] = annotations
        objects.append(role_binding)
    return [*objects, *cluster_objects(project)]


def cluster_objects(project: fl.Object) -> list[fl.Object]:
    """Return the ClusterRole and binding that let the project's admins read and delete the Project."""
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
    role_binding = make_binding(name, None, "ClusterRole", name, [("kargo-admin", project.name)])
    role_binding["metadata"]["annotations"] = {MANAGED: "true"}
    return [role, role_binding]


def make_binding(
    name: str, namespace: str | None, role_kind: str, role: str, accounts: list[tuple[str, str]]
) -> fl.Object:
    """Return a RoleBinding, or a ClusterRoleBinding without `namespace`. `accounts` are (name, namespace) pairs."""
    kind = fl.RoleBinding if namespace else fl.ClusterRoleBinding
    subjects = [
        {"kind": "ServiceAccount", "name": account, "namespace": account_namespace}
        for account, account_namespace in accounts
    ]
    role_ref = {"apiGroup": RBAC, "kind": role_kind, "name": role}
    result: fl.Object = kind(name, namespace, roleRef=role_ref, subjects=subjects)
    return result
