"""Tests of a wall clock that jumps or is a day off: timers and leases do not depend on it."""

import asyncio
import contextlib
import itertools
from contextlib import asynccontextmanager

import pytest
from virtual_time import run_in_virtual_time

import fairlead as fl
from fairlead.api.builtin import Event
from fairlead.client.client import Client
from fairlead.runtime.definitions import install_missing
from fairlead.server.app import Server
from fairlead.testing import virtual

Thing = fl.kind("chaos.example.com/v1", "Thing")
DAY = 86400.0
JUMPS = [DAY, -DAY, -365 * DAY, 365 * DAY, -1.0]


class JumpingClock:
    """A clock whose wall-clock time a test can change."""

    def __init__(self, inner, ahead=0.0):
        self._inner, self.ahead = inner, ahead

    def now(self):
        return self._inner.now() + self.ahead

    def monotonic(self):
        return self._inner.monotonic()


class ClockEnvironment:
    """A server, and worlds with independent wall clocks."""

    def __init__(self):
        self.server_clock = JumpingClock(virtual.VirtualClock())
        self.server = Server(fl.World.seeded(self.server_clock, 0))
        self.client = Client(self.server.transport(), virtual.world(), user_agent="others")

        self.seeds = itertools.count(1)  # With the same seed, two operators would have the same identity.

    def world(self, ahead=0.0):
        return fl.World.seeded(JumpingClock(virtual.VirtualClock(), ahead), next(self.seeds))


@asynccontextmanager
async def started_environment():
    environment = ClockEnvironment()
    await install_missing(environment.client, [Thing])
    await environment.client.create(Thing("thing", "default", spec={}))
    yield environment


def operator(log, replica_name):
    op = fl.Operator("tester")

    @op.reconcile(Thing)
    async def reconcile(obj, ctx):
        log.append(replica_name)
        ctx.status(by=replica_name)
        raise fl.RequeueAfter(1.0)

    return op


@pytest.mark.parametrize("off", [DAY, -DAY], ids=["ahead", "behind"])
def test_candidate_with_a_wrong_clock_does_not_take_the_lease(off):
    async def test(environment):
        log = []
        async with operator(log, "holder").running(
            environment.server.transport(), environment.world(), lease_namespace="default"
        ) as holder:
            await asyncio.sleep(5)
            async with operator(log, "candidate").running(
                environment.server.transport(), environment.world(off), lease_namespace="default"
            ) as candidate:
                for _ in range(120):
                    await asyncio.sleep(1)
                    assert holder.lease.seconds_left() > 0
                    assert candidate.lease.seconds_left() <= 0
        assert set(log) == {"holder"}

    run_in_virtual_time(test, started_environment)


async def test_candidate_with_a_clock_a_day_ahead_waits_on_each_server(api):
    log, ahead_world = [], fl.World(clock=JumpingClock(fl.World().clock, DAY))
    client = Client(api.transport(), fl.World())
    await install_missing(client, [Thing])
    await client.create(Thing("thing", api.namespace, spec={}))
    namespaces = {"namespaces": [api.namespace], "lease_namespace": api.namespace}
    async with operator(log, "holder").running(api.transport(), fl.World(), **namespaces) as holder:
        await holder.wait_until_idle()
        async with operator(log, "candidate").running(api.transport(), ahead_world, **namespaces) as candidate:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5):  # It tries every two seconds.
                    await candidate.wait_until_idle()
            assert candidate.lease.seconds_left() <= 0 < holder.lease.seconds_left()
    assert set(log) == {"holder"}


@pytest.mark.parametrize("jumping_clock", ["holder", "candidate", "server"])
def test_clock_jumps_do_not_lose_the_lease(jumping_clock):
    async def test(environment):
        log, worlds = [], {"holder": environment.world(), "candidate": environment.world()}
        clocks = {name: world.clock for name, world in worlds.items()} | {"server": environment.server_clock}
        async with operator(log, "holder").running(
            environment.server.transport(), worlds["holder"], lease_namespace="default"
        ) as holder:
            await asyncio.sleep(5)
            async with operator(log, "candidate").running(
                environment.server.transport(), worlds["candidate"], lease_namespace="default"
            ) as candidate:
                for jump in JUMPS * 4:
                    clocks[jumping_clock].ahead += jump
                    await asyncio.sleep(7)
                    assert candidate.lease.seconds_left() <= 0 < holder.lease.seconds_left()
                before = len(log)
                await asyncio.sleep(10)
                assert len(log) > before + 5, "and the work goes on"

    run_in_virtual_time(test, started_environment)


def test_backoff_resync_and_requeue_ignore_wall_clock_jumps():
    def timeline(jumps):
        samples = []

        async def test(environment):
            world, op = environment.world(), fl.Operator("tester")
            loop = asyncio.get_running_loop()
            await environment.client.create(Thing("waits", "default", spec={}))

            @op.reconcile(Thing, resync=100.0)
            async def reconcile(obj, ctx):
                samples.append((round(loop.time(), 6), obj.name))
                if obj.name == "waits":
                    raise fl.RequeueAfter(17.0)
                raise ValueError("again")

            async with op.running(environment.server.transport(), world) as running:
                for jump in jumps:
                    world.clock.ahead += jump
                    await asyncio.sleep(50)
                    assert running.readiness_problems() == {}, "a watch is not stale because the wall clock says so"

        run_in_virtual_time(test, started_environment)
        return samples

    steady = timeline([0.0] * 8)
    assert len(steady) > 30
    assert timeline([*JUMPS, *JUMPS[:3]]) == steady


def test_wall_clock_jump_changes_no_condition_and_sends_nothing():
    async def test(environment):
        world, op, colour = environment.world(), fl.Operator("tester"), ["red"]

        @op.reconcile(Thing)
        async def reconcile(obj, ctx):
            ctx.condition("Red", colour[0] == "red", reason=colour[0])

        async def condition():
            thing = await environment.client.get(Thing, "thing", "default")
            return next(
                condition_item for condition_item in thing.status["conditions"] if condition_item["type"] == "Red"
            )

        async with op.running(environment.server.transport(), world) as running:
            await running.wait_until_idle()
            first = await condition()
            version = (await environment.client.get(Thing, "thing", "default")).resource_version
            for jump in JUMPS:
                world.clock.ahead += jump
                running.resync()
                await running.wait_until_idle()
            assert (await environment.client.get(Thing, "thing", "default")).resource_version == version
            world.clock.ahead = -DAY
            colour[0] = "blue"
            running.resync()
            await running.wait_until_idle()
            second = await condition()
            assert (second["status"], second["reason"]) == ("False", "blue")
            assert second["lastTransitionTime"] < first["lastTransitionTime"], "it has the time of the clock"

    run_in_virtual_time(test, started_environment)


@pytest.mark.parametrize("jump", [DAY, -DAY], ids=["forwards", "backwards"])
def test_events_are_written_and_counted_after_a_clock_jump(jump):
    async def test(environment):
        world, op = environment.world(), fl.Operator("tester")

        @op.reconcile(Thing, resync=20.0)
        async def reconcile(obj, ctx):
            ctx.event("Looked", "at it")

        async def counts():
            return [event["count"] for event in (await environment.client.list(Event, "default")).items]

        async with op.running(environment.server.transport(), world) as running:
            await running.wait_until_idle()
            await asyncio.sleep(100)
            (before,) = await counts()
            world.clock.ahead += jump
            await asyncio.sleep(100)
            (after,) = await counts()
            assert after >= before + 3

    run_in_virtual_time(test, started_environment)
