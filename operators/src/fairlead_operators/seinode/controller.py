"""The Sei operator. One process decides a plan, writes it into the status, and only then executes it."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import fairlead as fl
from fairlead.api.times import rfc3339
from fairlead_operators.seinode import plans
from fairlead_operators.seinode.children import (
    claim_of,
    imported_claim_name,
    is_rolled_out,
    job_name,
    job_of,
    node_of,
    service_of,
    stateful_set_of,
)
from fairlead_operators.seinode.kinds import (
    DEPLOYMENT,
    DEPLOYMENT_FINALIZER,
    DEPLOYMENT_UID,
    NODE_FINALIZER,
    SeiNode,
    SeiNodeDeployment,
)
from fairlead_operators.seinode.plans import Plan

op = fl.Operator("sei")

Step = Callable[[fl.Object, Plan, dict[str, Any], fl.Context], Awaitable[bool]]
"""Executes a task and returns whether it is complete. Must be idempotent."""


class TaskFailed(Exception):
    """A task failed, and a retry would fail too."""


# SeiNode


def node_tasks(draft: fl.Draft) -> Sequence[tuple[str, dict[str, str]]]:
    """Return the tasks that create a node or change its image, as (type, parameters)."""
    image, current = draft.spec["image"], draft.status.get("currentImage")
    rollout = [("apply-statefulset", {"image": image}), ("await-rollout", {"image": image})]
    if current is None:
        return [("ensure-volume", {}), ("bootstrap", {"image": image}), ("apply-service", {}), *rollout]
    return rollout if current != image else []


def nodes_importing(claim: fl.Object, ctx: fl.ReadContext) -> Iterable[fl.Object]:
    """Return the SeiNodes that import a PersistentVolumeClaim."""
    return [node for node in ctx.list(SeiNode, claim.namespace) if imported_claim_name(node) == claim.name]


@op.reconcile(
    SeiNode,
    owns=[fl.StatefulSet, fl.Service, fl.Job],
    watches={fl.PersistentVolumeClaim: nodes_importing},
)
async def seinode(node: fl.Object, ctx: fl.Context) -> None:
    """Reconcile a SeiNode: execute its plan, or apply its children if there is no plan."""
    ctx.status(phase="Initializing" if "currentImage" not in node.status else "Running")
    imported = imported_claim_name(node)
    if imported and ctx.get(fl.PersistentVolumeClaim, imported) is None:
        raise fl.Wait("VolumeMissing", f"PersistentVolumeClaim {imported} does not exist: create it, or import another")
    await execute_plan(node, node_tasks, NODE_STEPS, ctx, currentImage=node.spec["image"])
    for child in (claim_of(node), service_of(node), stateful_set_of(node)):
        if child is not None:
            await ctx.apply(child)
    await ctx.prune(fl.Job)  # the bootstrap Job of a complete plan; the claim holds the chain's data, and stays
    ctx.status(phase="Running")


async def ensure_volume(node: fl.Object, plan: Plan, task: dict[str, Any], ctx: fl.Context) -> bool:
    claim = claim_of(node)
    if claim is not None:
        await ctx.apply(claim)
    return True


async def bootstrap(node: fl.Object, plan: Plan, task: dict[str, Any], ctx: fl.Context) -> bool:
    job = await ctx.apply(job_of(node, plan["id"], task))
    if job.is_true("Failed"):
        raise TaskFailed((job.condition("Failed") or {}).get("message") or f"Job {job.name} failed")
    return job.is_true("Complete")


async def apply_service(node: fl.Object, plan: Plan, task: dict[str, Any], ctx: fl.Context) -> bool:
    await ctx.apply(service_of(node))
    return True


async def apply_stateful_set(node: fl.Object, plan: Plan, task: dict[str, Any], ctx: fl.Context) -> bool:
    await ctx.apply(stateful_set_of(node))
    return True


async def await_rollout(node: fl.Object, plan: Plan, task: dict[str, Any], ctx: fl.Context) -> bool:
    # An apply that sends nothing returns the cached object, which includes our own write: never an older rollout.
    return is_rolled_out(await ctx.apply(stateful_set_of(node)))


NODE_STEPS: dict[str, Step] = {
    "ensure-volume": ensure_volume,
    "bootstrap": bootstrap,
    "apply-service": apply_service,
    "apply-statefulset": apply_stateful_set,
    "await-rollout": await_rollout,
}


@op.cleanup(SeiNode, finalizer=NODE_FINALIZER)
async def clean_up_node(node: fl.Object, ctx: fl.Context) -> None:
    """Delete the PersistentVolumeClaim of a deleted node, unless the node imported it."""
    claim = claim_of(node)
    existing = ctx.get(fl.PersistentVolumeClaim, claim.name) if claim is not None else None
    if existing is not None and any(ref["uid"] == node.uid for ref in existing.metadata.get("ownerReferences") or ()):
        await ctx.delete(existing)


# SeiNodeDeployment


def deployment_tasks(draft: fl.Draft) -> Sequence[tuple[str, dict[str, str]]]:
    """Return the tasks of a deployment: create or update each node, then wait until all are ready."""
    replicas, revision = draft.spec["replicas"], plans.digest(draft.spec["template"].plain())
    if (draft.status.get("replicas"), draft.status.get("templateHash")) == (replicas, revision):
        return []
    node_tasks = [("ensure-node", {"ordinal": str(ordinal)}) for ordinal in range(replicas)]
    return [*node_tasks, ("await-nodes", {"revision": revision})]


def deployment_of(node: fl.Object) -> list[str]:
    """Return the name of a node's deployment from its label. Retained nodes have no owner reference."""
    return [node.labels[DEPLOYMENT]] if DEPLOYMENT in node.labels else []


