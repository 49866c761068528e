"""What a pass over an object is, and what comes of how it ends."""

import asyncio
import itertools

import msgspec
import pytest

import fairlead as fl

Thing = fl.kind("test.example.com/v1", "Thing")
Other = fl.kind("test.example.com/v1", "Other")


def operator(function=None, **options):
    op = fl.Operator("tester")
    if function is not None:
        op.reconcile(Thing, **options)(function)
    return op


def test_a_crash_backs_off_is_told_in_ready_and_does_not_touch_others(virtually, caplog):
    async def test(bed):
        calls = []

        async def reconcile(obj, ctx):
            calls.append((obj.name, bed.world.clock.monotonic()))
            if obj.spec.get("broken"):
                raise ValueError("no such colour: \x1b[31m")

        await bed.make("bad", spec={"broken": True})
        await bed.make("good")
        async with bed.running(operator(reconcile)) as running:
            await asyncio.sleep(60)
            bad = await bed.thing("bad")
            assert bad.condition("Ready")["status"] == "False"
            assert bad.condition("Ready")["reason"] == "ValueError"
            assert (await bed.thing("good")).is_true("Ready")
            times = [time for name, time in calls if name == "bad"]
            assert 10 <= len(times) <= 20  # 5 ms, doubling, up to 30 s
            gaps = [late - early for early, late in itertools.pairwise(times)]
            assert max(gaps) <= 30
            assert gaps[-1] > 8
            assert len([name for name, _ in calls if name == "good"]) <= 2
            assert [str(key) for key in running.failures] == ["reconcile default/bad"]
            await bed.edit("bad", spec={"broken": None})
            await asyncio.sleep(31)
            assert (await bed.thing("bad")).is_true("Ready")
            assert running.failures == {}

    virtually(test)
    assert "Traceback" in caplog.text


def test_a_steady_state_sends_no_request_however_often_it_is_looked_at(virtually):
    async def test(bed):
        passes = []

        async def reconcile(obj, ctx):
            passes.append(obj.name)
            ctx.status(phase="Done")
            ctx.condition("Programmed", True, message="all well")

        for number in range(20):
            await bed.make(f"thing-{number}")
        async with bed.running(operator(reconcile, resync=60)) as running:
            await running.quiet()
            bed.wire.requests.clear()
            seen = len(passes)
            await asyncio.sleep(3600)
            assert len(passes) - seen > 20 * 50
            assert bed.wire.requests == []

    virtually(test)


def test_a_foreign_label_on_the_parent_never_refuses_a_status_write(virtually):
    async def test(bed):
        async def reconcile(obj, ctx):
            await bed.edit(obj.name, metadata={"labels": {"edited-at": str(bed.world.clock.monotonic())}})
            ctx.status(seen=obj.spec.get("turn"))

        await bed.make("thing", spec={"turn": 0})
        op = operator(reconcile)
        async with bed.running(op):
            await asyncio.sleep(1)
            for turn in range(1, 20):
                await bed.edit("thing", spec={"turn": turn})
                await asyncio.sleep(0.5)
            assert (await bed.thing("thing")).status["seen"] == 19
            assert [request for request in bed.wire.requests if request[2] >= 300] == []

    virtually(test)


def test_other_writers_conditions_survive(virtually):
    async def test(bed):
        async def reconcile(obj, ctx):
            ctx.condition("Ours", True)

        thing = await bed.make("thing")
        theirs = {"type": "Theirs", "status": "True", "reason": "Because", "message": "", "lastTransitionTime": None}
        await bed.client.replace(thing | {"status": {"conditions": [theirs]}}, subresource="status")
        async with bed.running(operator(reconcile)) as running:
            await running.quiet()
        types = [condition["type"] for condition in (await bed.thing("thing")).status["conditions"]]
        assert types == ["Theirs", "Ours", "Ready"]

    virtually(test)


def test_wait_is_not_ready_and_not_a_failure(virtually):
    async def test(bed):
        calls = []

        async def reconcile(obj, ctx):
            calls.append(bed.world.clock.monotonic())
            if len(calls) < 4:
                raise fl.Wait("DatabaseStarting", "it takes a minute", after=20)

        await bed.make("thing")
        async with bed.running(operator(reconcile)) as running:
            await running.quiet()
            ready = (await bed.thing("thing")).condition("Ready")
            assert (ready["status"], ready["reason"]) == ("False", "DatabaseStarting")
            assert running.failures == {}
            await asyncio.sleep(100)
            assert (await bed.thing("thing")).is_true("Ready")

    virtually(test)


