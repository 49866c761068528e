"""The Project operator: the system's bindings are applied, the users' roles are made once, and then nothing is sent."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fairlead as fl
from fairlead.api import manifests
from fairlead.api.errors import Invalid, UserError
from fairlead_operators.projects import rbac
from fairlead_operators.projects.kinds import (
    COMPONENT,
    FINALIZER,
    KEEP_NAMESPACE,
    MANAGED,
    PROJECT_LABEL,
    SYSTEM,
    Project,
    Stage,
    Warehouse,
)

op = fl.Operator("projects")

EXTENDED = "PROJECTS_EXTENDED_PERMISSIONS"
"""Names a YAML file with Roles, RoleBindings and ServiceAccounts to make, once, in every project namespace."""


@op.startup
def configure(resources: dict[str, Any]) -> None:
    path = os.environ.get(EXTENDED)
    resources.setdefault("system", SYSTEM)
    resources.setdefault("extended", extended_permissions(Path(path)) if path else [])


def extended_permissions(path: Path) -> list[fl.Object]:
    """What is in that file. Raises UserError."""
    found = manifests.read(path)
    for obj in found:
        if obj.kind not in ("Role", "RoleBinding", "ServiceAccount") or not obj.metadata.get("name"):
            said = f"{path}: {obj.kind} {obj.metadata.get('name', 'without a name')}"
            raise UserError(f"{said}: {EXTENDED} takes Roles, RoleBindings and ServiceAccounts, each with a name")
    return found


def controllers(view: fl.ReadContext) -> list[str]:
    """The accounts of the system's controllers."""
    system = view.resources["system"]
    accounts = view.list(fl.ServiceAccount, system, labels=f"{COMPONENT}=controller")
    return sorted(account.name for account in accounts if not account.deleting)


def every_project(account: fl.Object, view: fl.ReadContext) -> Iterable[fl.Object]:
    """A controller of the system comes or goes: each project grants or takes back."""
    if account.namespace == view.resources["system"] and account.labels.get(COMPONENT) == "controller":
        yield from view.list(Project)


def its_project(obj: fl.Object) -> Iterable[tuple[None, str]]:
    """A project's namespace has its name."""
    yield None, obj.namespace or obj.name


@op.reconcile(
    Project,
    owns=[fl.RoleBinding],
    watches={
        fl.Namespace: its_project,
        fl.ServiceAccount: every_project,
        Warehouse: its_project,
        Stage: its_project,
        fl.Role: None,
        fl.ClusterRole: None,
        fl.ClusterRoleBinding: None,
    },
)
async def project(project: fl.Object, ctx: fl.Context) -> None:
    """Make the namespace and what belongs in it, then say how its warehouses and stages fare."""
    system = ctx.resources["system"]
    with said("EnsuringNamespaceFailed", ctx, "delete it, and create the project under another name"):
        await ensure_namespace(project, ctx)
    with said("EnsuringSystemPermissionsFailed", ctx):
        for binding in rbac.system_bindings(project, system):
            await ctx.apply(binding, adopt=True, recreate=True)  # a roleRef cannot change
    with said("EnsuringControllerPermissionsFailed", ctx):
        for account in controllers(ctx):
            binding = rbac.controller_binding(project.name, account, system)
            await ctx.apply(binding, adopt=True, recreate=True)
    with said("EnsuringDefaultUserRolesFailed", ctx):
        for made in rbac.user_objects(project):
            await ctx.create(made)
    with said("EnsuringExtendedPermissionsFailed", ctx, f"mend the file that {EXTENDED} names, and start again"):
        for template in ctx.resources["extended"]:
            await ctx.create({**template, "metadata": {**template["metadata"], "namespace": project.name}})
    report(project, ctx)


async def ensure_namespace(project: fl.Object, ctx: fl.Context) -> None:
    found = ctx.get(fl.Namespace, project.name)
    if found is not None and found.labels.get(PROJECT_LABEL) != "true":
        said = (
            f"Namespace {project.name} was there before: create the project under another name, or, if the namespace "
            f"may go when the project does, label it {PROJECT_LABEL}=true"
        )
        ctx.condition("Stalled", True, "ExistingNamespaceMissingLabel", said)
        raise fl.Wait("ExistingNamespaceMissingLabel", said)
    if found is not None and found.deleting:
        live = await ctx.live.get(fl.Namespace, project.name)
        if live is not None and live.deleting and FINALIZER in live.finalizers:
            await ctx.delete(project)  # its clean-up lets the namespace go
            raise fl.Wait("NamespaceTerminating", "the project goes with its namespace")
        # Let go already: by the clean-up of another project, which had this name before.
        raise fl.Wait(
            "NamespaceTerminating",
            f"the Namespace {project.name} of an earlier project is still going, and is made anew once it is gone: see "
            f"what holds it (kubectl get namespace {project.name} -o yaml)",
        )
    # Made by us, or labelled by somebody to be taken; one that turns up unlabelled in between is refused.
    await ctx.apply(rbac.namespace_of(project), owned=False, adopt=found is not None)
    ctx.condition("Stalled", False, "Synced")


def report(project: fl.Object, ctx: fl.Context) -> None:
    stats: dict[str, dict[str, int]] = {}
    for kind in (Warehouse, Stage):
        found = ctx.list(kind, project.name)
        healthy = [each for each in found if (each.status.get("health") or {}).get("status") == "Healthy"]
        stats[kind.plural] = {"count": len(found), "healthy": len(healthy)}
    ill = sum(each["count"] - each["healthy"] for each in stats.values())
    ctx.status(stats=stats)
    ctx.condition("Healthy", ill == 0, "Healthy" if ill == 0 else "Unhealthy", f"{ill} are not healthy" if ill else "")
    ctx.condition("Ready", True, "Synced", "the project is as it should be")


@contextmanager
def said(reason: str, ctx: fl.Context, remedy: str = "") -> Iterator[None]:
    """What fails in here is told under this reason. What the server takes for invalid is told with a remedy, once."""
    try:
        yield
    except Invalid as error:
        raise fl.Terminal(reason, f"{error}; {remedy}" if remedy else str(error)) from error
    except (fl.WriteError, fl.ApiError) as error:
        ctx.condition("Ready", False, reason, str(error))
        raise


@op.cleanup(Project, finalizer=FINALIZER)
async def leave(project: fl.Object, ctx: fl.Context) -> None:
    """The cluster's roles first, then the namespace with all that is in it, unless it is to be kept."""
    for made in reversed(rbac.cluster_objects(project)):
        found = ctx.get(fl.kind(made.api_version, made.kind), made.name)
        if found is not None and found.annotations.get(MANAGED) == "true":
            await ctx.delete(found)
    namespace = ctx.get(fl.Namespace, project.name)
    if namespace is None or namespace.labels.get(PROJECT_LABEL) != "true":
        return
    await ctx.decide(let_go, namespace)
    if project.annotations.get(KEEP_NAMESPACE) != "true" and not namespace.deleting:
        await ctx.delete(namespace)


def let_go(draft: fl.Draft) -> None:
    finalizers = draft.metadata.get("finalizers")
    if finalizers and FINALIZER in finalizers:
        finalizers.remove(FINALIZER)


if __name__ == "__main__":
    op.main()
