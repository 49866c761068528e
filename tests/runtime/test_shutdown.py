"""Tests of the shutdown: started passes end or are abandoned after the grace period, and shutdown hooks always run."""

import asyncio
import threading

import pytest

import fairlead as fl
from fairlead.api.builtin import Lease as LeaseKind
from fairlead.runtime import leases
from fairlead.runtime.handlers import HookFailed
from fairlead.runtime.shutdown import ShutdownBudget
from fairlead.runtime.tuning import SHUTDOWN_TIMEOUT
from fairlead.server.faults import Fault, Plan

Thing = fl.kind("test.example.com/v1", "Thing")


def operator(function):
    op = fl.Operator("tester")
    op.reconcile(Thing, timeout=1e6)(function)
    return op


async def read_holder(cluster):
    return (await cluster.client.get(LeaseKind, "tester", "default")).spec["holderIdentity"]


def test_pass_that_ignores_cancellation_is_abandoned_and_the_lease_expires(run_in_virtual_time, caplog):
    async def test(cluster):
        started = asyncio.Event()

        async def ignore_cancellation(obj, ctx):
            started.set()
            try:
                await asyncio.sleep(1e5)
            except asyncio.CancelledError:
                await asyncio.sleep(1e5)

        await cluster.create("thing")
        async with cluster.running(operator(ignore_cancellation), lease_namespace="default"):
            await started.wait()
            stop_started_at = cluster.world.clock.monotonic()
        seconds = cluster.world.clock.monotonic() - stop_started_at
        assert ShutdownBudget(SHUTDOWN_TIMEOUT).passes <= seconds < SHUTDOWN_TIMEOUT
        assert await read_holder(cluster)  # The abandoned pass may still write, so nobody else may lead yet.

    run_in_virtual_time(test)
    assert "thing default/thing does not end after its cancellation and is abandoned" in caplog.text


async def test_thread_that_never_returns_does_not_keep_the_process_alive():
    from fairlead.api.world import World
    from fairlead.client.client import Client
    from fairlead.runtime.definitions import install_missing
    from fairlead.server.app import Server

    world = World()
    server = Server(world)
    client = Client(server.transport(), world)
    await install_missing(client, [Thing])
    await client.create(Thing("thing", "default", spec={}))
    started, release, threads = asyncio.Event(), threading.Event(), []
    loop = asyncio.get_running_loop()

    def block_thread(obj, ctx):
        threads.append(threading.current_thread())
        loop.call_soon_threadsafe(started.set)
        release.wait(60)

    async with operator(block_thread).running(server.transport(), world, shutdown_timeout=0.1):
        await started.wait()
    (thread,) = threads
    assert thread.is_alive()
    assert thread.daemon
    release.set()
    (abandoned_task,) = (task for task in asyncio.all_tasks() if task.get_name() == "thing default/thing")
    await asyncio.gather(abandoned_task, return_exceptions=True)


def test_second_cancellation_stops_without_keeping_the_lease(run_in_virtual_time):
    async def test(cluster):
        started = asyncio.Event()

        async def reconcile(obj, ctx):
            started.set()
            await asyncio.sleep(1e5)

        await cluster.create("thing")
        run = asyncio.create_task(operator(reconcile).run(cluster.transport, cluster.world, lease_namespace="default"))
        await started.wait()
        run.cancel()
        await asyncio.sleep(1)
        assert not run.done()
        run.cancel()
        await asyncio.wait([run])
        renew_time = (await cluster.client.get(LeaseKind, "tester", "default")).spec["renewTime"]
        await asyncio.sleep(60)
        assert (await cluster.client.get(LeaseKind, "tester", "default")).spec["renewTime"] == renew_time
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_in_virtual_time(test)


def test_stop_waits_for_a_running_timer(run_in_virtual_time):
    async def test(cluster):
        ended, started = [], asyncio.Event()
        op = fl.Operator("tester")

        @op.timer(1)
        async def sleep_in_timer(view):
            started.set()
            await asyncio.sleep(10)
            await view.unguarded.create(Thing("swept", "default", spec={}))
            ended.append(True)

        async with cluster.running(op, lease_namespace="default"):
            await started.wait()
        assert ended == [True]
        assert (await cluster.get_thing("swept")).name == "swept"
        assert await read_holder(cluster) == ""

    run_in_virtual_time(test)


def test_stop_with_hanging_writes_ends_in_time(run_in_virtual_time):
    """Every write hangs: those of passes, of Events and of the lease. It took 30.1 s."""

    class HangingTransport:
        def __init__(self, inner):
            self._inner = inner
            self.hangs = False

        async def request(self, request):
            async with asyncio.timeout(request.timeout):
                if self.hangs and request.method != "GET":
                    await asyncio.Event().wait()
                return await self._inner.request(request)

        async def stream(self, request):
            return await self._inner.stream(request)

    async def test(cluster):
        started = asyncio.Event()

        async def reconcile(obj, ctx):
            ctx.event("Started", "it started")
            started.set()
            transport.hangs = True
            await ctx.apply(fl.ConfigMap(obj.name, data={"a": "b"}))

        op = operator(reconcile)

        @op.shutdown
        async def hang(resources):
            await asyncio.sleep(1e5)

        @op.shutdown
        async def hang_again(resources):
            await asyncio.sleep(1e5)

        transport = HangingTransport(cluster.transport)
        await cluster.create("thing")
        async with op.running(transport, cluster.world, lease_namespace="default"):
            await started.wait()
            stop_started_at = cluster.world.clock.monotonic()
        assert cluster.world.clock.monotonic() - stop_started_at < 0.93 * SHUTDOWN_TIMEOUT

    run_in_virtual_time(test)


