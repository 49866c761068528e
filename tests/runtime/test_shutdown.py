"""Shutdown: started passes end or are abandoned after the grace period, and hooks always run."""

import asyncio
import threading

import pytest

import fairlead as fl
from fairlead.api.builtin import Lease as LeaseKind
from fairlead.runtime import leases
from fairlead.runtime.handlers import HookFailed
from fairlead.runtime.running import GRACE
from fairlead.server.faults import Fault, Plan

Thing = fl.kind("test.example.com/v1", "Thing")


def operator(function):
    op = fl.Operator("tester")
    op.reconcile(Thing, timeout=1e6)(function)
    return op


async def holder(bed):
    return (await bed.client.get(LeaseKind, "tester", "default")).spec["holderIdentity"]


def test_pass_that_ignores_cancellation_is_abandoned_and_the_lease_expires(virtually, caplog):
    async def test(bed):
        at_work = asyncio.Event()

        async def deaf(obj, ctx):
            at_work.set()
            try:
                await asyncio.sleep(1e5)
            except asyncio.CancelledError:
                await asyncio.sleep(1e5)

        await bed.make("thing")
        async with bed.running(operator(deaf), lease_namespace="default"):
            await at_work.wait()
            before = bed.world.clock.monotonic()
        assert GRACE <= bed.world.clock.monotonic() - before < GRACE + 5
        assert await holder(bed)  # The abandoned pass may still write, so nobody else may lead yet.

    virtually(test)
    assert "thing default/thing does not end after its cancellation and is abandoned" in caplog.text


async def test_thread_that_never_returns_does_not_keep_the_process_alive(monkeypatch):
    from fairlead.api.world import World
    from fairlead.client.client import Client
    from fairlead.runtime import running
    from fairlead.runtime.definitions import install_missing
    from fairlead.server.app import Server

    monkeypatch.setattr(running, "GRACE", 0.05)
    monkeypatch.setattr(running, "CANCEL_GRACE", 0.05)
    world = World()
    server = Server(world)
    client = Client(server.transport(), world)
    await install_missing(client, [Thing])
    await client.create(Thing("thing", "default", spec={}))
    at_work, release, threads = asyncio.Event(), threading.Event(), []
    loop = asyncio.get_running_loop()

    def stuck(obj, ctx):
        threads.append(threading.current_thread())
        loop.call_soon_threadsafe(at_work.set)
        release.wait(60)

    async with operator(stuck).running(server.transport(), world):
        await at_work.wait()
    (thread,) = threads
    assert thread.is_alive()
    assert thread.daemon
    release.set()
    (left,) = (task for task in asyncio.all_tasks() if task.get_name() == "thing default/thing")
    await asyncio.gather(left, return_exceptions=True)


def test_second_cancellation_stops_without_keeping_the_lease(virtually):
    async def test(bed):
        at_work = asyncio.Event()

        async def reconcile(obj, ctx):
            at_work.set()
            await asyncio.sleep(1e5)

        await bed.make("thing")
        run = asyncio.create_task(operator(reconcile).run(bed.wire, bed.world, lease_namespace="default"))
        await at_work.wait()
        run.cancel()
        await asyncio.sleep(1)
        assert not run.done()
        run.cancel()
        await asyncio.wait([run])
        renewed = (await bed.client.get(LeaseKind, "tester", "default")).spec["renewTime"]
        await asyncio.sleep(60)
        assert (await bed.client.get(LeaseKind, "tester", "default")).spec["renewTime"] == renewed
        assert asyncio.all_tasks() == {asyncio.current_task()}

    virtually(test)


def test_stop_waits_for_a_running_timer(virtually):
    async def test(bed):
        ended, at_work = [], asyncio.Event()
        op = fl.Operator("tester")

        @op.timer(1)
        async def sweep(view):
            at_work.set()
            await asyncio.sleep(10)
            await view.unguarded.create(Thing("swept", "default", spec={}))
            ended.append(True)

        async with bed.running(op, lease_namespace="default"):
            await at_work.wait()
        assert ended == [True]
        assert (await bed.thing("swept")).name == "swept"
        assert await holder(bed) == ""

    virtually(test)


def test_every_shutdown_hook_is_called_even_if_one_raises(virtually):
    async def test(bed):
        called = []
        op = fl.Operator("tester")

        @op.shutdown
        async def first(resources):
            called.append("first")
            raise ValueError("no such colour")

        @op.shutdown
        def second(resources):
            called.append("second")

        with pytest.raises(HookFailed, match="hook first failed: ValueError: no such colour"):
            async with bed.running(op):
                pass
        assert called == ["first", "second"]

    virtually(test)


class Answering:
    """A transport that delays the responses to writes of the lease, after the server has stored them."""

    def __init__(self, inner):
        self._inner = inner
        self.arrived = asyncio.Event()
        self.late = False

    async def request(self, request):
        answer = await self._inner.request(request)
        if self.late and request.method in ("POST", "PUT"):
            self.arrived.set()
            await asyncio.sleep(3)
        return answer

    async def stream(self, request):
        return await self._inner.stream(request)

    async def close(self): ...


@pytest.mark.parametrize("renewal", [False, True], ids=["taking it", "renewing it"])
def test_lease_is_released_even_if_a_renewal_was_cancelled(virtually, renewal):
    async def test(bed):
        wire = Answering(bed.server.transport())
        lease = leases.Lease(fl_client(wire, bed.world), bed.world, "tester", "default", "me")
        if renewal:
            await lease.acquire()
        wire.late = True
        work = asyncio.create_task(lease.keep() if renewal else lease.acquire())
        await wire.arrived.wait()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        wire.late = False
        assert await holder(bed) == "me"
        await lease.release()
        assert await holder(bed) == ""

    virtually(test)


def test_candidate_that_never_wrote_the_lease_sends_nothing_on_release(virtually):
    async def test(bed):
        await bed.client.create(LeaseKind("tester", "default", spec={"holderIdentity": "other"}))
        lease = leases.Lease(fl_client(bed.wire, bed.world), bed.world, "tester", "default", "me")
        await lease.release()
        assert bed.wire.requests == []

    virtually(test)


def fl_client(transport, world):
    from fairlead.client.client import Client

    return Client(transport, world)


def test_dry_run_stores_nothing_and_takes_no_lease(virtually):
    async def test(bed):
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
        await bed.make("thing")
        await bed.client.create(fl.ConfigMap("doomed", "default"))
        before = (await bed.client.list(fl.ConfigMap)).resource_version
        async with bed.running(op, dry_run=True, lease_namespace="default") as running:
            await running.wait_until_idle()
            assert running.failures == {}
            await asyncio.sleep(10)
        assert len([method for method, _, _ in bed.wire.requests if method != "GET"]) > 5
        assert (await bed.client.list(fl.ConfigMap)).resource_version == before  # No object of any kind was stored.

    virtually(test)


def test_run_with_tries_ends_when_a_watch_keeps_failing(virtually, caplog):
    from fairlead.cli.run import Target, _reconcile_once

    async def test(bed):
        async def reconcile(obj, ctx): ...

        bed.server.inject(Plan([Fault(status=500, verb="watch", kind="Thing")]))
        target = Target(bed.wire, "here", (), None, {})
        return await asyncio.wait_for(_reconcile_once(operator(reconcile), target, bed.world, {}), 300)

    assert virtually(test) == 1
    assert "Thing.v1.test.example.com: InternalError" in caplog.text
