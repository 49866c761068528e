"""The demo of the Pulsar operator: a GitOps tool creates, applies and deletes tenants that have a deletion hook."""

import asyncio
from contextlib import AsyncExitStack

from fairlead.cache import Cache, Change
from fairlead.testing.demo.demo_run import TIMEOUT, DemoRun, Variant
from fairlead_operators import crds
from fairlead_operators.pulsar import legacy
from fairlead_operators.pulsar.controller import op
from fairlead_operators.pulsar.fake_pulsar import CLUSTER, FakePulsar
from fairlead_operators.pulsar.gitops import Resyncer
from fairlead_operators.pulsar.kinds import Connection, Tenant

SCALE = 25


async def play(run: DemoRun, variant: Variant, scale: int, finalizer_write: str = "put") -> None:
    """Create `scale` tenants, wait until they are ready, and delete them. A tenant is done when it is deleted.

    A loss is a tenant that was deleted before its hook had run. `finalizer_write` selects how the legacy operator
    writes its finalizer.
    """
    admin, world, namespace = run.admin, run.world, run.namespace
    await crds.install(admin, __package__, run.labels)
    pulsar, names = FakePulsar(), [f"tenant-{i}" for i in range(scale)]
    async with AsyncExitStack() as stack:
        if variant == "new":
            new = run.record_reconciles(op).running(
                run.transport("operator"), world, namespaces=[namespace], resources={"http": pulsar}
            )
            await stack.enter_async_context(new)
        else:
            old = legacy.running(
                run.client("operator"),
                world,
                pulsar,
                write=legacy.FINALIZER_WRITES[finalizer_write],
                namespace=namespace,
                on_reconcile=run.reconcile_recorder(),
            )
            await stack.enter_async_context(old)
        resyncer = Resyncer(run.client("gitops"), world, Tenant, namespace)
        await stack.enter_async_context(resyncer.running())
        cache = await stack.enter_async_context(Cache(admin, world))
        ready_names: set[str] = set()
        all_ready = asyncio.Event()

        def on_change(change: Change) -> None:
            if change.new is None:
                run.mark_done(change.name)
            elif change.new.object().is_true("Ready"):
                ready_names.add(change.name)
                if len(ready_names) == scale:
                    all_ready.set()

        tenants = cache.watch(Tenant, namespaces=[namespace])
        tenants.subscribe(on_change)
        await tenants.wait_for_sync()
        spec = {"adminServiceURL": "http://pulsar.invalid:8080", "clusterName": CLUSTER}
        await admin.create(Connection("pulsar", namespace, spec=spec))
        await run.start(names)
        reference = {"connectionRef": {"name": "pulsar"}}
        await resyncer.commit(Tenant(name, namespace, spec={"name": name, **reference}) for name in names)
        try:
            async with asyncio.timeout(TIMEOUT):
                await all_ready.wait()
        except TimeoutError:
            return
        await resyncer.prune()
        await run.wait_until_done()
        for name in resyncer.lost:
            run.record_loss(f"the hook of PulsarTenant {name}")
