"""The second writer: a GitOps re-syncer, which writes each object over and over and holds it until its hook has run."""

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
EVERY = 3.0
"""Seconds between two syncs: as impatient as people set it while they wait."""
HOOK = 1.0
"""Seconds that the hook takes after a deletion."""


class Resyncer:
    """Keeps the objects of one kind as they stand in git.

    Writes by apply under its own field manager, so that it takes nothing from others. Whoever writes a cached copy over
    its writes takes its finalizer; it notes what vanished that way.
    """

    def __init__(self, client: Client, world: fl.World, kind: fl.Kind, namespace: str) -> None:
        self._client = client
        self._kind = kind
        self._cache = Cache(client, world)
        self._view = self._cache.watch(kind, namespaces=[namespace])
        self._git: dict[str, fl.Object] = {}
        self._revision = 0
        self._waiting: dict[str, str] = {}  # hooks that are still to run, by uid
        self.lost: list[str] = []
        """What vanished, or lost the hook, before the hook had run."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Resyncer"]:
        self._view.subscribe(self._see)
        async with self._cache:
            await self._view.synced()
            again = asyncio.create_task(self._again())
            try:
                yield self
            finally:
                again.cancel()
                await asyncio.gather(again, return_exceptions=True)

    async def commit(self, objects: Iterable[fl.Object]) -> None:
        """Into git, and into the cluster: first the object, then the hook on it."""
        self._git.update({obj.name: obj for obj in objects})
        await asyncio.gather(*(self._write(obj, []) for obj in self._git.values()))
        await self._sync()

    async def prune(self) -> None:
        """Out of git, and out of the cluster; each is let go when its hook has run."""
        gone, self._git = list(self._git.values()), {}
        await asyncio.gather(*(self._prune(obj) for obj in gone))

    async def _prune(self, obj: fl.Object) -> None:
        try:
            await self._client.delete(self._kind, obj.name, obj.namespace)
            await self._write(obj, [FINALIZER])  # says what it is doing
            await asyncio.sleep(HOOK)
            live = await self._client.get(self._kind, obj.name, obj.namespace)
            self._waiting.pop(live.uid, None)
            await self._write(obj, [])
        except NotFound:
            pass

    async def _again(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            await self._sync()

    async def _sync(self) -> None:
        self._revision += 1
        await asyncio.gather(*(self._write(obj, [FINALIZER]) for obj in self._git.values()))

    async def _write(self, obj: fl.Object, finalizers: list[str]) -> None:
        metadata = {**obj.metadata, "annotations": {REVISION: str(self._revision)}, "finalizers": finalizers}
        try:
            live = await self._client.apply(fl.Object({**obj, "metadata": metadata}), field_manager=MANAGER)
        except (Conflict, Invalid):  # on its way out, without the hook on it
            return
        if finalizers:
            self._waiting[live.uid] = obj.name

    def _see(self, change: Change) -> None:
        if change.old is None or change.old.uid not in self._waiting or change.name in self.lost:
            return
        had = FINALIZER in change.old.object().finalizers
        if change.new is None or (had and FINALIZER not in change.new.object().finalizers):
            self.lost.append(change.name)
