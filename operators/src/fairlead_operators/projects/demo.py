"""The demo of the Project operator: many reconciles of projects while a GitOps tool writes the same objects."""

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
RECONCILES = 20
"""How often each project is reconciled: the health of its warehouse changes, and its status has to follow."""


async def install(client: Client, system: str, labels: Mapping[str, str] | None = None) -> None:
    """Install the CRDs, the system namespace and the ClusterRoles of Kargo."""
    await crds.install(client, __package__, labels)
    secrets = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}]
    roles = [fl.ClusterRole(name, rules=secrets, labels=labels) for name in (*SYSTEM_BINDINGS, READ_SECRETS)]
    for obj in (fl.Namespace(system), *roles):
        try:
            await client.create(obj)
        except AlreadyExists:
            continue


class LossDetector:
    """Records each label and rule of the GitOps tool that disappears from an object."""

    def __init__(self, run: DemoRun) -> None:
        self.run = run

    def on_change(self, change: Change) -> None:
        if change.old is None or change.new is None:
            return
        old, new = change.old.object(), change.new.object()
        if gitops.LABEL in old.labels and gitops.LABEL not in new.labels:
            self.run.record_loss(f"label {gitops.LABEL} of RoleBinding {new.namespace}/{new.name}")
        if new.kind == "Role" and old.get("rules") == gitops.EDITED != new.get("rules"):
            self.run.record_loss(f"rules of Role {new.namespace}/{new.name}")


class HealthReports:
    """Waits until the status of all projects shows the current health of their warehouse."""

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        self._healthy = 0
        self._all_reported = asyncio.Event()

    def expect(self, names: Iterable[str], healthy: int) -> None:
        """Expect that the status of each of these projects reports `healthy` healthy warehouses."""
        self._waiting, self._healthy = {*names}, healthy
        self._all_reported.clear()

    def on_change(self, change: Change) -> None:
        if change.new is None or change.name not in self._waiting:
            return
        stats = change.new.object().status.get("stats") or {}
        if (stats.get("warehouses") or {}).get("healthy") == self._healthy:
            self._waiting.discard(change.name)
            if not self._waiting:
                self._all_reported.set()

    async def wait_for_all(self, seconds: float) -> None:
        """Wait until all projects have reported the expected number, at most `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._all_reported.wait()


async def play(run: DemoRun, variant: Variant, scale: int, reconciles: int = RECONCILES) -> None:
    """Create `scale` projects, then trigger more reconciles of each. A project is done when it is Ready.

    A loss is a label or a rule of the GitOps tool that the operator overwrote.
    """
    admin, world, system = run.admin, run.world, f"{run.namespace}-kargo"
    await install(admin, system, run.labels)
    losses, reports = LossDetector(run), HealthReports()
    pause = run.grace_period / 30  # at least ten seconds between two changes of a warehouse's health
    names = [f"{run.namespace}-project-{i}" for i in range(scale)]
    async with AsyncExitStack() as stack:
        if variant == "new":
            new = run.record_reconciles(op).running(run.transport("operator"), world, resources={"system": system})
            await stack.enter_async_context(new)
        else:
            client, labels, recorder = run.client("operator"), {Project: run.selector}, run.reconcile_recorder()
            old = legacy.running(client, world, system=system, labels=labels, on_reconcile=recorder)
            await stack.enter_async_context(old)
        cache = await stack.enter_async_context(Cache(admin, world))
        for kind in (fl.RoleBinding, fl.Role):
            cache.watch(kind).subscribe(losses.on_change)
        projects = cache.watch(Project)
        projects.subscribe(lambda change: _mark_if_ready(change, run))
        projects.subscribe(reports.on_change)
        await projects.wait_for_sync()
        await run.start(names)
        create = limit_concurrency(admin.create)
        await asyncio.gather(*(create(Project(name, labels=run.labels)) for name in names))
        await run.wait_until_done()
        await stack.enter_async_context(gitops.running(run.client("gitops")))
        ready_names = [name for name in names if name not in run.stuck]
        create = limit_concurrency(admin.create)
        await asyncio.gather(*(create(Warehouse("images", name, spec={})) for name in ready_names))
        for number in range(reconciles - 1):  # the first reconcile created the projects' objects
            await asyncio.sleep(pause)
            health = {"status": {"health": {"status": ("Healthy", "Unhealthy")[number % 2]}}}
            reports.expect(ready_names, healthy=1 - number % 2)
            for name in ready_names:
                await admin.patch(Warehouse, "images", name, health, type=PatchType.MERGE, subresource="status")
            await reports.wait_for_all(run.grace_period)
        await asyncio.sleep(pause)


def _mark_if_ready(change: Change, run: DemoRun) -> None:
    if change.new is not None and change.new.object().is_true("Ready"):
        run.mark_done(change.name)
