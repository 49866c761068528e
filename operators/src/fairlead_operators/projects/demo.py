"""The test bed: projects made at once, woken again and again by their warehouses, beside a GitOps tool."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack, suppress

import fairlead as fl
from fairlead.api.errors import AlreadyExists
from fairlead.cache import Cache, Change
from fairlead.client.client import Client, PatchType
from fairlead.testing.demo.demo_run import DemoRun, Variant, limit_concurrency
from fairlead_operators import crds
from fairlead_operators.projects import gitops, legacy
from fairlead_operators.projects.controller import op
from fairlead_operators.projects.kinds import Project, Warehouse
from fairlead_operators.projects.rbac import READ_SECRETS, SYSTEM_BINDINGS

SCALE = 25
PASSES = 20


async def install(client: Client, system: str, labels: Mapping[str, str] | None = None) -> None:
    """CRDs, the system's namespace, and the ClusterRoles that come with it."""
    await crds.install(client, __package__, labels)
    secrets = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}]
    roles = [fl.ClusterRole(name, rules=secrets, labels=labels) for name in (*SYSTEM_BINDINGS, READ_SECRETS)]
    for obj in (fl.Namespace(system), *roles):
        try:
            await client.create(obj)
        except AlreadyExists:
            continue


class Losses:
    """What others wrote, and is there no more."""

    def __init__(self, run: DemoRun) -> None:
        self.run = run

    def see(self, change: Change) -> None:
        if change.old is None or change.new is None:
            return
        old, new = change.old.object(), change.new.object()
        if gitops.LABEL in old.labels and gitops.LABEL not in new.labels:
            self.run.record_loss(f"label {gitops.LABEL} of RoleBinding {new.namespace}/{new.name}")
        if new.kind == "Role" and old.get("rules") == gitops.EDITED != new.get("rules"):
            self.run.record_loss(f"rules of Role {new.namespace}/{new.name}")


class Reports:
    """Which projects have yet to tell of their warehouse's health as it is now: each such report is a pass."""

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        self._healthy = 0
        self._all = asyncio.Event()

    def expect(self, names: Iterable[str], healthy: int) -> None:
        self._waiting, self._healthy = {*names}, healthy
        self._all.clear()

    def see(self, change: Change) -> None:
        if change.new is None or change.name not in self._waiting:
            return
        stats = change.new.object().status.get("stats") or {}
        if (stats.get("warehouses") or {}).get("healthy") == self._healthy:
            self._waiting.discard(change.name)
            if not self._waiting:
                self._all.set()

    async def all(self, patience: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._all.wait()


async def play(run: DemoRun, variant: Variant, scale: int, passes: int = PASSES) -> None:
    """Make so many projects, then wake each so many times; done is Ready, lost is what the GitOps tool wrote."""
    admin, world, system = run.admin, run.world, f"{run.namespace}-kargo"
    await install(admin, system, run.labels)
    losses, reports = Losses(run), Reports()
    pause = run.grace_period / 30  # at least, between two changes of a warehouse's health: ten seconds
    names = [f"{run.namespace}-project-{i}" for i in range(scale)]
    async with AsyncExitStack() as stack:
        if variant == "new":
            running = run.record_reconciles(op).running(run.transport("operator"), world, resources={"system": system})
            await stack.enter_async_context(running)
        else:
            client = run.client("operator")
            own = {Project: run.selector}
            await stack.enter_async_context(
                legacy.running(client, world, system=system, labels=own, seen=run.reconcile_recorder())
            )
        cache = await stack.enter_async_context(Cache(admin, world))
        for kind in (fl.RoleBinding, fl.Role):
            cache.watch(kind).subscribe(losses.see)
        view = cache.watch(Project)
        view.subscribe(lambda change: _ready(change, run))
        view.subscribe(reports.see)
        await view.synced()
        await run.start(names)
        await asyncio.gather(
            *map(limit_concurrency(admin.create), (Project(name, labels=run.labels) for name in names))
        )
        await run.wait_until_done()
        await stack.enter_async_context(gitops.running(run.client("gitops")))
        made = [name for name in names if name not in run.stuck]
        await asyncio.gather(
            *map(limit_concurrency(admin.create), (Warehouse("images", name, spec={}) for name in made))
        )
        for number in range(passes - 1):  # the first pass was the one that made them
            await asyncio.sleep(pause)
            health = {"status": {"health": {"status": ("Healthy", "Unhealthy")[number % 2]}}}
            reports.expect(made, healthy=1 - number % 2)
            for name in made:
                await admin.patch(Warehouse, "images", name, health, type=PatchType.MERGE, subresource="status")
            await reports.all(run.grace_period)
        await asyncio.sleep(pause)


def _ready(change: Change, run: DemoRun) -> None:
    if change.new is not None and change.new.object().is_true("Ready"):
        run.mark_done(change.name)
