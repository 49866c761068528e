"""The kinds, labels and names that the Project operator uses."""

import fairlead as fl

Project = fl.kind("kargo.akuity.io/v1alpha1", "Project", namespaced=False)
Warehouse = fl.kind("kargo.akuity.io/v1alpha1", "Warehouse")
Stage = fl.kind("kargo.akuity.io/v1alpha1", "Stage")

SYSTEM = "kargo"
"""The default namespace of the Kargo installation."""
FINALIZER = "kargo.akuity.io/finalizer"
PROJECT_LABEL = "kargo.akuity.io/project"
KEEP_NAMESPACE = "kargo.akuity.io/keep-namespace"
CREATE_ACTOR = "kargo.akuity.io/create-actor"
MANAGED = "rbac.kargo.akuity.io/managed"
CLAIMS = "rbac.kargo.akuity.io/claims"
COMPONENT = "app.kubernetes.io/component"