def test_every_shutdown_hook_is_called_even_if_one_raises(run_in_virtual_time):
    async def test(cluster):
        called_hooks = []
        op = fl.Operator("tester")

        @op.shutdown
        async def first(resources):
            called_hooks.append("first")
            raise ValueError("no such colour")

        @op.shutdown
        def second(resources):
            called_hooks.append("second")

        with pytest.raises(HookFailed, match="hook first failed: ValueError: no such colour"):
            async with cluster.running(op):
                pass
        assert called_hooks == ["first", "second"]

    run_in_virtual_time(test)


def test_hooks_that_ignore_their_cancellation_share_one_deadline(run_in_virtual_time):
    async def test(cluster):
        op = fl.Operator("tester")

        async def ignore_cancellation(resources):
            while True:
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    if is_over:
                        raise

        is_over = False
        for _ in range(40):
            op.shutdown(ignore_cancellation)
        async with cluster.running(op):
            stop_started_at = cluster.world.clock.monotonic()
        assert cluster.world.clock.monotonic() - stop_started_at < 0.93 * SHUTDOWN_TIMEOUT
        is_over = True

    run_in_virtual_time(test)


class DelayedLeaseTransport:
    """A transport that delays the response to a lease write after the server has stored the write."""

    def __init__(self, inner):
        self._inner = inner
        self.write_stored = asyncio.Event()
        self.is_delaying = False

    async def request(self, request):
        response = await self._inner.request(request)
        if self.is_delaying and request.method in ("POST", "PUT"):
            self.write_stored.set()
            await asyncio.sleep(3)
        return response

    async def stream(self, request):
        return await self._inner.stream(request)

    async def close(self): ...


@pytest.mark.parametrize("renewal", [False, True], ids=["taking it", "renewing it"])
def test_lease_is_released_even_if_a_renewal_was_cancelled(run_in_virtual_time, renewal):
    async def test(cluster):
        delayed_transport = DelayedLeaseTransport(cluster.server.transport())
        lease = leases.Lease(fl_client(delayed_transport, cluster.world), cluster.world, "tester", "default", "me")
        if renewal:
            await lease.acquire()
        delayed_transport.is_delaying = True
        lease_task = asyncio.create_task(lease.keep() if renewal else lease.acquire())
        await delayed_transport.write_stored.wait()
        lease_task.cancel()
        await asyncio.gather(lease_task, return_exceptions=True)
        delayed_transport.is_delaying = False
        assert await read_holder(cluster) == "me"
        await lease.release()
        assert await read_holder(cluster) == ""

    run_in_virtual_time(test)


def test_candidate_that_never_wrote_the_lease_sends_nothing_on_release(run_in_virtual_time):
    async def test(cluster):
        await cluster.client.create(LeaseKind("tester", "default", spec={"holderIdentity": "other"}))
        lease = leases.Lease(fl_client(cluster.transport, cluster.world), cluster.world, "tester", "default", "me")
        await lease.release()
        assert cluster.transport.requests == []

    run_in_virtual_time(test)


def fl_client(transport, world):
    from fairlead.client.client import Client

    return Client(transport, world)


def test_dry_run_stores_nothing_and_takes_no_lease(run_in_virtual_time):
    async def test(cluster):
        async def reconcile(obj, ctx):
            await ctx.apply(fl.ConfigMap(obj.name, data={"a": "b"}))
            await ctx.create(fl.ConfigMap(f"{obj.name}-made", data={}))
            await ctx.default(spec={"size": 1})
            await ctx.decide(lambda draft: draft.spec.__setitem__("seen", True))
            await ctx.delete(ctx.get(fl.ConfigMap, "doomed"))
            await ctx.unguarded.create(fl.ConfigMap(f"{obj.name}-raw", obj.namespace))
            ctx.status(phase="Done")
            ctx.event("Seen", "it was seen")

        op = fl.Operator("tester")
        op.reconcile(Thing, owns=[fl.ConfigMap])(reconcile)
        op.cleanup(Thing)(reconcile)
        op.timer(1)(lambda view: view.unguarded.create(fl.ConfigMap("ticked", "default")))
        await cluster.create("thing")
        await cluster.client.create(fl.ConfigMap("doomed", "default"))
        stop_started_at = (await cluster.client.list(fl.ConfigMap)).resource_version
        async with cluster.running(op, dry_run=True, lease_namespace="default") as running:
            await running.wait_until_idle()
            assert running.failures == {}
            await asyncio.sleep(10)
        assert len([method for method, _, _ in cluster.transport.requests if method != "GET"]) > 5
        assert (
            await cluster.client.list(fl.ConfigMap)
        ).resource_version == stop_started_at  # No object of any kind was stored.

    run_in_virtual_time(test)


def test_run_with_tries_ends_when_a_watch_keeps_failing(run_in_virtual_time, caplog):
    from fairlead.cli.run import Target, _reconcile_once

    async def test(cluster):
        async def reconcile(obj, ctx): ...

        cluster.server.inject(Plan([Fault(status=500, verb="watch", kind="Thing")]))
        target = Target(cluster.transport, "here", (), None, {})
        return await asyncio.wait_for(_reconcile_once(operator(reconcile), target, cluster.world, {}), 300)

    assert run_in_virtual_time(test) == 1
    assert "Thing.v1.test.example.com: InternalError" in caplog.text
