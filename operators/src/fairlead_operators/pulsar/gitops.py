"""The second writer: a simulated GitOps tool that applies each object every few seconds, with a hook's finalizer."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import fairlead as fl
from fairlead.api.errors import Conflict, Invalid, NotFound
from fairlead.cache import Cache, Change
from fairlead.client.client import Client

MANAGER = "gitops"
FINALIZER = "gitops.example.com/post-delete-hook"
REVISION = "gitops.example.com/revision"
SYNC_INTERVAL = 3.0
"""Seconds between two syncs. People set such short intervals while they wait for a deployment."""
HOOK_DURATION = 1.0
"""Seconds that the hook takes after a deletion."""


class Resyncer:
    """Applies the objects of one kind from git, with its own field manager.

    The tool does not change the fields of other writers. Another writer can remove the finalizer of the hook by a PUT
    of a cached copy. `lost` records the objects for which that happened.
    """

    def __init__(self, client: Client, world: fl.World, kind: fl.Kind, namespace: str) -> None:
        self._client = client
        self._kind = kind
        self._cache = Cache(client, world)
        self._objects = self._cache.watch(kind, namespaces=[namespace])
        self._git: dict[str, fl.Object] = {}
        self._revision = 0
        self._waiting: dict[str, str] = {}  # objects whose hook has not run yet, by uid
        self.lost: list[str] = []
        """The objects that were deleted or lost the finalizer before the hook had run."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Resyncer"]:
        """Apply the objects periodically until the `with` block ends."""
        self._objects.subscribe(self._on_change)
        async with self._cache:
            await self._objects.wait_for_sync()
            task = asyncio.create_task(self._sync_forever())
            try:
                yield self
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def commit(self, objects: Iterable[fl.Object]) -> None:
        """Add objects to git and create them in the cluster: first the objects, then the finalizer of the hook."""
        self._git.update({obj.name: obj for obj in objects})
        await asyncio.gather(*(self._write(obj, []) for obj in self._git.values()))
        await self._sync()

    async def prune(self) -> None:
        """Delete all objects from git and from the cluster. Remove each finalizer when the hook has run."""
        objects, self._git = list(self._git.values()), {}
        await asyncio.gather(*(self._prune(obj) for obj in objects))

    async def _prune(self, obj: fl.Object) -> None:
        try:
            await self._client.delete(self._kind, obj.name, obj.namespace)
            await self._write(obj, [FINALIZER])  # reports the start of the hook
            await asyncio.sleep(HOOK_DURATION)
            live = await self._client.get(self._kind, obj.name, obj.namespace)
            self._waiting.pop(live.uid, None)
            await self._write(obj, [])
        except NotFound:
            pass

    async def _sync_forever(self) -> None:
        while True:
            await asyncio.sleep(SYNC_INTERVAL)
            await self._sync()

    async def _sync(self) -> None:
        self._revision += 1
        await asyncio.gather(*(self._write(obj, [FINALIZER]) for obj in self._git.values()))

    async def _write(self, obj: fl.Object, finalizers: list[str]) -> None:
        metadata = {**obj.metadata, "annotations": {REVISION: str(self._revision)}, "finalizers": finalizers}
        try:
            live = await self._client.apply(fl.Object({**obj, "metadata": metadata}), field_manager=MANAGER)
        except (Conflict, Invalid):  # being deleted, without the finalizer
            return
        if finalizers:
            self._waiting[live.uid] = obj.name

    def _on_change(self, change: Change) -> None:
        if change.old is None or change.old.uid not in self._waiting or change.name in self.lost:
            return
        had_hook = FINALIZER in change.old.object().finalizers
        if change.new is None or (had_hook and FINALIZER not in change.new.object().finalizers):
            self.lost.append(change.name)
