"""The Sei operator: a plan is decided once, persisted, and only then carried out, by the process that decided it."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import fairlead as fl
from fairlead.api.times import rfc3339
from fairlead_operators.seinode import plans
from fairlead_operators.seinode.children import (
    claim_of,
    imported_claim,
    job_name,
    job_of,
    node_of,
    rolled_out,
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
"""Does what a task asks for, as often as it is called, and says whether that is done."""


class TaskFailed(Exception):
    """A task will not succeed by trying again."""


# SeiNode


def node_tasks(draft: fl.Draft) -> Sequence[tuple[str, dict[str, str]]]:
    """From nothing to a running node, or from one image to another."""
    image, current = draft.spec["image"], draft.status.get("currentImage")
    rollout = [("apply-statefulset", {"image": image}), ("await-rollout", {"image": image})]
    if current is None:
        return [("ensure-volume", {}), ("bootstrap", {"image": image}), ("apply-service", {}), *rollout]
    return rollout if current != image else []


def importers(claim: fl.Object, view: fl.ReadContext) -> Iterable[fl.Object]:
    """The nodes that were told to take this claim."""
    return [node for node in view.list(SeiNode, claim.namespace) if imported_claim(node) == claim.name]


@op.reconcile(
    SeiNode,
    owns=[fl.StatefulSet, fl.Service, fl.Job],
    watches={fl.PersistentVolumeClaim: importers},  # not among those that are pruned: it holds the chain's data
)
async def seinode(node: fl.Object, ctx: fl.Context) -> None:
    """Carry out the plan; without one, keep the children as they should be."""
    ctx.status(phase="Initializing" if "currentImage" not in node.status else "Running")
    imported = imported_claim(node)
    if imported and ctx.get(fl.PersistentVolumeClaim, imported) is None:
        raise fl.Wait("VolumeMissing", f"there is no PersistentVolumeClaim {imported}: create it, or import another")
    await carry_out(node, node_tasks, NODE_STEPS, ctx, currentImage=node.spec["image"])
    for child in (claim_of(node), service_of(node), stateful_set_of(node)):
        if child is not None:
            await ctx.apply(child)
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
    # The answer of an apply that sends nothing is the local view, which has our own write: never an older rollout.
    return rolled_out(await ctx.apply(stateful_set_of(node)))


NODE_STEPS: dict[str, Step] = {
    "ensure-volume": ensure_volume,
    "bootstrap": bootstrap,
    "apply-service": apply_service,
    "apply-statefulset": apply_stateful_set,
    "await-rollout": await_rollout,
}


@op.cleanup(SeiNode, finalizer=NODE_FINALIZER)
async def leave_node(node: fl.Object, ctx: fl.Context) -> None:
    """The data goes with the node, unless it was there before it."""
    claim = claim_of(node)
    found = ctx.get(fl.PersistentVolumeClaim, claim.name) if claim is not None else None
    if found is not None and any(ref["uid"] == node.uid for ref in found.metadata.get("ownerReferences") or ()):
        await ctx.delete(found)


# SeiNodeDeployment


def deployment_tasks(draft: fl.Draft) -> Sequence[tuple[str, dict[str, str]]]:
    """One node after the other, then all of them ready."""
    replicas, revision = draft.spec["replicas"], plans.digest(draft.spec["template"].plain())
    if (draft.status.get("replicas"), draft.status.get("templateHash")) == (replicas, revision):
        return []
    nodes = [("ensure-node", {"ordinal": str(ordinal)}) for ordinal in range(replicas)]
    return [*nodes, ("await-nodes", {"revision": revision})]


def deployment_of(node: fl.Object) -> list[str]:
    """Retained nodes name their deployment by label alone."""
    return [node.labels[DEPLOYMENT]] if DEPLOYMENT in node.labels else []


@op.reconcile(SeiNodeDeployment, owns=[SeiNode], watches={SeiNode: deployment_of})
async def seinodedeployment(deployment: fl.Object, ctx: fl.Context) -> None:
    """Carry out the plan; without one, keep the nodes as they should be. Surplus nodes are pruned, whatever the
    deletionPolicy: that is about the deletion of the deployment."""
    ctx.status(phase="Upgrading")
    replicas, template = deployment.spec["replicas"], deployment.spec["template"]
    revision = plans.digest(template)
    await carry_out(deployment, deployment_tasks, DEPLOYMENT_STEPS, ctx, replicas=replicas, templateHash=revision)
    nodes = [await apply_node(deployment, ordinal, ctx) for ordinal in range(replicas)]
    await prune(deployment, {node.name for node in nodes}, ctx)
    ready = [node.name for node in nodes if _runs(node, template["spec"]["image"])]
    ctx.status(phase="Ready", nodes=[node.name for node in nodes], readyReplicas=len(ready))


async def prune(deployment: fl.Object, wanted: set[str], ctx: fl.Context) -> None:
    """Those that name the deployment as their owner would go by themselves; those to be retained do not. What an
    earlier deployment of this name left behind has another uid and stays."""
    for node in ctx.list(SeiNode, labels=f"{DEPLOYMENT_UID}={deployment.uid}"):
        if node.name not in wanted and not node.deleting:
            await ctx.delete(node)


async def apply_node(deployment: fl.Object, ordinal: int, ctx: fl.Context) -> fl.Object:
    # Nodes that shall stay when the deployment goes must not name it as their owner.
    owned = deployment.spec.get("deletionPolicy") != "Retain"
    return await ctx.apply(node_of(deployment, ordinal), owned=owned)


async def ensure_node(deployment: fl.Object, plan: Plan, task: dict[str, Any], ctx: fl.Context) -> bool:
    if int(task["params"]["ordinal"]) < deployment.spec["replicas"]:
        await apply_node(deployment, int(task["params"]["ordinal"]), ctx)
    return True


async def await_nodes(deployment: fl.Object, plan: Plan, task: dict[str, Any], ctx: fl.Context) -> bool:
    image = deployment.spec["template"]["spec"]["image"]
    nodes = [await apply_node(deployment, ordinal, ctx) for ordinal in range(deployment.spec["replicas"])]
    return all(_runs(node, image) for node in nodes)


DEPLOYMENT_STEPS: dict[str, Step] = {"ensure-node": ensure_node, "await-nodes": await_nodes}


@op.cleanup(SeiNodeDeployment, finalizer=DEPLOYMENT_FINALIZER)
async def leave_deployment(deployment: fl.Object, ctx: fl.Context) -> None:
    """Nodes first: whoever waits for the deployment to be gone waits for them too."""
    nodes = ctx.children(SeiNode)
    for node in nodes:
        if not node.deleting:
            await ctx.delete(node)
    if nodes:
        raise fl.Wait("NodesLeaving", f"{len(nodes)} nodes are still there")


# Both


async def carry_out(
    obj: fl.Object, tasks: plans.Tasks, steps: dict[str, Step], ctx: fl.Context, **reached: Any
) -> None:
    """Return when there is nothing (more) to carry out, `reached` being in status then; else say what is waited for.

    The first decision persists the plan; a pass that comes second, on however old a copy, gets the first one's plan
    and leaves it to it. Progress is a decision as well, on the same plan or not at all.
    """
    me, now = ctx.resources.setdefault("replica", ctx.world.uid()), rfc3339(ctx.world.clock.now())
    plan = await ctx.decide(plans.ensure(tasks, new_id=ctx.world.uid(), executor=me, now=now))
    if plan is None:
        return
    if plan["phase"] == "Failed":
        ctx.status(phase="Failed")
        detail = plan["failedTaskDetail"]
        raise fl.Terminal("PlanFailed", f"{detail}: change the spec to have a new plan made")
    done: list[str] = []
    if plan["executor"] == me:
        try:
            for task in plan["tasks"]:
                if task["status"] != "Complete" and not await steps[task["type"]](obj, plan, task, ctx):
                    break
                done.append(task["id"])
        except TaskFailed as error:
            await ctx.decide(plans.advance(plan, done, now=now, failure=(len(done), str(error))))
            ctx.status(phase="Failed")
            raise fl.Terminal("PlanFailed", f"{error}: change the spec to have a new plan made") from error
        await ctx.decide(plans.advance(plan, done, now=now, **reached))
    if len(done) < len(plan["tasks"]):
        open_tasks = (task for task in plan["tasks"] if task["status"] != "Complete" and task["id"] not in done)
        task = next(open_tasks, plan["tasks"][-1])
        # The same words from every replica: what differed would be written in turns.
        said = f"plan {plan['id']} is being carried out: {task['type']} {awaited(obj, task, ctx)}"
        raise fl.Wait("PlanActive", said, after=plans.TAKEOVER)


def awaited(obj: fl.Object, task: dict[str, Any], view: fl.ReadContext) -> str:
    """What a task waits for, and where to look when it does not come."""
    match task["type"]:
        case "bootstrap":
            job = job_name(obj, task)
            return f"waits for Job {job}: see kubectl describe job {job}"
        case "await-rollout":
            return f"waits for StatefulSet {obj.name}: see kubectl describe statefulset {obj.name}"
        case "await-nodes":
            image = obj.spec["template"]["spec"]["image"]
            for ordinal in range(obj.spec["replicas"]):
                node = view.get(SeiNode, f"{obj.name}-{ordinal}")
                if node is None or not _runs(node, image):
                    return f"waits for SeiNode {obj.name}-{ordinal}: see its condition Ready"
    return "comes next"


def _runs(node: fl.Object, image: str) -> bool:
    return node.is_true("Ready") and node.status.get("currentImage") == image


if __name__ == "__main__":
    op.main()