@op.reconcile(SeiNodeDeployment, owns=[SeiNode], watches={SeiNode: deployment_of})
async def seinodedeployment(deployment: fl.Object, ctx: fl.Context) -> None:
    """Reconcile a SeiNodeDeployment: execute its plan, or apply its nodes and delete surplus ones.

    The deletionPolicy does not protect surplus nodes: it applies only if the deployment is deleted.
    """
    ctx.status(phase="Upgrading")
    replicas, template = deployment.spec["replicas"], deployment.spec["template"]
    revision = plans.digest(template)
    await execute_plan(deployment, deployment_tasks, DEPLOYMENT_STEPS, ctx, replicas=replicas, templateHash=revision)
    nodes = [await apply_node(deployment, ordinal, ctx) for ordinal in range(replicas)]
    await prune_nodes(deployment, {node.name for node in nodes}, ctx)
    ready_names = [node.name for node in nodes if _is_running(node, template["spec"]["image"])]
    ctx.status(phase="Ready", nodes=[node.name for node in nodes], readyReplicas=len(ready_names))


async def prune_nodes(deployment: fl.Object, kept_names: set[str], ctx: fl.Context) -> None:
    """Delete the nodes of a deployment that are not in `kept_names`, including retained nodes without an owner.

    Nodes that an earlier deployment with this name retained have another uid in their label, and stay.
    """
    for node in ctx.list(SeiNode, labels=f"{DEPLOYMENT_UID}={deployment.uid}"):
        if node.name not in kept_names and not node.deleting:
            await ctx.delete(node)


async def apply_node(deployment: fl.Object, ordinal: int, ctx: fl.Context) -> fl.Object:
    # The garbage collector would delete retained nodes if they had an owner reference.
    is_owned = deployment.spec.get("deletionPolicy") != "Retain"
    return await ctx.apply(node_of(deployment, ordinal), owned=is_owned)


async def ensure_node(deployment: fl.Object, plan: Plan, task: dict[str, Any], ctx: fl.Context) -> bool:
    if int(task["params"]["ordinal"]) < deployment.spec["replicas"]:
        await apply_node(deployment, int(task["params"]["ordinal"]), ctx)
    return True


