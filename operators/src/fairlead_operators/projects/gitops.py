"""The second writer: a GitOps tool that labels every binding it sees and keeps an edited role as it is in Git."""

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
"""What this team wants its viewers to see."""
EVERY = 60.0


@asynccontextmanager
async def running(client: Client, *, every: float = EVERY) -> AsyncIterator[None]:
    """The tool at work: it synchronises now and then, by apply, under a field manager of its own."""

    async def work() -> None:
        while True:
            await sync(client)
            await asyncio.sleep(every)

    task = asyncio.create_task(work(), name="gitops")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def sync(client: Client) -> None:
    """Once, in every project namespace that has its objects already."""
    namespaces = await client.list(fl.Namespace, labels=f"{PROJECT_LABEL}=true")
    for name in [each.name for each in namespaces.items if not each.deleting]:
        try:
            for binding in (await client.list(fl.RoleBinding, name)).items:
                if binding.name in SYSTEM_BINDINGS:
                    await client.apply(_labelled(binding), field_manager=MANAGER)
            for role in (await client.list(fl.Role, name)).items:
                if role.name == "kargo-viewer":
                    await client.apply(fl.Role(role.name, name, rules=EDITED), field_manager=MANAGER)
        except ApiError:
            continue  # the namespace is leaving


def _labelled(binding: fl.Object) -> fl.Object:
    mine = fl.Object({"apiVersion": binding.api_version, "kind": binding.kind, "roleRef": binding["roleRef"]})
    mine["metadata"] = {"name": binding.name, "namespace": binding.namespace, "labels": {LABEL: "platform"}}
    return mine
