"""Tests of selectors, of watch functions that raise, and of failing discovery."""

import asyncio
import logging

import pytest

import fairlead as fl
from fairlead.client.transport import NotSent

Thing = fl.kind("test.example.com/v1", "Thing")
Other = fl.kind("test.example.com/v1", "Other")


def test_only_selected_objects_are_reconciled_and_cached(run_in_virtual_time):
    async def test(cluster):
        op, reconciled_names = fl.Operator("tester"), []

        @op.reconcile(fl.select(Thing, labels="mine"), watches={fl.select(fl.Secret, labels="app=web"): None})
        async def reconcile(obj, ctx):
            reconciled_names.append(
                (obj.name, [secret.name for secret in ctx.list(fl.Secret)], ctx.get(fl.Secret, "other"))
            )

        for name, labels in (("web", {"app": "web"}), ("other", {"app": "other"})):
            await cluster.client.create(fl.Secret(name, "default", labels=labels))
        await cluster.client.create(Thing("theirs", "default", spec={}))
        await cluster.client.create(Thing("ours", "default", labels={"mine": ""}, spec={}))
        async with cluster.running(op) as running:
            await running.wait_until_idle()
            assert set(map(str, reconciled_names)) == {"('ours', ['web'], None)"}
            reconciled_names.clear()
            await cluster.patch_thing("theirs", metadata={"labels": {"mine": ""}})
            await asyncio.sleep(1)
            assert {name for name, _, _ in reconciled_names} == {"theirs"}

    run_in_virtual_time(test)


def test_selectors_that_cannot_work_are_rejected(run_in_virtual_time):
    async def test(cluster):
        op = fl.Operator("tester")
        op.reconcile(fl.select(Thing, labels="mine"))(lambda obj, ctx: None)
        op.cleanup(Thing)(lambda obj, ctx: None)
        with pytest.raises(ValueError, match="would keep its finalizer forever"):
            cluster.running(op)
        op = fl.Operator("tester")
        op.reconcile(Thing, watches={fl.select(fl.Secret, labels="a"): None})(lambda obj, ctx: None)
        op.reconcile(Other, watches={fl.Secret: None})(lambda obj, ctx: None)
        with pytest.raises(ValueError, match="Secret has two different selectors"):
            await cluster.running(op).__aenter__()

    run_in_virtual_time(test)


def test_failed_watch_function_leads_to_a_resync(run_in_virtual_time, caplog):
    async def test(cluster):
        op, reconciled_names, is_fixed = fl.Operator("tester"), [], False

        def things_of(other):
            if not is_fixed:
                raise KeyError("spec")
            return [other.name]

        @op.reconcile(Thing, watches={Other: things_of})
        async def reconcile(obj, ctx):
            reconciled_names.append(obj.name)

        await cluster.create("a")
        async with cluster.running(op) as running:
            await running.wait_until_idle()
            reconciled_names.clear()
            for number in range(5):
                await cluster.create(f"o{number}", kind=Other)
            await asyncio.sleep(0.5)
            assert reconciled_names == []
            await asyncio.sleep(4)
            assert reconciled_names == ["a"]  # One resync for all five.
            failures = running.metrics.registry.get_sample_value
            assert failures("fairlead_watch_function_failures_total", {"controller": "thing"}) == 5
            assert caplog.text.count("things_of raised for default/o0: every Thing is reconciled in") == 1
            await cluster.client.delete(Other, "o0", "default")  # It still fails: the resyncs become rarer.
            await asyncio.sleep(1.5)
            assert reconciled_names == ["a"]
            await asyncio.sleep(5)
            assert reconciled_names == ["a", "a"]

    run_in_virtual_time(test)


class FailingTransport:
    """A transport whose first requests fail."""

    def __init__(self, inner, failures):
        self._inner, self.failures = inner, failures

    async def request(self, request):
        if self.failures:
            failure = self.failures.pop()
            if isinstance(failure, Exception):
                raise failure
            return failure
        return await self._inner.request(request)

    async def stream(self, request):
        return await self._inner.stream(request)

    async def close(self): ...


class ForbiddenResponse:
    headers, warnings = {}, ()

    def __init__(self, status, reason):
        self.status = status
        self.body = f'{{"kind":"Status","code":{status},"reason":"{reason}","message":"{reason}"}}'.encode()


@pytest.mark.parametrize(
    "failure",
    [
        NotSent("refused"),
        ForbiddenResponse(503, "ServiceUnavailable"),
        ForbiddenResponse(500, "InternalError"),
        ConnectionResetError("cut"),
    ],
    ids=["refused", "503", "500", "cut"],
)
def test_failed_discovery_at_startup_is_retried(run_in_virtual_time, caplog, failure):
    async def test(cluster):
        op, reconciled_names = fl.Operator("tester"), []

        @op.reconcile(Thing)
        async def reconcile(obj, ctx):
            reconciled_names.append(obj.name)

        await cluster.create("a")
        async with op.running(FailingTransport(cluster.server.transport(), [failure] * 20), cluster.world) as running:
            await running.wait_until_idle()
        assert "a" in reconciled_names
        assert "cannot discover the served kinds" in caplog.text

    caplog.set_level(logging.WARNING)
    run_in_virtual_time(test)


def test_forbidden_discovery_ends_the_run(run_in_virtual_time):
    async def test(cluster):
        op = fl.Operator("tester")
        op.reconcile(Thing)(lambda obj, ctx: None)
        with pytest.raises(fl.ApiError, match="Forbidden"):
            await op.running(
                FailingTransport(cluster.server.transport(), [ForbiddenResponse(403, "Forbidden")]), cluster.world
            ).__aenter__()

    run_in_virtual_time(test)
