"""The legacy Sei operator: if the cached copy has no plan, write a new plan with a merge patch.

The patch has no resourceVersion. The function that writes the status is a parameter, so that operators/tests/seinode
can test other ways to write it in the same race. The children are applied, as in the original.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import fairlead as fl
from fairlead.api.times import rfc3339
from fairlead.client.client import Client, PatchType
from fairlead_operators import classic_controller
from fairlead_operators.classic_controller import (
    ClassicContext,
    Key,
    owned_by,
    with_finalizer,
    with_metadata,
    without_finalizer,
)
from fairlead_operators.seinode import plans
from fairlead_operators.seinode.children import claim_of, is_rolled_out, job_of, node_of, service_of, stateful_set_of
from fairlead_operators.seinode.kinds import DEPLOYMENT_FINALIZER, NODE_FINALIZER, SeiNode, SeiNodeDeployment

REQUEUE_DELAY = 0.001
"""Seconds until the next reconcile after a new plan was written. The watch event takes longer."""
POLL_INTERVAL = 5.0

WriteStatus = Callable[[Client, fl.Object, dict[str, Any]], Awaitable[fl.Object]]
"""Writes a status, given the copy that the reconcile started with."""


async def merge_from(client: Client, base: fl.Object, status: dict[str, Any]) -> fl.Object:
    """Patch the status like Go's Status().Patch(MergeFrom(base)): only the difference, without a resourceVersion."""
    patch = {"status": difference(base.status, status)}
    return await client.patch(_kind(base), base.name, base.namespace, patch, type=PatchType.MERGE, subresource="status")


def difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON merge patch from `old` to `new`. Lists are replaced as a whole."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(old.get(key), dict):
            if inner_difference := difference(old[key], value):
                patch[key] = inner_difference
        elif key not in old or old[key] != value:
            patch[key] = value
    return patch


def run_node_controller(client: Client, world: fl.World, **options: Any) -> AbstractAsyncContextManager[ClassicContext]:
    """Return a context manager that runs the legacy SeiNode controller."""
    return classic_controller.running(
        client,
        world,
        reconcile_node,
        primary=SeiNode,
        owns=[fl.StatefulSet, fl.Service, fl.PersistentVolumeClaim, fl.Job],
        **options,
    )


def run_deployment_controller(
    client: Client, world: fl.World, **options: Any
) -> AbstractAsyncContextManager[ClassicContext]:
    """Return a context manager that runs the legacy SeiNodeDeployment controller."""
    return classic_controller.running(
        client, world, reconcile_deployment, primary=SeiNodeDeployment, owns=[SeiNode], **options
    )


async def reconcile_node(key: Key, ctx: ClassicContext, write_status: WriteStatus = merge_from) -> float | None:
    node = ctx.get(SeiNode, key)
    if node is None or node.deleting:
        await _clean_up(node, NODE_FINALIZER, ctx)
        return None
    if NODE_FINALIZER not in node.finalizers:
        await ctx.client.replace(with_finalizer(node, NODE_FINALIZER))
        return REQUEUE_DELAY
    plan = node.status.get("plan")
    if not plan or plan["phase"] != "Active":
        if node.status.get("currentImage") == node.spec["image"]:
            return None
        params = {"image": node.spec["image"]}
        kinds = ["ensure-volume", "bootstrap", "apply-service", "apply-statefulset", "await-rollout"]
        new = _new_plan(ctx, [(kind, params) for kind in kinds])
        await write_status(ctx.client, node, {**node.status, "phase": "Initializing", "plan": new})
        return REQUEUE_DELAY
    tasks = list(plan["tasks"])
    for index, task in enumerate(tasks):
        if task["status"] == "Complete":
            continue
        if not await _execute_node_task(node, plan, task, ctx):
            break
        tasks[index] = {**task, "status": "Complete"}
    return await _write_progress(node, plan, tasks, ctx, write_status, phase="Running", currentImage=node.spec["image"])