async def await_nodes(deployment: fl.Object, plan: Plan, task: dict[str, Any], ctx: fl.Context) -> bool:
    image = deployment.spec["template"]["spec"]["image"]
    nodes = [await apply_node(deployment, ordinal, ctx) for ordinal in range(deployment.spec["replicas"])]
    return all(_is_running(node, image) for node in nodes)


DEPLOYMENT_STEPS: dict[str, Step] = {"ensure-node": ensure_node, "await-nodes": await_nodes}


@op.cleanup(SeiNodeDeployment, finalizer=DEPLOYMENT_FINALIZER)
async def clean_up_deployment(deployment: fl.Object, ctx: fl.Context) -> None:
    """Delete the nodes of a deleted deployment, and wait until they are gone."""
    nodes = ctx.children(SeiNode)
    for node in nodes:
        if not node.deleting:
            await ctx.delete(node)
    if nodes:
        raise fl.Wait("NodesTerminating", f"waiting until {len(nodes)} SeiNodes are deleted: see their finalizers")


# Plans of both kinds


async def execute_plan(
    obj: fl.Object, tasks: plans.Tasks, steps: dict[str, Step], ctx: fl.Context, **final_status: Any
) -> None:
    """Decide and execute the plan of an object. Return when all tasks are complete and `final_status` is written.

    Raises Wait while a task is not complete. The first decision writes the plan. A reconcile in another process, even
    with a stale cache, gets that plan and does not execute it. Progress is written with a decision too, only if the
    stored plan is still the same.
    """
    replica, now = ctx.resources.setdefault("replica", ctx.world.uid()), rfc3339(ctx.world.clock.now())
    plan = await ctx.decide(plans.ensure(tasks, new_id=ctx.world.uid(), executor=replica, now=now))
    if plan is None:
        return
    if plan["phase"] == "Failed":
        ctx.status(phase="Failed")
        detail = plan["failedTaskDetail"]
        raise fl.Terminal("PlanFailed", f"{detail}: change the spec to start a new plan")
    completed_tasks: list[str] = []
    if plan["executor"] == replica:
        try:
            for task in plan["tasks"]:
                if task["status"] != "Complete" and not await steps[task["type"]](obj, plan, task, ctx):
                    break
                completed_tasks.append(task["id"])
        except TaskFailed as error:
            await ctx.decide(plans.advance(plan, completed_tasks, now=now, failure=(len(completed_tasks), str(error))))
            ctx.status(phase="Failed")
            raise fl.Terminal("PlanFailed", f"{error}: change the spec to start a new plan") from error
        await ctx.decide(plans.advance(plan, completed_tasks, now=now, **final_status))
    if len(completed_tasks) < len(plan["tasks"]):
        open_tasks = (
            task for task in plan["tasks"] if task["status"] != "Complete" and task["id"] not in completed_tasks
        )
        task = next(open_tasks, plan["tasks"][-1])
        # All replicas must write the same message, or they would overwrite each other's again and again.
        message = f"plan {plan['id']} is active: {task['type']} {describe_wait(obj, task, ctx)}"
        raise fl.Wait("PlanActive", message, after=plans.TAKEOVER_AFTER)


def describe_wait(obj: fl.Object, task: dict[str, Any], ctx: fl.ReadContext) -> str:
    """Return a message that says what a task waits for, and which command shows the cause."""
    match task["type"]:
        case "bootstrap":
            job = job_name(obj, task)
            return f"waits for Job {job}: see kubectl describe job {job}"
        case "await-rollout":
            return f"waits for StatefulSet {obj.name}: see kubectl describe statefulset {obj.name}"
        case "await-nodes":
            image = obj.spec["template"]["spec"]["image"]
            for ordinal in range(obj.spec["replicas"]):
                node = ctx.get(SeiNode, f"{obj.name}-{ordinal}")
                if node is None or not _is_running(node, image):
                    return f"waits for SeiNode {obj.name}-{ordinal}: see its condition Ready"
    return "is next"


def _is_running(node: fl.Object, image: str) -> bool:
    return node.is_true("Ready") and node.status.get("currentImage") == image


if __name__ == "__main__":
    op.main()