@pytest.mark.parametrize(
    ("error", "reason", "message"),
    [
        (fl.Terminal("BadSpec", "colour is no colour"), "BadSpec", "colour is no colour"),
        (fl.Terminal("the spec cannot be met"), "Failed", "the spec cannot be met"),
        (fl.Wait("waiting for the moon"), "Waiting", "waiting for the moon"),
    ],
)
def test_what_is_raised_becomes_a_condition_with_a_lawful_reason(virtually, error, reason, message):
    async def test(bed):
        calls = []

        async def reconcile(obj, ctx):
            calls.append(obj.name)
            raise error

        await bed.make("thing")
        async with bed.running(operator(reconcile)) as running:
            await running.quiet()
            seen = len(calls)
            await asyncio.sleep(3600)
            assert len(calls) == seen  # not retried
            ready = (await bed.thing("thing")).condition("Ready")
            assert (ready["status"], ready["reason"], ready["message"]) == ("False", reason, message)

    virtually(test)


def test_after_calls_again_in_time(virtually):
    async def test(bed):
        calls = []

        async def reconcile(obj, ctx):
            calls.append(bed.world.clock.monotonic())
            return fl.After(100)

        await bed.make("thing")
        async with bed.running(operator(reconcile)) as running:
            await running.quiet()
            seen = len(calls)
            await asyncio.sleep(1001)
            assert len(calls) - seen == 10
            assert (await bed.thing("thing")).is_true("Ready")

    virtually(test)


def test_a_strange_return_value_is_refused_with_the_remedy(virtually, caplog):
    async def test(bed):
        async def reconcile(obj, ctx):
            return {"phase": "Done"}

        await bed.make("thing")
        async with bed.running(operator(reconcile)):
            await asyncio.sleep(1)
        assert "fl.After(seconds)" in (await bed.thing("thing")).condition("Ready")["message"]

    virtually(test)


def test_a_function_that_sets_ready_itself_wins(virtually):
    async def test(bed):
        async def reconcile(obj, ctx):
            ctx.condition("Ready", False, "Degraded", "half of it")

        await bed.make("thing")
        async with bed.running(operator(reconcile)) as running:
            await running.quiet()
        assert (await bed.thing("thing")).condition("Ready")["reason"] == "Degraded"

    virtually(test)


def test_ready_may_have_another_name_or_none(virtually):
    async def test(bed):
        async def reconcile(obj, ctx): ...

        await bed.make("thing")
        async with bed.running(operator(reconcile, ready="Programmed")) as running:
            await running.quiet()
        assert [c["type"] for c in (await bed.thing("thing")).status["conditions"]] == ["Programmed"]
        await bed.make("second")
        async with bed.running(operator(reconcile, ready=None)) as running:
            await running.quiet()
        assert "conditions" not in (await bed.thing("second")).status

    virtually(test)


def test_objects_that_when_refuses_are_left_alone(virtually):
    async def test(bed):
        async def reconcile(obj, ctx): ...

        await bed.make("mine", spec={"class": "mine"})
        await bed.make("theirs", spec={"class": "theirs"})
        op = operator(reconcile, when=lambda obj: obj.spec.get("class") == "mine")
        async with bed.running(op) as running:
            await running.quiet()
            assert (await bed.thing("theirs")).status == {}
            assert (await bed.thing("mine")).is_true("Ready")
            await bed.edit("theirs", spec={"class": "mine"})
            await asyncio.sleep(1)
            assert (await bed.thing("theirs")).is_true("Ready")

    virtually(test)


def test_a_mapped_watch_wakes_what_the_old_and_the_new_object_name(virtually):
    async def test(bed):
        woken = []

        async def reconcile(obj, ctx):
            woken.append(obj.name)

        def things_of(other, view):
            assert view.get(Thing, "a", "default") is not None
            return [other.spec["thing"]]

        await bed.make("a")
        await bed.make("b")
        await bed.make("pointer", kind=Other, spec={"thing": "a"})
        async with bed.running(operator(reconcile, watches={Other: things_of})) as running:
            await running.quiet()
            woken.clear()
            await bed.client.patch(
                Other, "pointer", "default", {"spec": {"thing": "b"}}, type="application/merge-patch+json"
            )
            await asyncio.sleep(1)
            assert sorted(woken) == ["a", "b"]

    virtually(test)


