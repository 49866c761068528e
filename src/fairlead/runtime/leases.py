"""Leader election by Lease: at most one process leads, up to a bound that is stated and no further.

The holder counts its lease from the moment it *sent* its last renewal, everyone else from the moment they *saw* it,
each by a clock of their own that counts suspend. So the holder's lease ends first, by a margin that covers clocks
which run at slightly different rates. What the margin cannot cover: see `transports.Fenced`.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

from fairlead.api import builtin
from fairlead.api.errors import AlreadyExists, ApiError, Conflict, NotFound, UnknownOutcome
from fairlead.api.objects import Object
from fairlead.api.times import rfc3339_micro
from fairlead.api.world import World
from fairlead.client.client import Client

log = logging.getLogger("fairlead.lease")


class LeaseLost(Exception):
    """Another process may lead by now. Whatever was under way has been stopped; start over or exit."""


class Lease:
    """One candidate for one Lease object: `await acquire()`, `await keep()` until it answers, `await release()`."""

    # 15 s and 2 s are what every controller uses, so a successor is as late as people expect. The last third of the
    # duration is margin: no write is sent in it and none that was sent earlier may still be waiting for an answer.
    def __init__(
        self,
        client: Client,
        world: World,
        name: str,
        namespace: str,
        identity: str,
        *,
        duration: float = 15.0,
        retry: float = 2.0,
        slow: Callable[[], object] = lambda: None,  # told of each renewal that has to read first
    ) -> None:
        self._slow = slow
        self.name, self.namespace, self.identity = name, namespace, identity
        self._client = client
        self._world = world
        self._duration = duration
        self._retry = retry
        self._margin = duration / 3
        self._until = float("-inf")  # held until then, less the margin taken off already
        self._ours: Object | None = None  # the lease as our last write left it
        self._sent = False  # a write of ours, so that the lease may be ours
        self._seen: tuple[Any, ...] | None = None  # someone else's lease, and
        self._seen_at = 0.0  # when it was first seen so

    def left(self) -> float:
        """Seconds for which the lease is surely held; not above 0 when it may not be."""
        return self._until - self._world.clock.monotonic()

    async def acquire(self) -> None:
        """Wait until this process leads."""
        told = None
        while not await self._try():
            if self._seen and self._seen[0] != told:
                told = self._seen[0]
                log.info("standing by: %s leads by lease %s/%s", told, self.namespace, self.name)
            await asyncio.sleep(self._retry * self._world.random.uniform(1.0, 1.2))
        log.info("leading as %s by lease %s/%s", self.identity, self.namespace, self.name)

    async def keep(self) -> None:
        """Renew for as long as it goes; answers when the lease is not surely held any more."""
        while True:
            await asyncio.sleep(min(self._retry, max(0.0, self.left())))
            # a renewal that meets somebody's edit of the lease is tried again at once, on what is there now
            while self.left() > 0 and not await self._try():
                if self._seen is not None:
                    self._until = float("-inf")
                    log.error("lost lease %s/%s to %s", self.namespace, self.name, self._seen[0])
                    return
                await asyncio.sleep(min(self._retry / 4, max(0.0, self.left())))
            if self.left() <= 0:
                log.error("lost lease %s/%s: could not renew it in time", self.namespace, self.name)
                return

    async def release(self) -> None:
        """Let the next one in at once. Only for a process that has stopped writing; failures are only logged."""
        self._until = float("-inf")
        if not self._sent:
            return
        try:
            async with asyncio.timeout(self._margin):
                # as it is now: a renewal that was on its way when it was cancelled may have arrived, or arrive yet
                while (lease := await self._read()) is not None and lease.spec.get("holderIdentity") == self.identity:
                    spec = {**lease.spec, "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._now()}
                    with contextlib.suppress(Conflict):
                        await self._client.replace(Object(lease | {"spec": spec}))
                        return
        except (ApiError, UnknownOutcome, OSError, TimeoutError) as error:
            log.warning("could not release lease %s/%s, it will run out: %s", self.namespace, self.name, error)

    async def _try(self) -> bool:
        """Take or renew it, once. A failure of any kind leaves what is held as it was."""
        held = self.left()
        try:
            async with asyncio.timeout(held if held > 0 else self._duration):
                if self._ours is None and held > 0:
                    self._slow()
                return await self._write(self._ours or await self._read())
        except (Conflict, AlreadyExists, NotFound):
            self._ours = None  # look before the next try
        except (ApiError, UnknownOutcome, OSError, TimeoutError) as error:
            self._ours = None
            log.warning("could not reach lease %s/%s: %s", self.namespace, self.name, error)
        return False

    async def _read(self) -> Object | None:
        try:
            return await self._client.get(builtin.Lease, self.name, self.namespace)
        except NotFound:
            return None

    async def _write(self, lease: Object | None) -> bool:
        if lease is not None and not self._free(lease):
            return False
        spec = lease.spec if lease is not None else {}
        renewed: dict[str, Any] = {
            **spec,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": round(self._duration),
            "renewTime": self._now(),
        }
        if spec.get("holderIdentity") != self.identity:
            renewed["acquireTime"] = renewed["renewTime"]
            renewed["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + (lease is not None)
        sent, self._sent = self._world.clock.monotonic(), True
        if lease is None:
            self._ours = await self._client.create(builtin.Lease(self.name, self.namespace, spec=renewed))
        else:
            self._ours = await self._client.replace(Object(lease | {"spec": renewed}))
        self._seen = None
        self._until = sent + self._duration - self._margin
        return True

    def _free(self, lease: Object) -> bool:
        """Ours, nobody's, or not renewed for as long as its holder promised, by our own clock."""
        spec = lease.spec
        holder = spec.get("holderIdentity")
        if not holder or holder == self.identity:
            return True
        now = self._world.clock.monotonic()
        seen = (holder, spec.get("renewTime"), spec.get("leaseTransitions"), lease.uid)
        if seen != self._seen:
            self._seen, self._seen_at = seen, now
        return now - self._seen_at > float(spec.get("leaseDurationSeconds") or self._duration)

    def _now(self) -> str:
        return rfc3339_micro(self._world.clock.now())
