"""The second writer: a simulated GitOps tool that labels the bindings and applies the rules of a role."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import fairlead as fl
from fairlead.api.errors import ApiError
from fairlead.client.client import Client
from fairlead_operators.projects.kinds import PROJECT_LABEL
from fairlead_operators.projects.rbac import SYSTEM_BINDINGS

LABEL = "argocd.argoproj.io/instance"
MANAGER = "argocd-controller"
EDITED = [{"apiGroups": ["kargo.akuity.io"], "resources": ["stages"], "verbs": ["get"]}]
"""The rules of the viewer role in Git."""
SYNC_INTERVAL = 60.0


@asynccontextmanager
async def running(client: Client, *, interval: float = SYNC_INTERVAL) -> AsyncIterator[None]:
    """Run the GitOps tool until the block ends. It applies with its own field manager, once per `interval` seconds."""

    async def work() -> None:
        while True:
            await sync(client)
            await asyncio.sleep(interval)

    task = asyncio.create_task(work(), name="gitops")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def sync(client: Client) -> None:
    """Label the bindings and apply the role once, in every namespace of a project."""
    namespaces = await client.list(fl.Namespace, labels=f"{PROJECT_LABEL}=true")
    for name in [namespace.name for namespace in namespaces.items if not namespace.deleting]:
        try:
            for binding in (await client.list(fl.RoleBinding, name)).items:
                if binding.name in SYSTEM_BINDINGS:
                    await client.apply(_label_payload(binding), field_manager=MANAGER)
            for role in (await client.list(fl.Role, name)).items:
                if role.name == "kargo-viewer":
                    await client.apply(fl.Role(role.name, name, rules=EDITED), field_manager=MANAGER)
        except ApiError:
            continue  # the namespace is terminating


def _label_payload(binding: fl.Object) -> fl.Object:
    payload = fl.Object({"apiVersion": binding.api_version, "kind": binding.kind, "roleRef": binding["roleRef"]})
    payload["metadata"] = {"name": binding.name, "namespace": binding.namespace, "labels": {LABEL: "platform"}}
    return payload
