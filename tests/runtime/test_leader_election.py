"""Tests of leader election with two operators and one lease: the guarantees of docs/explanation/leader-election.md."""

import asyncio
from dataclasses import replace

import pytest

import fairlead as fl
from fairlead.runtime.leases import LeaseLost

Thing = fl.kind("test.example.com/v1", "Thing")


def operator(log, identity, work_seconds=0.0):
    op = fl.Operator("tester")

    @op.reconcile(Thing)
    async def reconcile(obj, ctx):
        await asyncio.sleep(work_seconds)
        log.append((identity, obj.name))
        ctx.status(by=identity)

    return op


async def take_lease_as_thief(cluster):
    lease = await cluster.client.get(fl.Lease, "tester", "default")
    stolen_spec = {**lease.spec, "holderIdentity": "thief", "leaseDurationSeconds": 1}
    await cluster.client.replace(fl.Object(lease | {"spec": stolen_spec}))


def test_standby_takes_over_when_the_leader_stops(run_in_virtual_time):
    async def test(cluster):
        log = []
        await cluster.create("first")
        async with cluster.running(operator(log, "b"), lease_namespace="default") as standby:
            async with cluster.running(operator(log, "a"), lease_namespace="default") as first_run:
                await asyncio.sleep(30)
                leader = "b" if standby.lease.seconds_left() > 0 else "a"
                assert {identity for identity, _ in log} == {leader}
                assert (first_run.lease.seconds_left() > 0) != (standby.lease.seconds_left() > 0)
                assert (
                    standby.readiness_problems() == first_run.readiness_problems() == {}
                )  # The standby has full caches.
            # Only the second is still running, regardless of which one was the leader.
            log.clear()
            await cluster.create("second")
            await asyncio.sleep(5)
            assert ("b", "second") in log
            assert (await cluster.get_thing("second")).status["by"] == "b"
        lease = await cluster.client.get(fl.Lease, "tester", "default")
        assert lease.spec["holderIdentity"] == ""

    run_in_virtual_time(test)


class DisconnectableTransport:
    """A transport that simulates a broken network: its requests hang while `connected` is cleared."""

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


def test_isolated_leader_stops_before_its_successor_starts(run_in_virtual_time):
    async def test(cluster):
        log = []
        transport = DisconnectableTransport(cluster.server.transport())
        transport.clock = cluster.world.clock
        await cluster.create("thing")
        first_run = asyncio.create_task(
            operator(log, "a", work_seconds=0.5).run(transport, cluster.world, lease_namespace="default")
        )
        await asyncio.sleep(5)
        assert log
        async with cluster.running(operator(log, "b"), lease_namespace="default") as standby:
            await asyncio.sleep(5)
            transport.connected.clear()
            cut_at = cluster.world.clock.monotonic()
            await cluster.patch_thing("thing", spec={"turn": 1})
            with pytest.raises(LeaseLost):
                await first_run
            stopped_at = cluster.world.clock.monotonic()
            assert stopped_at - cut_at <= 10.5
            assert standby.lease.seconds_left() <= 0
            while standby.lease.seconds_left() <= 0:  # noqa: ASYNC110 - the test measures the moment
                await asyncio.sleep(0.1)
            assert cluster.world.clock.monotonic() - stopped_at >= 4  # the margin
            transport.connected.set()
            await asyncio.sleep(5)
            assert not [sent_at for sent_at in transport.writes_sent if sent_at > cut_at]
            assert (await cluster.get_thing("thing")).status["by"] == "b"

    run_in_virtual_time(test)


class DelayingTransport:
    """A transport that sends selected writes `delay` seconds late, even if the caller has given up."""

    def __init__(self, inner, is_delayed, delay):
        self._inner = inner
        self._is_delayed = is_delayed
        self._delay = delay
        self.delivered_statuses = []
        self._tasks = []

    async def request(self, request):
        if not self._is_delayed(request.method, request.path):
            return await self._inner.request(request)
        self._tasks.append(asyncio.create_task(self._deliver(request)))
        async with asyncio.timeout(request.timeout):
            return await asyncio.shield(self._tasks[-1])

    async def _deliver(self, request):
        await asyncio.sleep(self._delay)
        response = await self._inner.request(replace(request, timeout=None))
        self.delivered_statuses.append(response.status)
        return response

    async def stream(self, request):
        return await self._inner.stream(request)

    async def close(self): ...


def test_late_guarded_write_is_rejected_if_the_successor_changed_the_object(run_in_virtual_time):
    async def test(cluster):
        await cluster.create("thing")
        transport = DelayingTransport(cluster.server.transport(), lambda method, path: path.endswith("/status"), 60)
        run = asyncio.create_task(operator([], "a").run(transport, cluster.world, lease_namespace="default"))
        await asyncio.sleep(3)  # Its status write is on its way now.
        await take_lease_as_thief(cluster)
        with pytest.raises(LeaseLost):
            await run
        async with cluster.running(operator([], "b"), lease_namespace="default") as running:
            await running.wait_until_idle()
            assert (await cluster.get_thing("thing")).status["by"] == "b"
            await asyncio.sleep(100)
            assert transport.delivered_statuses == [422]
            assert (await cluster.get_thing("thing")).status["by"] == "b"

    run_in_virtual_time(test)


def test_late_forced_apply_is_accepted_as_documented(run_in_virtual_time):
    def operator_applying(text):
        op = fl.Operator("tester")

        @op.reconcile(Thing, owns=[fl.ConfigMap])
        async def apply(obj, ctx):
            await ctx.apply(fl.ConfigMap(obj.name, data={"text": text}))

        return op

    async def test(cluster):
        await cluster.create("thing")
        async with cluster.running(operator_applying("old")) as running:
            await running.wait_until_idle()
        transport = DelayingTransport(
            cluster.server.transport(), lambda method, path: method == "PATCH" and "configmaps" in path, 60
        )
        run = asyncio.create_task(operator_applying("late").run(transport, cluster.world, lease_namespace="default"))
        await asyncio.sleep(3)
        await take_lease_as_thief(cluster)
        with pytest.raises(LeaseLost):
            await run
        async with cluster.running(operator_applying("new"), lease_namespace="default") as running:
            await running.wait_until_idle()
            await asyncio.sleep(50)
            assert transport.delivered_statuses == []
            cluster.transport.requests.clear()
            await asyncio.sleep(50)
            assert transport.delivered_statuses == [200]
            # It arrived, and the successor, which watches its children, applied the right value again.
            assert (await cluster.client.get(fl.ConfigMap, "thing", "default"))["data"] == {"text": "new"}
            assert [method for method, _, _ in cluster.transport.requests if method == "PATCH"] == ["PATCH"]

    run_in_virtual_time(test)


def test_run_ends_when_another_process_takes_the_lease(run_in_virtual_time):
    async def test(cluster):
        run = asyncio.create_task(
            operator([], "a").run(cluster.server.transport(), cluster.world, lease_namespace="default")
        )
        await asyncio.sleep(5)
        await take_lease_as_thief(cluster)
        with pytest.raises(LeaseLost):
            await run
        assert (await cluster.client.get(fl.Lease, "tester", "default")).spec["holderIdentity"] == "thief"

    run_in_virtual_time(test)
