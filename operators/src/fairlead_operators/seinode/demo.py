"""The test bed: nodes made at once, two replicas of the operator, and a cluster in which Jobs and rollouts take time.

Two replicas without leader election: a rolling update, or a network that lies about leases. What must hold then holds
for one replica with a stale cache as well, which is how the incident came about.
"""

import asyncio
from contextlib import AsyncExitStack

import fairlead as fl
from fairlead.cache import Cache, Change
from fairlead.testing.demo.demo_run import DemoRun, Variant, limit_concurrency
from fairlead_operators import crds
from fairlead_operators.seinode import kubelet, legacy
from fairlead_operators.seinode.controller import op
from fairlead_operators.seinode.kinds import SeiNode

SCALE = 25


def a_node(name: str, namespace: str | None = None, **spec: object) -> fl.Object:
    """A full node, unless `spec` says otherwise."""
    return SeiNode(name, namespace, spec={"chainId": "pacific-1", "image": "sei:1", "fullNode": {}, **spec})


class Ledger:
    """Every plan that was ever persisted, and each that another replaced before it was over."""

    def __init__(self, run: DemoRun) -> None:
        self.run = run
        self.plans: dict[str, list[str]] = {}
        self._active: dict[str, str] = {}

    def see(self, change: Change) -> None:
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
    """Create so many nodes at once; done is Running, lost is a plan that another replaced or a Job of such a plan."""
    admin, world, where = run.admin, run.world, run.namespace
    await crds.install(admin, __package__, run.labels)
    ledger = Ledger(run)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(kubelet.running(run.client("cluster"), world, namespace=where))
        for replica in ("replica-1", "replica-2"):
            if variant == "new":
                running = run.record_reconciles(op, replica).running(run.transport(replica), world, namespaces=[where])
                await stack.enter_async_context(running)
            else:
                client, seen = run.client(replica), run.reconcile_recorder(replica)
                await stack.enter_async_context(legacy.nodes(client, world, namespace=where, seen=seen))
        cache = await stack.enter_async_context(Cache(admin, world))
        view = cache.watch(SeiNode, namespaces=[where])
        view.subscribe(ledger.see)
        await view.synced()
        names = [f"node-{i}" for i in range(scale)]
        await run.start(names)
        await asyncio.gather(*map(limit_concurrency(admin.create), (a_node(name, where) for name in names)))
        await run.wait_until_done()
        await run.record_idle_time()
    nodes = (await admin.list(SeiNode, where)).items
    tasks = {task["id"][:8] for node in nodes for task in node.status["plan"]["tasks"]}
    for job in (await admin.list(fl.Job, where)).items:
        if job.name.rpartition("-")[2] not in tasks:
            run.record_loss(f"Job {job.name}, submitted for a plan that nobody remembers")