async def reconcile_deployment(key: Key, ctx: ClassicContext, write_status: WriteStatus = merge_from) -> float | None:
    deployment = ctx.get(SeiNodeDeployment, key)
    if deployment is None or deployment.deleting:
        await _clean_up(deployment, DEPLOYMENT_FINALIZER, ctx)
        return None
    if DEPLOYMENT_FINALIZER not in deployment.finalizers:
        patch = {"metadata": {"finalizers": [*deployment.finalizers, DEPLOYMENT_FINALIZER]}}
        await ctx.client.patch(SeiNodeDeployment, deployment.name, deployment.namespace, patch, type=PatchType.MERGE)
        return REQUEUE_DELAY
    plan, revision = deployment.status.get("plan"), plans.digest(deployment.spec["template"])
    if not plan or plan["phase"] != "Active":
        if deployment.status.get("templateHash") == revision:
            return None
        kinds = [("ensure-node", {"ordinal": str(n)}) for n in range(deployment.spec["replicas"])]
        await write_status(ctx.client, deployment, {**deployment.status, "plan": _new_plan(ctx, kinds)})
        return REQUEUE_DELAY
    tasks = []
    for task in plan["tasks"]:
        await _apply(node_of(deployment, int(task["params"]["ordinal"])), deployment, ctx)
        tasks.append({**task, "status": "Complete"})
    final_status = {"phase": "Ready", "templateHash": revision, "replicas": len(tasks)}
    return await _write_progress(deployment, plan, tasks, ctx, write_status, **final_status)


async def _execute_node_task(node: fl.Object, plan: dict[str, Any], task: dict[str, Any], ctx: ClassicContext) -> bool:
    """Execute a task of a node's plan, and return whether the task is complete."""
    match task["type"]:
        case "ensure-volume":
            claim = claim_of(node)
            return claim is None or bool(await _apply(claim, node, ctx))
        case "bootstrap":
            return (await _apply(job_of(node, plan["id"], task), node, ctx)).is_true("Complete")
        case "apply-service":
            return bool(await _apply(service_of(node), node, ctx))
        case "apply-statefulset":
            return bool(await _apply(stateful_set_of(node), node, ctx))
        case _:
            stateful_set = ctx.get(fl.StatefulSet, (node.namespace, node.name))
            return stateful_set is not None and is_rolled_out(stateful_set)


async def _write_progress(
    obj: fl.Object,
    plan: dict[str, Any],
    tasks: list[dict[str, Any]],
    ctx: ClassicContext,
    write_status: WriteStatus,
    **final_status: Any,
) -> float | None:
    """Write the new status if the tasks changed it, and return the seconds until the next reconcile, or None."""
    is_complete = all(task["status"] == "Complete" for task in tasks)
    status = {**obj.status, "plan": {**plan, "tasks": tasks, "phase": "Complete" if is_complete else "Active"}}
    if is_complete:
        status |= final_status
    if status != obj.status:
        await write_status(ctx.client, obj, status)
    return None if is_complete else POLL_INTERVAL


def _new_plan(ctx: ClassicContext, tasks: list[tuple[str, dict[str, str]]]) -> dict[str, Any]:
    plan_id = ctx.world.uid()
    return {
        "id": plan_id,
        "phase": "Active",
        "movedAt": rfc3339(ctx.world.clock.now()),
        "tasks": [plans.make_task(plan_id, index, kind, params) for index, (kind, params) in enumerate(tasks)],
    }


async def _apply(child: fl.Object, owner: fl.Object, ctx: ClassicContext) -> fl.Object:
    payload = owned_by(with_metadata(child, namespace=owner.namespace), owner)
    return await ctx.client.apply(payload, field_manager=f"{owner.kind.lower()}-controller")


async def _clean_up(obj: fl.Object | None, finalizer: str, ctx: ClassicContext) -> None:
    if obj is not None and finalizer in obj.finalizers:
        await ctx.client.replace(without_finalizer(obj, finalizer))


def _kind(obj: fl.Object) -> fl.Kind:
    return fl.kind(obj.api_version, obj.kind)
