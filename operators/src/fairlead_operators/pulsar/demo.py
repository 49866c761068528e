"""The test bed: tenants that a GitOps re-syncer makes, writes to again and again, and takes away, a hook on each."""

import asyncio
from contextlib import AsyncExitStack

from fairlead.cache import Cache, Change
from fairlead.testing.demo.demo_run import TIMEOUT, DemoRun, Variant
from fairlead_operators import crds
from fairlead_operators.pulsar import legacy
from fairlead_operators.pulsar.controller import op
from fairlead_operators.pulsar.gitops import Resyncer
from fairlead_operators.pulsar.resources import Connection, Tenant
from fairlead_operators.pulsar.standin import CLUSTER, StandIn

SCALE = 25


async def play(run: DemoRun, variant: Variant, scale: int, form: str = "put") -> None:
    """Make so many tenants, wait until they are ready, delete them; done is gone, lost is gone before the hook has run.

    `form` is the way in which the old operator writes its finalizer.
    """
    admin, world, namespace = run.admin, run.world, run.namespace
    await crds.install(admin, __package__, run.labels)
    pulsar, names = StandIn(), [f"tenant-{i}" for i in range(scale)]
    async with AsyncExitStack() as stack:
        if variant == "new":
            running = run.record_reconciles(op).running(
                run.transport("operator"), world, namespaces=[namespace], resources={"http": pulsar}
            )
            await stack.enter_async_context(running)
        else:
            client, write = run.client("operator"), legacy.FORMS[form]
            old = legacy.running(client, world, pulsar, form=write, namespace=namespace, seen=run.reconcile_recorder())
            await stack.enter_async_context(old)
        resyncer = Resyncer(run.client("gitops"), world, Tenant, namespace)
        await stack.enter_async_context(resyncer.running())
        cache = await stack.enter_async_context(Cache(admin, world))
        made: set[str] = set()
        all_made = asyncio.Event()

        def see(change: Change) -> None:
            if change.new is None:
                run.mark_done(change.name)
            elif change.new.object().is_true("Ready"):
                made.add(change.name)
                if len(made) == scale:
                    all_made.set()

        view = cache.watch(Tenant, namespaces=[namespace])
        view.subscribe(see)
        await view.synced()
        spec = {"adminServiceURL": "http://pulsar.invalid:8080", "clusterName": CLUSTER}
        await admin.create(Connection("pulsar", namespace, spec=spec))
        await run.start(names)
        ref = {"connectionRef": {"name": "pulsar"}}
        await resyncer.commit(Tenant(name, namespace, spec={"name": name, **ref}) for name in names)
        try:
            async with asyncio.timeout(TIMEOUT):
                await all_made.wait()
        except TimeoutError:
            return
        await resyncer.prune()
        await run.wait_until_done()
        for name in resyncer.lost:
            run.record_loss(f"the hook of PulsarTenant {name}")
