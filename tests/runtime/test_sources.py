"""Sources of a controller: selectors, watch functions that raise, and failing discovery."""

import asyncio
import logging

import pytest

import fairlead as fl
from fairlead.client.transport import NotSent

Thing = fl.kind("test.example.com/v1", "Thing")
Other = fl.kind("test.example.com/v1", "Other")


def test_only_selected_objects_are_reconciled_and_cached(virtually):
    async def test(bed):
        op, seen = fl.Operator("tester"), []

        @op.reconcile(fl.select(Thing, labels="mine"), watches={fl.select(fl.Secret, labels="app=web"): None})
        async def reconcile(obj, ctx):
            seen.append((obj.name, [secret.name for secret in ctx.list(fl.Secret)], ctx.get(fl.Secret, "other")))

        for name, labels in (("web", {"app": "web"}), ("other", {"app": "other"})):
            await bed.client.create(fl.Secret(name, "default", labels=labels))
        await bed.client.create(Thing("theirs", "default", spec={}))
        await bed.client.create(Thing("ours", "default", labels={"mine": ""}, spec={}))
        async with bed.running(op) as running:
            await running.wait_until_idle()
            assert set(map(str, seen)) == {"('ours', ['web'], None)"}
            seen.clear()
            await bed.edit("theirs", metadata={"labels": {"mine": ""}})
            await asyncio.sleep(1)
            assert {name for name, _, _ in seen} == {"theirs"}

    virtually(test)


def test_selectors_that_cannot_work_are_rejected(virtually):
    async def test(bed):
        op = fl.Operator("tester")
        op.reconcile(fl.select(Thing, labels="mine"))(lambda obj, ctx: None)
        op.cleanup(Thing)(lambda obj, ctx: None)
        with pytest.raises(ValueError, match="would keep its finalizer forever"):
            bed.running(op)
        op = fl.Operator("tester")
        op.reconcile(Thing, watches={fl.select(fl.Secret, labels="a"): None})(lambda obj, ctx: None)
        op.reconcile(Other, watches={fl.Secret: None})(lambda obj, ctx: None)
        with pytest.raises(ValueError, match="Secret has two different selectors"):
            await bed.running(op).__aenter__()

    virtually(test)


def test_failed_watch_function_leads_to_a_resync(virtually, caplog):
    async def test(bed):
        op, seen, healthy = fl.Operator("tester"), [], False

        def things_of(other):
            if not healthy:
                raise KeyError("spec")
            return [other.name]

        @op.reconcile(Thing, watches={Other: things_of})
        async def reconcile(obj, ctx):
            seen.append(obj.name)

        await bed.make("a")
        async with bed.running(op) as running:
            await running.wait_until_idle()
            seen.clear()
            for number in range(5):
                await bed.make(f"o{number}", kind=Other)
            await asyncio.sleep(0.5)
            assert seen == []
            await asyncio.sleep(4)
            assert seen == ["a"]  # One resync for all five.
            failures = running.metrics.registry.get_sample_value
            assert failures("fairlead_watch_function_failures_total", {"controller": "thing"}) == 5
            assert caplog.text.count("things_of raised for default/o0: every Thing is reconciled in") == 1
            await bed.client.delete(Other, "o0", "default")  # It still fails: the resyncs become rarer.
            await asyncio.sleep(1.5)
            assert seen == ["a"]
            await asyncio.sleep(5)
            assert seen == ["a", "a"]

    virtually(test)


class Stumbling:
    """A transport on which the first requests fail."""

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


class Refusal:
    headers, warnings = {}, ()

    def __init__(self, status, reason):
        self.status = status
        self.body = f'{{"kind":"Status","code":{status},"reason":"{reason}","message":"{reason}"}}'.encode()


@pytest.mark.parametrize(
    "failure",
    [
        NotSent("refused"),
        Refusal(503, "ServiceUnavailable"),
        Refusal(500, "InternalError"),
        ConnectionResetError("cut"),
    ],
    ids=["refused", "503", "500", "cut"],
)
def test_failed_discovery_at_startup_is_retried(virtually, caplog, failure):
    async def test(bed):
        op, seen = fl.Operator("tester"), []

        @op.reconcile(Thing)
        async def reconcile(obj, ctx):
            seen.append(obj.name)

        await bed.make("a")
        async with op.running(Stumbling(bed.server.transport(), [failure] * 20), bed.world) as running:
            await running.wait_until_idle()
        assert "a" in seen
        assert "cannot discover the served kinds" in caplog.text

    caplog.set_level(logging.WARNING)
    virtually(test)


def test_forbidden_discovery_ends_the_run(virtually):
    async def test(bed):
        op = fl.Operator("tester")
        op.reconcile(Thing)(lambda obj, ctx: None)
        with pytest.raises(fl.ApiError, match="Forbidden"):
            await op.running(Stumbling(bed.server.transport(), [Refusal(403, "Forbidden")]), bed.world).__aenter__()

    virtually(test)
