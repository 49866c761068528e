"""The Project operator. It applies Kargo's bindings, creates the users' roles once, and sends nothing afterwards."""

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

EXTENDED_PERMISSIONS = "PROJECTS_EXTENDED_PERMISSIONS"
"""The variable with the path of a YAML file: Roles, RoleBindings and ServiceAccounts for every new project."""


@op.startup
def configure(resources: dict[str, Any]) -> None:
    """Read the settings from the environment."""
    path = os.environ.get(EXTENDED_PERMISSIONS)
    resources.setdefault("system", SYSTEM)
    resources.setdefault("extended", read_extended_permissions(Path(path)) if path else [])


def read_extended_permissions(path: Path) -> list[fl.Object]:
    """Return the Roles, RoleBindings and ServiceAccounts in a file. Raises UserError for any other object."""
    objects = manifests.read_objects(path)
    for obj in objects:
        if obj.kind not in ("Role", "RoleBinding", "ServiceAccount") or not obj.metadata.get("name"):
            location = f"{path}: {obj.kind} {obj.metadata.get('name', 'without a name')}"
            raise UserError(
                f"{location}: {EXTENDED_PERMISSIONS} takes Roles, RoleBindings and ServiceAccounts, each with a name"
            )
    return objects


def controller_accounts(ctx: fl.ReadContext) -> list[str]:
    """Return the names of the ServiceAccounts of Kargo's controllers."""
    system = ctx.resources["system"]
    accounts = ctx.list(fl.ServiceAccount, system, labels=f"{COMPONENT}=controller")
    return sorted(account.name for account in accounts if not account.deleting)


def projects_for_account(account: fl.Object, ctx: fl.ReadContext) -> Iterable[fl.Object]:
    """Yield all projects if a Kargo controller uses the account, because each project has a binding for it."""
    if account.namespace == ctx.resources["system"] and account.labels.get(COMPONENT) == "controller":
        yield from ctx.list(Project)


def project_of(obj: fl.Object) -> Iterable[tuple[None, str]]:
    """Yield the key of the project of a namespace, or of an object in it. Project and namespace have the same name."""
    yield None, obj.namespace or obj.name


@op.reconcile(
    Project,
    owns=[fl.RoleBinding],
    watches={
        fl.Namespace: project_of,
        fl.ServiceAccount: projects_for_account,
        Warehouse: project_of,
        Stage: project_of,
        fl.Role: None,
        fl.ClusterRole: None,
        fl.ClusterRoleBinding: None,
    },
)
async def project(project: fl.Object, ctx: fl.Context) -> None:
    """Create the namespace and its RBAC objects, then report the health of its warehouses and stages."""
    system = ctx.resources["system"]
    with report_errors("EnsuringNamespaceFailed", ctx, "delete it, and create the project under another name"):
        await ensure_namespace(project, ctx)
    with report_errors("EnsuringSystemPermissionsFailed", ctx):
        for binding in rbac.system_bindings(project, system):
            await ctx.apply(binding, adopt=True, recreate=True)  # a roleRef cannot change
    with report_errors("EnsuringControllerPermissionsFailed", ctx):
        for account in controller_accounts(ctx):
            binding = rbac.controller_binding(project.name, account, system)
            await ctx.apply(binding, adopt=True, recreate=True)
        await ctx.prune(fl.RoleBinding)  # the bindings of accounts that no longer exist
    with report_errors("EnsuringDefaultUserRolesFailed", ctx):
        for obj in rbac.user_objects(project):
            await ctx.create(obj)
    with report_errors("EnsuringExtendedPermissionsFailed", ctx, f"fix the file in {EXTENDED_PERMISSIONS} and restart"):
        for template in ctx.resources["extended"]:
            await ctx.create({**template, "metadata": {**template["metadata"], "namespace": project.name}})
    report(project, ctx)


