"""Tests of how an operator starts, runs and stops."""

import asyncio
import logging
import threading

import aiohttp
import pytest

import fairlead as fl
from fairlead.api.errors import ApiError, UnknownOutcome
from fairlead.client.client import Client
from fairlead.runtime.handlers import HookFailed
from fairlead.server.app import Server

Thing = fl.kind("test.example.com/v1", "Thing")


def operator(function=None, name="tester", **options):
    op = fl.Operator(name)
    if function is not None:
        op.reconcile(Thing, **options)(function)
    return op


def test_stop_waits_for_started_passes_and_starts_no_new_ones(run_in_virtual_time):
    async def test(cluster):
        started, ended_names = [], []

        async def reconcile(obj, ctx):
            started.append(obj.name)
            await asyncio.sleep(10)
            ctx.status(phase="Done")
            ended_names.append(obj.name)

        for name in "abc":
            await cluster.create(name)
        async with cluster.running(operator(reconcile, concurrency=1)) as running:
            await asyncio.sleep(5)
            del running
        assert (len(started), len(ended_names)) == (1, 1)
        assert (await cluster.get_thing(ended_names[0])).status["phase"] == "Done"  # The pass could still write.

    run_in_virtual_time(test)


def test_stop_does_not_wait_forever(run_in_virtual_time):
    async def test(cluster):
        cancelled = []

        async def reconcile(obj, ctx):
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                cancelled.append(obj.name)
                raise

        await cluster.create("thing")
        async with cluster.running(operator(reconcile, timeout=7200)):
            await asyncio.sleep(1)
            before = cluster.world.clock.monotonic()
        assert cancelled == ["thing"]
        assert 13 <= cluster.world.clock.monotonic() - before < 25

    run_in_virtual_time(test)


def test_cancelling_run_stops_gracefully(run_in_virtual_time):
    async def test(cluster):
        ended_names = []

        async def reconcile(obj, ctx):
            await asyncio.sleep(3)
            ended_names.append(obj.name)

        await cluster.create("thing")
        op = operator(reconcile)
        run = asyncio.create_task(op.run(cluster.server.transport(), cluster.world))
        await asyncio.sleep(1)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert ended_names == ["thing"]
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    run_in_virtual_time(test)


def test_hooks_run_before_and_after_and_share_resources(run_in_virtual_time):
    async def test(cluster):
        log = []

        async def reconcile(obj, ctx):
            log.append(("reconcile", ctx.resources["admin"]))

        op = operator(reconcile)

        @op.startup
        async def connect(resources):
            log.append(("startup", dict(resources)))
            resources["admin"] = "a client"

        @op.shutdown
        def disconnect(resources):
            log.append(("shutdown", resources["admin"]))

        await cluster.create("thing")
        async with cluster.running(op, resources={"url": "http://x"}) as running:
            await running.wait_until_idle()
        assert log[0] == ("startup", {"url": "http://x"})
        assert ("reconcile", "a client") in log
        assert log[-1] == ("shutdown", "a client")

    run_in_virtual_time(test)


def test_failed_startup_hook_is_raised_after_the_shutdown_hooks(run_in_virtual_time):
    async def test(cluster):
        log = []
        op = operator()
        op.startup(lambda resources: 1 / 0)
        op.shutdown(lambda resources: log.append("shutdown"))
        with pytest.raises(HookFailed, match="ZeroDivisionError"):
            async with cluster.running(op):
                pass
        assert log == ["shutdown"]

    run_in_virtual_time(test)


def test_timer_continues_after_a_failure(run_in_virtual_time, caplog):
    async def test(cluster):
        ticks = []
        op = operator()

        @op.timer(60)
        async def sweep(view):
            ticks.append(cluster.world.clock.monotonic())
            if len(ticks) == 1:
                raise ValueError("not yet")

        async with cluster.running(op):
            await asyncio.sleep(601)
        assert len(ticks) == 10

    run_in_virtual_time(test)
    assert "timer sweep failed" in caplog.text


def test_sync_handler_runs_in_a_thread_with_the_same_context(run_in_virtual_time):
    async def test(cluster):
        threads = []

        def reconcile(obj, ctx):
            threads.append(threading.current_thread() is threading.main_thread())
            assert ctx.get(Thing, obj.name).uid == obj.uid
            assert ctx.live.get(Thing, obj.name).uid == obj.uid
            ctx.decide(lambda draft: draft.spec.__setitem__("seen", True))
            ctx.status(phase="Done")

        await cluster.create("thing")
        async with cluster.running(operator(reconcile)) as running:
            await running.wait_until_idle()
        assert threads[0] is False
        thing = await cluster.get_thing("thing")
        assert (thing.spec["seen"], thing.status["phase"], thing.is_true("Ready")) == (True, "Done", True)

    run_in_virtual_time(test)


