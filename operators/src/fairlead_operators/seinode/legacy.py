"""The write path of the incident: the plan gated by a cached `plan == nil`, written by a merge patch without a version.

How status is written is a parameter, so that every way can be held against the same race (tests/test_contention.py).
Children are applied, as they were; they are not what went wrong.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import fairlead as fl
from fairlead.api.times import rfc3339
from fairlead.client.client import Client, PatchType
from fairlead_operators import old_way
from fairlead_operators.old_way import Key, View, owned_by, with_finalizer, with_metadata
from fairlead_operators.seinode import plans
from fairlead_operators.seinode.children import claim_of, job_of, node_of, rolled_out, service_of, stateful_set_of
from fairlead_operators.seinode.kinds import DEPLOYMENT_FINALIZER, NODE_FINALIZER, SeiNode, SeiNodeDeployment

PERSISTED = 0.001
"""A new plan is persisted, and looked at again after a millisecond: sooner than any watch tells of it."""
POLL = 5.0

Flush = Callable[[Client, fl.Object, dict[str, Any]], Awaitable[fl.Object]]
"""Writes a status, given the copy that the pass began with."""


async def merge_from(client: Client, base: fl.Object, status: dict[str, Any]) -> fl.Object:
    """Status().Patch(MergeFrom(base)): what differs, and no version."""
    patch = {"status": difference(base.status, status)}
    return await client.patch(_kind(base), base.name, base.namespace, patch, type=PatchType.MERGE, subresource="status")


def difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The JSON merge patch from one to the other; lists are replaced whole."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(old.get(key), dict):
            if below := difference(old[key], value):
                patch[key] = below
        elif key not in old or old[key] != value:
            patch[key] = value
    return patch


def nodes(client: Client, world: fl.World, **options: Any) -> AbstractAsyncContextManager[View]:
    """The SeiNode controller at work."""
    return old_way.running(
        client,
        world,
        reconcile_node,
        primary=SeiNode,
        owns=[fl.StatefulSet, fl.Service, fl.PersistentVolumeClaim, fl.Job],
        **options,
    )


def deployments(client: Client, world: fl.World, **options: Any) -> AbstractAsyncContextManager[View]:
    """The SeiNodeDeployment controller at work."""
    return old_way.running(client, world, reconcile_deployment, primary=SeiNodeDeployment, owns=[SeiNode], **options)


async def reconcile_node(key: Key, view: View, flush: Flush = merge_from) -> float | None:
    node = view.get(SeiNode, key)
    if node is None or node.deleting:
        await _leave(node, NODE_FINALIZER, view)
        return None
    if NODE_FINALIZER not in node.finalizers:
        await view.client.replace(with_finalizer(node, NODE_FINALIZER))
        return PERSISTED
    plan = node.status.get("plan")
    if not plan or plan["phase"] != "Active":
        if node.status.get("currentImage") == node.spec["image"]:
            return None
        params = {"image": node.spec["image"]}
        kinds = ["ensure-volume", "bootstrap", "apply-service", "apply-statefulset", "await-rollout"]
        new = _new_plan(view, [(kind, params) for kind in kinds])
        await flush(view.client, node, {**node.status, "phase": "Initializing", "plan": new})
        return PERSISTED
    tasks = list(plan["tasks"])
    for index, task in enumerate(tasks):
        if task["status"] == "Complete":
            continue
        if not await _node_task(node, plan, task, view):
            break
        tasks[index] = {**task, "status": "Complete"}
    return await _progress(node, plan, tasks, view, flush, phase="Running", currentImage=node.spec["image"])


async def reconcile_deployment(key: Key, view: View, flush: Flush = merge_from) -> float | None:
    deployment = view.get(SeiNodeDeployment, key)
    if deployment is None or deployment.deleting:
        await _leave(deployment, DEPLOYMENT_FINALIZER, view)
        return None
    if DEPLOYMENT_FINALIZER not in deployment.finalizers:
        patch = {"metadata": {"finalizers": [*deployment.finalizers, DEPLOYMENT_FINALIZER]}}
        await view.client.patch(SeiNodeDeployment, deployment.name, deployment.namespace, patch, type=PatchType.MERGE)
        return PERSISTED
    plan, revision = deployment.status.get("plan"), plans.digest(deployment.spec["template"])
    if not plan or plan["phase"] != "Active":
        if deployment.status.get("templateHash") == revision:
            return None
        kinds = [("ensure-node", {"ordinal": str(n)}) for n in range(deployment.spec["replicas"])]
        await flush(view.client, deployment, {**deployment.status, "plan": _new_plan(view, kinds)})
        return PERSISTED
    tasks = []
    for task in plan["tasks"]:
        await _apply(node_of(deployment, int(task["params"]["ordinal"])), deployment, view)
        tasks.append({**task, "status": "Complete"})
    reached = {"phase": "Ready", "templateHash": revision, "replicas": len(tasks)}
    return await _progress(deployment, plan, tasks, view, flush, **reached)


async def _node_task(node: fl.Object, plan: dict[str, Any], task: dict[str, Any], view: View) -> bool:
    """Do what the task asks for, and say whether that is done."""
    match task["type"]:
        case "ensure-volume":
            claim = claim_of(node)
            return claim is None or bool(await _apply(claim, node, view))
        case "bootstrap":
            return (await _apply(job_of(node, plan["id"], task), node, view)).is_true("Complete")
        case "apply-service":
            return bool(await _apply(service_of(node), node, view))
        case "apply-statefulset":
            return bool(await _apply(stateful_set_of(node), node, view))
        case _:
            found = view.get(fl.StatefulSet, (node.namespace, node.name))
            return found is not None and rolled_out(found)


async def _progress(
    obj: fl.Object, plan: dict[str, Any], tasks: list[dict[str, Any]], view: View, flush: Flush, **reached: Any
) -> float | None:
    """One flush of what changed in memory."""
    complete = all(task["status"] == "Complete" for task in tasks)
    status = {**obj.status, "plan": {**plan, "tasks": tasks, "phase": "Complete" if complete else "Active"}}
    if complete:
        status |= reached
    if status != obj.status:
        await flush(view.client, obj, status)
    return None if complete else POLL


def _new_plan(view: View, tasks: list[tuple[str, dict[str, str]]]) -> dict[str, Any]:
    plan_id = view.world.uid()
    return {
        "id": plan_id,
        "phase": "Active",
        "movedAt": rfc3339(view.world.clock.now()),
        "tasks": [plans.task(plan_id, index, kind, params) for index, (kind, params) in enumerate(tasks)],
    }


async def _apply(child: fl.Object, owner: fl.Object, view: View) -> fl.Object:
    placed = owned_by(with_metadata(child, namespace=owner.namespace), owner)
    return await view.client.apply(placed, field_manager=f"{owner.kind.lower()}-controller")


async def _leave(obj: fl.Object | None, finalizer: str, view: View) -> None:
    if obj is not None and finalizer in obj.finalizers:
        left = [name for name in obj.finalizers if name != finalizer]
        await view.client.replace(with_metadata(obj, finalizers=left))


def _kind(obj: fl.Object) -> fl.Kind:
    return fl.kind(obj.api_version, obj.kind)