def test_an_index_finds_objects_by_what_is_in_them(virtually):
    async def test(bed):
        found = {}

        async def reconcile(obj, ctx):
            found[obj.name] = sorted(other.name for other in ctx.indexed(Other, "thing", obj.name))

        op = operator(reconcile, watches={Other: lambda other: [other.spec["thing"]]})
        op.index(Other, "thing")(lambda other: [other.spec["thing"]])
        await bed.make("a")
        for name, thing in (("x", "a"), ("y", "a"), ("z", "b")):
            await bed.make(name, kind=Other, spec={"thing": thing})
        async with bed.running(op) as running:
            await running.quiet()
            assert found == {"a": ["x", "y"]}
            await bed.client.delete(Other, "x", "default")
            await asyncio.sleep(1)
            assert found == {"a": ["y"]}

    virtually(test)


def test_a_typed_model_is_applied_as_what_it_stands_for(virtually):
    class Metadata(msgspec.Struct):
        name: str

    class Settings(msgspec.Struct, rename="camel"):
        metadata: Metadata
        data: dict[str, str]
        api_version: str = "v1"
        kind: str = "ConfigMap"

    async def test(bed):
        async def reconcile(obj, ctx):
            await ctx.apply(Settings(Metadata(obj.name), {"colour": "blue"}))

        await bed.make("thing")
        async with bed.running(operator(reconcile, owns=[fl.ConfigMap])) as running:
            await running.quiet()
            assert (await bed.client.get(fl.ConfigMap, "thing", "default"))["data"] == {"colour": "blue"}

    virtually(test)


def test_reading_what_is_not_watched_says_what_to_do(virtually, caplog):
    async def test(bed):
        async def reconcile(obj, ctx):
            ctx.get(fl.Secret, "credentials")

        await bed.make("thing")
        async with bed.running(operator(reconcile)):
            await asyncio.sleep(1)
        message = (await bed.thing("thing")).condition("Ready")["message"]
        assert "Secret is not watched" in message
        assert "ctx.live" in message

    virtually(test)


class TestCleanup:
    def test_the_finalizer_is_on_before_the_first_effect_and_off_after_the_cleanup(self, virtually):
        async def test(bed):
            seen = []

            async def reconcile(obj, ctx):
                seen.append(("reconcile", (await bed.thing(obj.name)).finalizers))

            async def leave(obj, ctx):
                seen.append(("cleanup", (await bed.thing(obj.name)).finalizers))

            op = operator(reconcile)
            op.cleanup(Thing)(leave)
            await bed.make("thing")
            async with bed.running(op) as running:
                await running.quiet()
                assert seen[0] == ("reconcile", ["test.example.com/tester"])
                await bed.client.delete(Thing, "thing", "default")
                await asyncio.sleep(1)
                assert seen[-1] == ("cleanup", ["test.example.com/tester"])
                assert [name for name, _ in seen].count("cleanup") == 1
                assert (await bed.client.list(Thing, "default")).items == []

        virtually(test)

    def test_it_is_retried_until_it_returns_and_foreign_finalizers_survive(self, virtually):
        async def test(bed):
            tries = []

            async def reconcile(obj, ctx): ...

            async def leave(obj, ctx):
                tries.append(obj.name)
                if len(tries) == 1:
                    raise OSError("the backend is away")
                if len(tries) == 2:
                    return fl.After(10)
                return None

            op = operator(reconcile)
            op.cleanup(Thing, finalizer="cloud.example.com/finalizer")(leave)
            await bed.make("thing", metadata={"name": "thing", "namespace": "default", "finalizers": ["other.io/keep"]})
            async with bed.running(op) as running:
                await running.quiet()
                await bed.client.delete(Thing, "thing", "default")
                await asyncio.sleep(60)
                assert len(tries) == 3
                assert (await bed.thing("thing")).finalizers == ["other.io/keep"]

        virtually(test)

    def test_an_object_that_is_deleted_already_gets_no_finalizer_and_no_pass(self, virtually):
        async def test(bed):
            calls = []

            async def reconcile(obj, ctx):
                calls.append(obj.name)

            async def leave(obj, ctx):
                calls.append("cleanup")

            op = operator(reconcile)
            op.cleanup(Thing)(leave)
            await bed.make("thing", metadata={"name": "thing", "namespace": "default", "finalizers": ["other.io/keep"]})
            await bed.client.delete(Thing, "thing", "default")
            async with bed.running(op) as running:
                await running.quiet()
            assert calls == []
            assert (await bed.thing("thing")).finalizers == ["other.io/keep"]

        virtually(test)

    def test_a_cleanup_needs_a_reconcile(self, virtually):
        async def test(bed):
            op = fl.Operator("tester")
            op.cleanup(Thing)(lambda obj, ctx: None)
            with pytest.raises(ValueError, match="declare both"):
                bed.running(op)

        virtually(test)