async def test_slow_sync_handler_keeps_its_key_until_it_ends():
    from fairlead.runtime.handlers import HandlerTimeout, call_handler

    release, ended_names = threading.Event(), []

    def wait_for_release(obj, ctx):
        release.wait(10)
        with pytest.raises(TimeoutError):
            ctx.get("anything")
        ended_names.append(obj)

    class FakeContext:
        def get(self, kind): ...

    asyncio.get_running_loop().call_later(0.1, release.set)
    with pytest.raises(HandlerTimeout, match="timeout="):
        await call_handler(wait_for_release, "thing", FakeContext(), timeout=0.01, threads=None)
    assert ended_names == ["thing"]


async def test_timeout_that_a_handler_raises_keeps_its_cause():
    from fairlead.runtime.handlers import call_handler

    async def fail(obj, ctx):
        raise TimeoutError from UnknownOutcome("a write")

    def fail_in_a_thread(obj, ctx):
        raise TimeoutError

    for handler, cause in ((fail, UnknownOutcome), (fail_in_a_thread, type(None))):
        with pytest.raises(TimeoutError) as raised:
            await call_handler(handler, "thing", None, timeout=60, threads=None)
        assert type(raised.value.__cause__) is cause  # An error that is its own cause is an endless loop.


def test_pass_over_its_time_limit_is_cancelled_and_reported(run_in_virtual_time):
    async def test(cluster):
        async def reconcile(obj, ctx):
            await asyncio.sleep(3600)

        await cluster.create("thing")
        async with cluster.running(operator(reconcile, timeout=30)) as running:
            await asyncio.sleep(31)
            ready = (await cluster.get_thing("thing")).condition("Ready")
            assert ready["reason"] == "HandlerTimeout"
            value = running.metrics.registry.get_sample_value
            assert value("controller_runtime_reconcile_timeouts_total", {"controller": "thing"}) == 1

    run_in_virtual_time(test)


async def test_blocked_loop_appears_in_health_metrics_and_log(caplog):
    world = fl.World()
    server = Server(world)
    client = Client(server.transport(), world)
    reported = threading.Event()

    class Recorder(logging.Handler):
        def emit(self, record):
            reported.set()

    async def reconcile(obj, ctx):
        reported.wait(10)  # This blocks the loop until it is reported.

    loop_log, handler = logging.getLogger("fairlead.loop"), Recorder()
    loop_log.addHandler(handler)
    op = fl.Operator("tester")
    op.reconcile(fl.ConfigMap)(reconcile)
    await client.create(fl.ConfigMap("thing", "default"))
    try:
        async with op.running(server.transport(), world) as running:
            await running.wait_until_idle()
            while not running.liveness_problems():  # noqa: ASYNC110 - until the next heartbeat
                await asyncio.sleep(0.01)
            assert "blocked" in running.liveness_problems()["loop"]
            assert running.metrics.registry.get_sample_value("fairlead_loop_blocked_total") == 1
    finally:
        loop_log.removeHandler(handler)
    assert "in reconcile" in caplog.text


async def test_health_is_served_during_a_run():
    world = fl.World()
    op = fl.Operator("tester")
    op.reconcile(fl.ConfigMap)(lambda obj, ctx: None)
    async with op.running(Server(world).transport(), world, health="0") as running:
        await running.wait_until_idle()
        async with aiohttp.ClientSession(f"http://127.0.0.1:{running.health.port}") as session:
            async with session.get("/readyz") as response:
                assert response.status == 200
            async with session.get("/metrics") as response:
                assert "controller_runtime_active_workers" in await response.text()


def test_dry_run_stores_nothing(run_in_virtual_time):
    async def test(cluster):
        async def reconcile(obj, ctx):
            ctx.status(phase="Done")
            await ctx.decide(lambda draft: draft.spec.__setitem__("seen", True))

        op = operator(reconcile)
        op.cleanup(Thing)(reconcile)
        await cluster.create("thing")
        before = (await cluster.get_thing("thing")).resource_version
        async with cluster.running(op, dry_run=True) as running:
            await running.wait_until_idle()
            assert running.failures == {}
        assert (await cluster.get_thing("thing")).resource_version == before

    run_in_virtual_time(test)


def test_run_with_tries_becomes_idle_and_lists_failures(run_in_virtual_time):
    async def test(cluster):
        async def reconcile(obj, ctx):
            if obj.name == "bad":
                raise ValueError("no such colour")

        await cluster.create("bad")
        await cluster.create("good")
        async with cluster.running(operator(reconcile), tries=5) as running:
            await running.wait_until_idle()
            assert {str(key): text for key, text in running.failures.items()} == {
                "thing default/bad": "ValueError: no such colour"
            }

    run_in_virtual_time(test)


