"""Leader election by Lease: at most one process is the leader, within the limits stated here.

The leader counts its lease from the moment it *sent* its last renewal. Every other process counts from the moment it
*saw* the renewal. Each uses its own clock, which also counts time in suspend. So the leader's lease ends first, by a
margin that covers clocks of slightly different speed. `transports.FencedTransport` says what the margin cannot cover.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from fairlead.api import builtin
from fairlead.api.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound, UnknownOutcome
from fairlead.api.objects import Object
from fairlead.api.times import rfc3339_micro
from fairlead.api.world import World
from fairlead.client.client import Client

log = logging.getLogger("fairlead.lease")


class LeaseLost(Exception):
    """The lease could not be renewed in time, so another process may be the leader now.

    The run has stopped every pass. Exit the process, or run the operator again to become a candidate.
    """


class Lease:
    """A candidate for leadership by one Lease object. Call `acquire`, then `keep` until it returns, then `release`."""

    # 15 s and 2 s are the values that controllers commonly use, so a failover takes as long as people expect. The last
    # third of the duration is a margin: no write is sent in it, and no earlier write still waits for its answer.
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
        on_slow_renewal: Callable[[], object] = lambda: None,  # called for each renewal that has to read first
    ) -> None:
        self._on_slow_renewal = on_slow_renewal
        self.name, self.namespace, self.identity = name, namespace, identity
        self._client = client
        self._world = world
        self._duration = duration
        self._retry = retry
        self._margin = duration / 3
        self._until = float("-inf")  # the end of the lease, minus the margin
        self._ours: Object | None = None  # the lease as our last write stored it
        self._sent = False  # whether we ever sent a write, so that the lease may be ours
        self._seen: tuple[Any, ...] | None = None  # the lease of another holder
        self._seen_until = 0.0  # the end of that lease by our own clock, counted from when `_seen` was first read
        # Numbers of foreign changes of the lease: those that the watch reported, and those before our last write.
        # While they differ, the lease may not be ours.
        self._changes = self._changes_before_write = 0
        self._changed = asyncio.Event()

    def seconds_left(self) -> float:
        """Return the seconds for which this process certainly holds the lease, or 0 or less if that is uncertain."""
        if self._changes != self._changes_before_write:
            return 0.0
        return self._renewal_seconds_left()

    def _renewal_seconds_left(self) -> float:
        """Return the seconds in which a renewal is in time, also while it is uncertain who holds the lease."""
        return self._until - self._world.clock.monotonic()

    async def acquire(self) -> None:
        """Wait until this process holds the lease."""
        logged_holder = None
        while not await self._try():
            if self._seen and self._seen[0] != logged_holder:
                logged_holder = self._seen[0]
                log.info("standby: %s holds lease %s/%s", logged_holder, self.namespace, self.name)
            await asyncio.sleep(self._retry * self._world.random.uniform(1.0, 1.2))
        log.info("this process (%s) is the leader: it holds lease %s/%s", self.identity, self.namespace, self.name)

    async def keep(self) -> None:
        """Renew the lease periodically. Return when this process may not hold the lease any more.

        A watch notices at once if somebody else changes the holder or deletes the lease. Then no write is sent until
        this process has written the lease again. Without the right to watch leases, the next renewal notices it.
        """
        watch = asyncio.create_task(self._watch_for_foreign_changes())
        try:
            await self._renew_until_lost()
        finally:
            watch.cancel()
            await asyncio.wait([watch])

    async def _renew_until_lost(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(self._retry, max(0.0, self._renewal_seconds_left()))):
                    await self._changed.wait()
                    self._ours = None  # Read the lease first.
            self._changed.clear()
            # A renewal that conflicts with an edit of the lease is retried on the current object.
            is_first = True
            while self._renewal_seconds_left() > 0 and not await self._try():
                if self._seen is not None:
                    self._until = float("-inf")
                    log.error("lost lease %s/%s to %s", self.namespace, self.name, self._seen[0])
                    return
                if not is_first:
                    await asyncio.sleep(min(self._retry / 4, max(0.0, self._renewal_seconds_left())))
                is_first = False
            if self._renewal_seconds_left() <= 0:
                log.error("lost lease %s/%s: it was not renewed in time", self.namespace, self.name)
                return

    async def _watch_for_foreign_changes(self) -> None:
        """Count the changes after which the lease is not ours: another holder, or a deletion."""
        while True:
            try:
                async with self._client.watch(
                    builtin.Lease, self.namespace, fields=f"metadata.name={self.name}"
                ) as watch:
                    async for event, raw in watch:
                        if event == "BOOKMARK":
                            continue
                        lease = Object(msgspec.json.decode(raw))
                        if event == "DELETED" or lease.spec.get("holderIdentity") != self.identity:
                            self._changes += 1
                            self._changed.set()
            except Forbidden as error:
                log.info("cannot watch lease %s/%s, so each renewal reads it: %s", self.namespace, self.name, error)
                return
            except (ApiError, OSError, msgspec.DecodeError) as error:
                log.debug("the watch of lease %s/%s ended: %s", self.namespace, self.name, error)
            await asyncio.sleep(self._retry)

    async def release(self) -> None:
        """Release the lease, so that the next leader can start immediately. Failures are logged.

        Call it only after the last write of this process.
        """
        self._until = float("-inf")
        if not self._sent:
            return
        try:
            async with asyncio.timeout(self._margin):
                # Read it now: a renewal that was cancelled may have arrived, or may still arrive.
                while (lease := await self._read()) is not None and lease.spec.get("holderIdentity") == self.identity:
                    spec = {**lease.spec, "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._now()}
                    with contextlib.suppress(Conflict):
                        await self._client.replace(Object(lease | {"spec": spec}))
                        return
        except (ApiError, UnknownOutcome, OSError, TimeoutError) as error:
            log.warning("cannot release lease %s/%s, so it will expire: %s", self.namespace, self.name, error)

    async def _try(self) -> bool:
        """Try once to acquire or renew the lease, and return whether that succeeded."""
        seconds_left = self._renewal_seconds_left()
        try:
            async with asyncio.timeout(seconds_left if seconds_left > 0 else self._duration):
                if self._ours is None and seconds_left > 0:
                    self._on_slow_renewal()
                return await self._write(self._ours or await self._read())
        except (Conflict, AlreadyExists, NotFound):
            self._ours = None  # Read the lease before the next attempt.
        except (ApiError, UnknownOutcome, OSError, TimeoutError) as error:
            self._ours = None
            log.warning("cannot read or write lease %s/%s: %s", self.namespace, self.name, error)
        return False

    async def _read(self) -> Object | None:
        try:
            return await self._client.get(builtin.Lease, self.name, self.namespace)
        except NotFound:
            return None

    async def _write(self, lease: Object | None) -> bool:
        if not (self._is_free(lease) if lease is not None else self._can_create()):
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
        sent, self._sent, changes = self._world.clock.monotonic(), True, self._changes
        if lease is None:
            self._ours = await self._client.create(builtin.Lease(self.name, self.namespace, spec=renewed))
        else:
            self._ours = await self._client.replace(Object(lease | {"spec": renewed}))
        self._seen = None
        self._until = sent + self._duration - self._margin
        self._changes_before_write = changes
        return True

    def _can_create(self) -> bool:
        """Return whether a missing lease may be created: not as long as a holder that we saw may still write."""
        return self._seen is None or self._world.clock.monotonic() > self._seen_until

    def _is_free(self, lease: Object) -> bool:
        """Return whether the lease is ours, has no holder, or was not renewed for its duration by our own clock."""
        spec = lease.spec
        holder = spec.get("holderIdentity")
        if not holder or holder == self.identity:
            return True
        now = self._world.clock.monotonic()
        seen = (holder, spec.get("renewTime"), spec.get("leaseTransitions"), lease.uid)
        if seen != self._seen:
            self._seen, self._seen_until = seen, now + float(spec.get("leaseDurationSeconds") or self._duration)
        return now > self._seen_until

    def _now(self) -> str:
        return rfc3339_micro(self._world.clock.now())
