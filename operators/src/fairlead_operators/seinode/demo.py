"""The demo of the Sei operator: nodes are created while two replicas of the operator run.

The replicas have no leader election, as during a rolling update or a network partition. The incident happened in one
process with a stale cache. With a second replica, the same race happens often.
"""

import asyncio
from contextlib import AsyncExitStack

import fairlead as fl
from fairlead.cache import Cache, Change
from fairlead.testing.demo.demo_run import DemoRun, Variant, limit_concurrency
from fairlead_operators import crds
from fairlead_operators.seinode import legacy, simulated_cluster
from fairlead_operators.seinode.controller import op
from fairlead_operators.seinode.kinds import SeiNode

SCALE = 25


def make_node(name: str, namespace: str | None = None, **spec: object) -> fl.Object:
    """Return a SeiNode of the mode fullNode. `spec` replaces fields of its spec."""
    return SeiNode(name, namespace, spec={"chainId": "pacific-1", "image": "sei:1", "fullNode": {}, **spec})


class PlanHistory:
    """Records each active plan that was replaced by another plan, and marks running nodes as done."""

    def __init__(self, run: DemoRun) -> None:
        self.run = run
        self.plans: dict[str, list[str]] = {}
        self._active: dict[str, str] = {}

    def on_change(self, change: Change) -> None:
        if change.new is None:
            return
        node = change.new.object()
        plan = node.status.get("plan")
        if plan:
            plans = self.plans.setdefault(node.name, [])
            if plan["id"] not in plans:
                plans.append(plan["id"])
                if node.name in self._active:
                    self.run.record_loss(f"plan {self._active[node.name]} of {node.name}")
            if plan["phase"] == "Active":
                self._active[node.name] = plan["id"]
            else:
                self._active.pop(node.name, None)
        if node.status.get("phase") == "Running" and node.status.get("currentImage") == node.spec["image"]:
            self.run.mark_done(node.name)


async def play(run: DemoRun, variant: Variant, scale: int) -> None:
    """Create `scale` nodes at the same time. A node is done when it is running.

    A loss is an active plan that was replaced by another plan, or a Job of such a plan.
    """
    admin, world, namespace = run.admin, run.world, run.namespace
    await crds.install(admin, __package__, run.labels)
    history = PlanHistory(run)
    async with AsyncExitStack() as stack:
        cluster = simulated_cluster.running(run.client("cluster"), world, namespace=namespace)
        await stack.enter_async_context(cluster)
        for replica in ("replica-1", "replica-2"):
            if variant == "new":
                operator = run.record_reconciles(op, replica)
                new = operator.running(run.transport(replica), world, namespaces=[namespace])
                await stack.enter_async_context(new)
            else:
                client, recorder = run.client(replica), run.reconcile_recorder(replica)
                old = legacy.run_node_controller(client, world, namespace=namespace, on_reconcile=recorder)
                await stack.enter_async_context(old)
        cache = await stack.enter_async_context(Cache(admin, world))
        nodes = cache.watch(SeiNode, namespaces=[namespace])
        nodes.subscribe(history.on_change)
        await nodes.wait_for_sync()
        names = [f"node-{i}" for i in range(scale)]
        await run.start(names)
        create = limit_concurrency(admin.create)
        await asyncio.gather(*(create(make_node(name, namespace)) for name in names))
        await run.wait_until_done()
        await run.record_idle_time()
    final = (await admin.list(SeiNode, namespace)).items
    task_ids = {task["id"][:8] for node in final for task in node.status["plan"]["tasks"]}
    for job in (await admin.list(fl.Job, namespace)).items:
        if job.name.rpartition("-")[2] not in task_ids:
            run.record_loss(f"Job {job.name}, whose plan was replaced")