def test_only_the_given_namespaces_are_watched(run_in_virtual_time):
    async def test(cluster):
        seen = []

        async def reconcile(obj, ctx):
            seen.append(obj.namespace)

        await cluster.client.create(fl.Namespace("other"))
        await cluster.create("here")
        await cluster.client.create(Thing("there", "other", spec={}))
        async with cluster.running(operator(reconcile), namespaces=["other"]) as running:
            await running.wait_until_idle()
        assert set(seen) == {"other"}

    run_in_virtual_time(test)


def test_run_is_ready_after_every_watch_has_listed(run_in_virtual_time):
    async def test(cluster):
        unserved = fl.kind("test.example.com/v1", "Unserved")

        async def reconcile(obj, ctx): ...

        async with cluster.running(operator(reconcile, watches={unserved: None})) as running:
            await asyncio.sleep(5)
            assert list(running.readiness_problems()) == ["Unserved.v1.test.example.com"]
            assert "CustomResourceDefinition" in running.readiness_problems()["Unserved.v1.test.example.com"]
            assert running.liveness_problems() == {}  # A restart would not help.
            from fairlead.runtime.definitions import install_missing

            await install_missing(cluster.client, [unserved])
            await asyncio.sleep(31)
            assert running.readiness_problems() == {}

    run_in_virtual_time(test)


def test_metrics_have_the_names_of_controller_runtime(run_in_virtual_time):
    async def test(cluster):
        async def reconcile(obj, ctx): ...

        await cluster.create("thing")
        async with cluster.running(operator(reconcile)) as running:
            await running.wait_until_idle()
            text = running.metrics.text().decode()
        for line in (
            'controller_runtime_reconcile_total{controller="thing",result="success"} 2.0',
            'controller_runtime_max_concurrent_reconciles{controller="thing"} 32.0',
            'workqueue_depth{controller="thing",name="thing",priority="0"} 0.0',
            'workqueue_adds_total{controller="thing",name="thing"} 2.0',
            'rest_client_requests_total{code="200",host="",method="PATCH"} 1.0',
            'fairlead_cache_staleness_seconds{scope="Thing.v1.test.example.com"}',
        ):
            assert line in text

    run_in_virtual_time(test)


def test_429_lowers_the_concurrency_and_time_raises_it():
    from fairlead.runtime.adaptive_concurrency import AdaptiveConcurrency
    from fairlead.testing import virtual

    async def test():
        limits = []
        concurrency = AdaptiveConcurrency(32, virtual.world(), limits.append)
        for _ in range(100):
            concurrency.observe("429")  # one burst
        await asyncio.sleep(1)
        concurrency.observe("429")
        assert limits == [16, 8]
        for _ in range(30):
            await asyncio.sleep(1)
            concurrency.observe("200")
        assert limits[-1] == concurrency.allowed == 32

    virtual.run(test())


def test_invalid_operator_name_is_rejected():
    with pytest.raises(ValueError, match="lower-case"):
        fl.Operator("My Operator")


def test_second_handler_for_a_kind_is_rejected():
    op = operator(lambda obj, ctx: None)
    with pytest.raises(ValueError, match="already"):
        op.reconcile(Thing)(lambda obj, ctx: None)


def test_two_controllers_of_one_name_are_rejected():
    op = fl.Operator("tester")
    op.reconcile(Thing)(lambda obj, ctx: None)
    other_group = fl.kind("other.example.com/v1", "Thing")
    with pytest.raises(ValueError, match="has a controller thing already: choose another with name="):
        op.reconcile(other_group)(lambda obj, ctx: None)
    op.reconcile(other_group, name="their-thing")(lambda obj, ctx: None)


def test_api_error_sets_its_reason_in_the_condition(run_in_virtual_time, caplog):
    async def test(cluster):
        async def reconcile(obj, ctx):
            raise ApiError.of({"reason": "Forbidden", "code": 403, "message": "may not create pods"})

        await cluster.create("thing")
        async with cluster.running(operator(reconcile)):
            await asyncio.sleep(1)
        ready = (await cluster.get_thing("thing")).condition("Ready")
        assert (ready["reason"], ready["message"]) == ("Forbidden", "may not create pods")

    run_in_virtual_time(test)
    assert "Traceback" not in caplog.text


def test_timer_interval_must_be_positive():
    with pytest.raises(ValueError, match="interval in seconds"):
        fl.Operator("tester").timer(0)
