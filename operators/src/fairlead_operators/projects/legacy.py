"""The legacy Project operator: create every object, and on AlreadyExists skip it or PUT without a resourceVersion.

Each reconcile sends a POST for thirteen objects that already exist. Two controllers create the bindings of the
ServiceAccounts: the controller of projects and the controller of accounts.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import fairlead as fl
from fairlead.api.errors import AlreadyExists
from fairlead.api.times import rfc3339
from fairlead.client.client import Client, PatchType
from fairlead_operators import classic_controller
from fairlead_operators.classic_controller import ClassicContext, Key, with_finalizer, without_finalizer
from fairlead_operators.projects import rbac
from fairlead_operators.projects.kinds import COMPONENT, FINALIZER, KEEP_NAMESPACE, SYSTEM, Project, Stage, Warehouse

RESYNC_INTERVAL = 300.0
"""Seconds after which every project is reconciled again."""


@asynccontextmanager
async def running(
    client: Client, world: fl.World, *, system: str = SYSTEM, **options: Any
) -> AsyncIterator[tuple[ClassicContext, ClassicContext]]:
    """Run the legacy controllers of projects and of ServiceAccounts until the block ends."""

    async def reconcile(key: Key, ctx: ClassicContext) -> float | None:
        return await reconcile_project(key, ctx, system)

    async def reconcile_account(key: Key, ctx: ClassicContext) -> None:
        await bind_everywhere(key, ctx, system)

    def project_of(obj: fl.Object, ctx: ClassicContext) -> Iterable[Key]:
        return [(None, obj.namespace or "")]

    projects = classic_controller.running(
        client,
        world,
        reconcile,
        primary=Project,
        watches={
            Warehouse: project_of,
            Stage: project_of,
            fl.ServiceAccount: lambda obj, ctx: (),
            fl.Namespace: lambda obj, ctx: (),
        },
        workers=4,
        **options,
    )
    accounts = classic_controller.running(
        client,
        world,
        reconcile_account,
        primary=fl.ServiceAccount,
        watches={Project: lambda obj, ctx: ()},
        **options,
    )
    async with projects as project_ctx, accounts as account_ctx:
        yield project_ctx, account_ctx


async def reconcile_project(key: Key, ctx: ClassicContext, system: str) -> float | None:
    project = ctx.get(Project, key)
    if project is None:
        return None
    if FINALIZER not in project.finalizers:
        patch = {"metadata": {"finalizers": [*project.finalizers, FINALIZER]}}
        await ctx.client.patch(Project, project.name, None, patch, type=PatchType.MERGE)
    if project.deleting:
        await _clean_up(project, ctx)
        return None
    if ctx.get(fl.Namespace, (None, project.name)) is None:
        await _create_or_skip(rbac.namespace_of(project), ctx)
    for binding in rbac.system_bindings(project, system):
        await _create_or_update(binding, ctx)
    for account in _controller_accounts(ctx, system):
        await _bind(account, project.name, ctx, system)
    for obj in rbac.user_objects(project):
        await _create_or_skip(obj, ctx)
    await _report(project, ctx)
    return RESYNC_INTERVAL


async def bind_everywhere(key: Key, ctx: ClassicContext, system: str) -> None:
    """Create a binding for one account in every project. This is the reconcile of the second controller."""
    account = ctx.get(fl.ServiceAccount, key)
    if account is None or account.namespace != system or account.labels.get(COMPONENT) != "controller":
        return
    for project in ctx.list(Project):
        await _bind(account, project.name, ctx, system)


async def _bind(account: fl.Object, project: str, ctx: ClassicContext, system: str) -> None:
    if FINALIZER not in account.finalizers:
        await ctx.client.replace(with_finalizer(account, FINALIZER))
    await _create_or_update(rbac.controller_binding(project, account.name, system), ctx)


async def _create_or_update(obj: fl.Object, ctx: ClassicContext) -> None:
    try:
        await ctx.client.create(obj)
    except AlreadyExists:
        await ctx.client.replace(obj)  # without a resourceVersion: deletes what other writers added


async def _create_or_skip(obj: fl.Object, ctx: ClassicContext) -> None:
    try:
        await ctx.client.create(obj)
    except AlreadyExists:
        return


async def _report(project: fl.Object, ctx: ClassicContext) -> None:
    warehouses = ctx.list(Warehouse, project.name)
    healthy = sum((warehouse.status.get("health") or {}).get("status") == "Healthy" for warehouse in warehouses)
    stats = {"warehouses": {"count": len(warehouses), "healthy": healthy}}
    ready_condition = project.condition("Ready") or {"lastTransitionTime": rfc3339(ctx.world.clock.now())}
    ready_condition = {**ready_condition, "type": "Ready", "status": "True", "reason": "Synced", "message": ""}
    status = {"stats": stats, "conditions": [ready_condition]}
    if status != project.status:
        patch = {"status": status}
        await ctx.client.patch(Project, project.name, None, patch, type=PatchType.MERGE, subresource="status")


async def _clean_up(project: fl.Object, ctx: ClassicContext) -> None:
    for obj in reversed(rbac.cluster_objects(project)):
        await ctx.client.delete(fl.kind(obj.api_version, obj.kind), obj.name)
    namespace = await ctx.client.get(fl.Namespace, project.name)
    await ctx.client.replace(without_finalizer(namespace, FINALIZER))
    if project.annotations.get(KEEP_NAMESPACE) != "true":
        await ctx.client.delete(fl.Namespace, project.name)
    await ctx.client.replace(without_finalizer(project, FINALIZER))


def _controller_accounts(ctx: ClassicContext, system: str) -> list[fl.Object]:
    return [account for account in ctx.list(fl.ServiceAccount, system) if account.labels.get(COMPONENT) == "controller"]
