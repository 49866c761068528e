"""The write path of the incident: create, be told that it exists, then put it without a version or skip it.

Every pass of every project POSTs thirteen objects that are there. The accounts of the system's controllers are bound
from both sides, by the project's reconciler and by one of their own.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import fairlead as fl
from fairlead.api.errors import AlreadyExists
from fairlead.api.times import rfc3339
from fairlead.client.client import Client, PatchType
from fairlead_operators import old_way
from fairlead_operators.old_way import Key, View, with_finalizer, with_metadata
from fairlead_operators.projects import rbac
from fairlead_operators.projects.kinds import COMPONENT, FINALIZER, KEEP_NAMESPACE, SYSTEM, Project, Stage, Warehouse

AGAIN = 300.0
"""Every project is looked at again after five minutes, whatever happened."""


@asynccontextmanager
async def running(
    client: Client, world: fl.World, *, system: str = SYSTEM, **options: Any
) -> AsyncIterator[tuple[View, View]]:
    """Both controllers at work."""

    async def reconcile(key: Key, view: View) -> float | None:
        return await reconcile_project(key, view, system)

    async def reconcile_account(key: Key, view: View) -> None:
        await bind_everywhere(key, view, system)

    def its_project(obj: fl.Object, view: View) -> Iterable[Key]:
        return [(None, obj.namespace or "")]

    projects = old_way.running(
        client,
        world,
        reconcile,
        primary=Project,
        watches={
            Warehouse: its_project,
            Stage: its_project,
            fl.ServiceAccount: lambda obj, view: (),
            fl.Namespace: lambda obj, view: (),
        },
        workers=4,
        **options,
    )
    accounts = old_way.running(
        client,
        world,
        reconcile_account,
        primary=fl.ServiceAccount,
        watches={Project: lambda obj, view: ()},
        **options,
    )
    async with projects as one, accounts as other:
        yield one, other


async def reconcile_project(key: Key, view: View, system: str) -> float | None:
    project = view.get(Project, key)
    if project is None:
        return None
    if FINALIZER not in project.finalizers:
        patch = {"metadata": {"finalizers": [*project.finalizers, FINALIZER]}}
        await view.client.patch(Project, project.name, None, patch, type=PatchType.MERGE)
    if project.deleting:
        await _leave(project, view)
        return None
    if view.get(fl.Namespace, (None, project.name)) is None:
        await _create_or_skip(rbac.namespace_of(project), view)
    for binding in rbac.system_bindings(project, system):
        await _create_or_update(binding, view)
    for account in _controllers(view, system):
        await _bind(account, project.name, view, system)
    for made in rbac.user_objects(project):
        await _create_or_skip(made, view)
    await _report(project, view)
    return AGAIN


async def bind_everywhere(key: Key, view: View, system: str) -> None:
    """The other side: one account, every project."""
    account = view.get(fl.ServiceAccount, key)
    if account is None or account.namespace != system or account.labels.get(COMPONENT) != "controller":
        return
    for project in view.list(Project):
        await _bind(account, project.name, view, system)


async def _bind(account: fl.Object, project: str, view: View, system: str) -> None:
    if FINALIZER not in account.finalizers:
        await view.client.replace(with_finalizer(account, FINALIZER))
    await _create_or_update(rbac.controller_binding(project, account.name, system), view)


async def _create_or_update(obj: fl.Object, view: View) -> None:
    try:
        await view.client.create(obj)
    except AlreadyExists:
        await view.client.replace(obj)  # never read, so no version: whatever others wrote into it is gone


async def _create_or_skip(obj: fl.Object, view: View) -> None:
    try:
        await view.client.create(obj)
    except AlreadyExists:
        return


async def _report(project: fl.Object, view: View) -> None:
    warehouses = view.list(Warehouse, project.name)
    healthy = sum((each.status.get("health") or {}).get("status") == "Healthy" for each in warehouses)
    stats = {"warehouses": {"count": len(warehouses), "healthy": healthy}}
    known = project.condition("Ready") or {"lastTransitionTime": rfc3339(view.world.clock.now())}
    ready = {**known, "type": "Ready", "status": "True", "reason": "Synced", "message": ""}
    status = {"stats": stats, "conditions": [ready]}
    if status != project.status:
        patch = {"status": status}
        await view.client.patch(Project, project.name, None, patch, type=PatchType.MERGE, subresource="status")


async def _leave(project: fl.Object, view: View) -> None:
    for made in reversed(rbac.cluster_objects(project)):
        await view.client.delete(fl.kind(made.api_version, made.kind), made.name)
    namespace = await view.client.get(fl.Namespace, project.name)
    left = [name for name in namespace.finalizers if name != FINALIZER]
    await view.client.replace(with_metadata(namespace, finalizers=left))
    if project.annotations.get(KEEP_NAMESPACE) != "true":
        await view.client.delete(fl.Namespace, project.name)
    left = [name for name in project.finalizers if name != FINALIZER]
    await view.client.replace(with_metadata(project, finalizers=left))


def _controllers(view: View, system: str) -> list[fl.Object]:
    return [each for each in view.list(fl.ServiceAccount, system) if each.labels.get(COMPONENT) == "controller"]
