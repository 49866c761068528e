"""Leader election with two operators and one lease: the guarantees of docs/explanation/leader-election.md."""

import asyncio
from dataclasses import replace

import pytest

import fairlead as fl
from fairlead.runtime.leases import LeaseLost

Thing = fl.kind("test.example.com/v1", "Thing")


def operator(log, who, work=0.0):
    op = fl.Operator("tester")

    @op.reconcile(Thing)
    async def reconcile(obj, ctx):
        await asyncio.sleep(work)
        log.append((who, obj.name))
        ctx.status(by=who)

    return op


async def steal(bed):
    lease = await bed.client.get(fl.Lease, "tester", "default")
    stolen = {**lease.spec, "holderIdentity": "thief", "leaseDurationSeconds": 1}
    await bed.client.replace(fl.Object(lease | {"spec": stolen}))


def test_standby_takes_over_when_the_leader_stops(virtually):
    async def test(bed):
        log = []
        await bed.make("first")
        async with bed.running(operator(log, "b"), lease_namespace="default") as second:
            async with bed.running(operator(log, "a"), lease_namespace="default") as first:
                await asyncio.sleep(30)
                leader = "b" if second.lease.seconds_left() > 0 else "a"
                assert {who for who, _ in log} == {leader}
                assert (first.lease.seconds_left() > 0) != (second.lease.seconds_left() > 0)
                assert second.readiness_problems() == first.readiness_problems() == {}  # The standby has full caches.
            # Only the second is still running, regardless of which one was the leader.
            log.clear()
            await bed.make("second")
            await asyncio.sleep(5)
            assert ("b", "second") in log
            assert (await bed.thing("second")).status["by"] == "b"
        lease = await bed.client.get(fl.Lease, "tester", "default")
        assert lease.spec["holderIdentity"] == ""

    virtually(test)


class Cut:
    """A transport whose requests hang while `connected` is cleared, like a broken network."""

    def __init__(self, inner):
        self._inner = inner
        self.connected = asyncio.Event()
        self.connected.set()
        self.writes_sent = []
        self.clock = None

    async def request(self, request):
        async with asyncio.timeout(request.timeout):
            await self.connected.wait()
            if request.method not in ("GET", "HEAD") and "leases" not in request.path:
                self.writes_sent.append(self.clock.monotonic())
            return await self._inner.request(request)

    async def stream(self, request):
        return await self._inner.stream(request)

    async def close(self): ...


def test_isolated_leader_stops_before_its_successor_starts(virtually):
    async def test(bed):
        log = []
        wire = Cut(bed.server.transport())
        wire.clock = bed.world.clock
        await bed.make("thing")
        first = asyncio.create_task(operator(log, "a", work=0.5).run(wire, bed.world, lease_namespace="default"))
        await asyncio.sleep(5)
        assert log
        async with bed.running(operator(log, "b"), lease_namespace="default") as second:
            await asyncio.sleep(5)
            wire.connected.clear()
            cut = bed.world.clock.monotonic()
            await bed.edit("thing", spec={"turn": 1})
            with pytest.raises(LeaseLost):
                await first
            stopped = bed.world.clock.monotonic()
            assert stopped - cut <= 10.5
            assert second.lease.seconds_left() <= 0
            while second.lease.seconds_left() <= 0:  # noqa: ASYNC110 - the test measures the moment
                await asyncio.sleep(0.1)
            assert bed.world.clock.monotonic() - stopped >= 4  # the margin
            wire.connected.set()
            await asyncio.sleep(5)
            assert not [when for when in wire.writes_sent if when > cut]
            assert (await bed.thing("thing")).status["by"] == "b"

    virtually(test)


class Late:
    """A transport that delivers chosen writes long after they were sent, even if the sender gave up."""

    def __init__(self, inner, chosen, seconds):
        self._inner = inner
        self._chosen = chosen
        self._seconds = seconds
        self.delivered = []
        self._tasks = []

    async def request(self, request):
        if not self._chosen(request.method, request.path):
            return await self._inner.request(request)
        self._tasks.append(asyncio.create_task(self._deliver(request)))
        async with asyncio.timeout(request.timeout):
            return await asyncio.shield(self._tasks[-1])

    async def _deliver(self, request):
        await asyncio.sleep(self._seconds)
        answer = await self._inner.request(replace(request, timeout=None))
        self.delivered.append(answer.status)
        return answer

    async def stream(self, request):
        return await self._inner.stream(request)

    async def close(self): ...


def test_late_guarded_write_is_rejected_if_the_successor_changed_the_object(virtually):
    async def test(bed):
        await bed.make("thing")
        wire = Late(bed.server.transport(), lambda method, path: path.endswith("/status"), 60)
        run = asyncio.create_task(operator([], "a").run(wire, bed.world, lease_namespace="default"))
        await asyncio.sleep(3)  # Its status write is on its way now.
        await steal(bed)
        with pytest.raises(LeaseLost):
            await run
        async with bed.running(operator([], "b"), lease_namespace="default") as running:
            await running.wait_until_idle()
            assert (await bed.thing("thing")).status["by"] == "b"
            await asyncio.sleep(100)
            assert wire.delivered == [422]
            assert (await bed.thing("thing")).status["by"] == "b"

    virtually(test)


def test_late_forced_apply_is_accepted_as_documented(virtually):
    def applier(text):
        op = fl.Operator("tester")

        @op.reconcile(Thing, owns=[fl.ConfigMap])
        async def apply(obj, ctx):
            await ctx.apply(fl.ConfigMap(obj.name, data={"text": text}))

        return op

    async def test(bed):
        await bed.make("thing")
        async with bed.running(applier("old")) as running:
            await running.wait_until_idle()
        wire = Late(bed.server.transport(), lambda method, path: method == "PATCH" and "configmaps" in path, 60)
        run = asyncio.create_task(applier("late").run(wire, bed.world, lease_namespace="default"))
        await asyncio.sleep(3)
        await steal(bed)
        with pytest.raises(LeaseLost):
            await run
        async with bed.running(applier("new"), lease_namespace="default") as running:
            await running.wait_until_idle()
            await asyncio.sleep(50)
            assert wire.delivered == []
            bed.wire.requests.clear()
            await asyncio.sleep(50)
            assert wire.delivered == [200]
            # It arrived, and the successor, which watches its children, applied the right value again.
            assert (await bed.client.get(fl.ConfigMap, "thing", "default"))["data"] == {"text": "new"}
            assert [method for method, _, _ in bed.wire.requests if method == "PATCH"] == ["PATCH"]

    virtually(test)


def test_run_ends_when_another_process_takes_the_lease(virtually):
    async def test(bed):
        run = asyncio.create_task(operator([], "a").run(bed.server.transport(), bed.world, lease_namespace="default"))
        await asyncio.sleep(5)
        await steal(bed)
        with pytest.raises(LeaseLost):
            await run
        assert (await bed.client.get(fl.Lease, "tester", "default")).spec["holderIdentity"] == "thief"

    virtually(test)