async def ensure_namespace(project: fl.Object, ctx: fl.Context) -> None:
    """Create the namespace of a project. Raise Wait or Terminal if another namespace has that name."""
    existing = ctx.get(fl.Namespace, project.name)
    if existing is not None and existing.labels.get(PROJECT_LABEL) != "true":
        message = (
            f"Namespace {project.name} already exists: create the project under another name. Or label the namespace "
            f"{PROJECT_LABEL}=true if it may be deleted together with the project"
        )
        ctx.condition("Stalled", True, "ExistingNamespaceMissingLabel", message)
        raise fl.Wait("ExistingNamespaceMissingLabel", message)
    if existing is not None and existing.deleting:
        live = await ctx.live.get(fl.Namespace, project.name)
        if live is not None and live.deleting and FINALIZER in live.finalizers:
            await ctx.delete(project)  # its cleanup removes the finalizer of the namespace
            raise fl.Wait("NamespaceTerminating", "The namespace was deleted, so the project is deleted, too")
        # The cleanup of an earlier project with this name has already removed our finalizer.
        raise fl.Wait(
            "NamespaceTerminating",
            f"Namespace {project.name} of an earlier project is still terminating, and is recreated afterwards: see "
            f"its conditions (kubectl get namespace {project.name} -o yaml)",
        )
    # Adopt only a namespace with our label. The apply fails if someone creates another one in the meantime.
    await ctx.apply(rbac.namespace_of(project), owned=False, adopt=existing is not None)
    ctx.condition("Stalled", False, "Synced")


def report(project: fl.Object, ctx: fl.Context) -> None:
    """Write the number of healthy warehouses and stages into the status of the project."""
    stats: dict[str, dict[str, int]] = {}
    for kind in (Warehouse, Stage):
        objects = ctx.list(kind, project.name)
        healthy = [obj for obj in objects if (obj.status.get("health") or {}).get("status") == "Healthy"]
        stats[kind.plural] = {"count": len(objects), "healthy": len(healthy)}
    unhealthy = sum(counts["count"] - counts["healthy"] for counts in stats.values())
    ctx.status(stats=stats)
    reason, message = (
        ("Unhealthy", f"{unhealthy} Warehouses and Stages are not healthy") if unhealthy else ("Healthy", "")
    )
    ctx.condition("Healthy", not unhealthy, reason, message)
    ctx.condition("Ready", True, "Synced", "The project is up to date")


@contextmanager
def report_errors(reason: str, ctx: fl.Context, remedy: str = "") -> Iterator[None]:
    """Report errors of the `with` block in the condition, with this reason. Validation errors are not retried."""
    try:
        yield
    except Invalid as error:
        raise fl.Terminal(reason, f"{error}; {remedy}" if remedy else str(error)) from error
    except (fl.WriteError, fl.ApiError) as error:
        ctx.condition("Ready", False, reason, str(error))
        raise


@op.cleanup(Project, finalizer=FINALIZER)
async def clean_up(project: fl.Object, ctx: fl.Context) -> None:
    """Delete the cluster-scoped roles of a project, and its namespace unless the annotation says to keep it."""
    for obj in reversed(rbac.cluster_objects(project)):
        existing = ctx.get(fl.kind(obj.api_version, obj.kind), obj.name)
        if existing is not None and existing.annotations.get(MANAGED) == "true":
            await ctx.delete(existing)
    namespace = ctx.get(fl.Namespace, project.name)
    if namespace is None or namespace.labels.get(PROJECT_LABEL) != "true":
        return
    await ctx.decide(remove_finalizer, namespace)
    if project.annotations.get(KEEP_NAMESPACE) != "true" and not namespace.deleting:
        await ctx.delete(namespace)


def remove_finalizer(draft: fl.Draft) -> None:
    """Remove our finalizer from the draft of an object."""
    finalizers = draft.metadata.get("finalizers")
    if finalizers and FINALIZER in finalizers:
        finalizers.remove(FINALIZER)


if __name__ == "__main__":
    op.main()
