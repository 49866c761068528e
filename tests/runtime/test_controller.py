"""Passes: what a controller does for each way in which a handler can end."""

import asyncio
import itertools

import msgspec
import pytest

import fairlead as fl
from fairlead.api.errors import ApiError
from fairlead.client.client import PatchType
from fairlead.runtime.definitions import permissive

Thing = fl.kind("test.example.com/v1", "Thing")
Other = fl.kind("test.example.com/v1", "Other")


def operator(function=None, **options):
    op = fl.Operator("tester")
    if function is not None:
        op.reconcile(Thing, **options)(function)
    return op


def test_exception_backs_off_sets_ready_and_does_not_affect_other_objects(virtually, caplog):
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
            assert [str(key) for key in running.failures] == ["thing default/bad"]
            await bed.edit("bad", spec={"broken": None})
            await asyncio.sleep(31)
            assert (await bed.thing("bad")).is_true("Ready")
            assert running.failures == {}

    virtually(test)
    assert "Traceback" in caplog.text


def test_steady_state_sends_no_request_on_resync(virtually):
    async def test(bed):
        passes = []

        async def reconcile(obj, ctx):
            passes.append(obj.name)
            ctx.status(phase="Done")
            ctx.condition("Programmed", True, message="all well")

        for number in range(20):
            await bed.make(f"thing-{number}")
        async with bed.running(operator(reconcile, resync=60)) as running:
            await running.wait_until_idle()
            bed.wire.requests.clear()
            seen = len(passes)
            await asyncio.sleep(3600)
            assert len(passes) - seen > 20 * 50
            assert bed.wire.requests == []

    virtually(test)


def test_foreign_label_on_the_object_does_not_fail_a_status_write(virtually):
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


def test_conditions_of_other_writers_stay(virtually):
    async def test(bed):
        async def reconcile(obj, ctx):
            ctx.condition("Ours", True)

        thing = await bed.make("thing")
        theirs = {"type": "Theirs", "status": "True", "reason": "Because", "message": "", "lastTransitionTime": None}
        await bed.client.replace(thing | {"status": {"conditions": [theirs]}}, subresource="status")
        async with bed.running(operator(reconcile)) as running:
            await running.wait_until_idle()
        types = [condition["type"] for condition in (await bed.thing("thing")).status["conditions"]]
        assert types == ["Theirs", "Ours", "Ready"]

    virtually(test)


def test_wait_sets_ready_false_and_counts_no_error(virtually):
    async def test(bed):
        calls = []

        async def reconcile(obj, ctx):
            calls.append(bed.world.clock.monotonic())
            if len(calls) < 4:
                raise fl.Wait("DatabaseStarting", "it takes a minute", after=20)

        await bed.make("thing")
        async with bed.running(operator(reconcile)) as running:
            await running.wait_until_idle()
            ready = (await bed.thing("thing")).condition("Ready")
            assert (ready["status"], ready["reason"]) == ("False", "DatabaseStarting")
            assert running.failures == {}
            await asyncio.sleep(100)
            assert (await bed.thing("thing")).is_true("Ready")

    virtually(test)


@pytest.mark.parametrize(
    ("error", "reason", "message"),
    [
        (fl.Terminal("BadSpec", "the colour is unknown"), "BadSpec", "the colour is unknown"),
        (fl.Terminal("the spec cannot be met"), "Failed", "the spec cannot be met"),
        (fl.Wait("waiting for the moon"), "Waiting", "waiting for the moon"),
    ],
)
def test_exception_becomes_a_condition_with_a_valid_reason(virtually, error, reason, message):
    async def test(bed):
        calls = []

        async def reconcile(obj, ctx):
            calls.append(obj.name)
            raise error

        await bed.make("thing")
        async with bed.running(operator(reconcile)) as running:
            await running.wait_until_idle()
            seen = len(calls)
            await asyncio.sleep(3600)
            assert len(calls) == seen  # not retried
            ready = (await bed.thing("thing")).condition("Ready")
            assert (ready["status"], ready["reason"], ready["message"]) == ("False", reason, message)

    virtually(test)


def refused(reason, code, *causes):
    details = {"causes": [{"field": "spec", "message": cause} for cause in causes]}
    return ApiError.of({"reason": reason, "code": code, "message": f"{reason} it is", "details": details})


REFUSED = [refused("Invalid", 422, "no such colour"), refused("BadRequest", 400), refused("RequestEntityTooLarge", 413)]


@pytest.mark.parametrize("error", REFUSED, ids=lambda error: error.reason)
def test_rejected_content_is_retried_every_five_minutes_and_on_change(virtually, error):
    async def test(bed):
        calls = []

        async def reconcile(obj, ctx):
            calls.append(bed.world.clock.monotonic())
            if obj.spec.get("colour") != "red":
                raise error

        await bed.make("thing", spec={"colour": "loud"})
        async with bed.running(operator(reconcile)) as running:
            await asyncio.sleep(1)
            ready = (await bed.thing("thing")).condition("Ready")
            assert (ready["status"], ready["reason"], ready["message"]) == ("False", error.reason, str(error))
            assert list(running.failures.values()) == [str(error)]
            calls.clear()
            await asyncio.sleep(1000)
            assert len(calls) == 3
            await bed.edit("thing", spec={"colour": "red"})
            await asyncio.sleep(0.1)
            assert (await bed.thing("thing")).is_true("Ready")
            assert running.failures == {}

    virtually(test)


@pytest.mark.parametrize(
    "error",
    [refused("Invalid", 422), refused("Forbidden", 403), refused("", 500)],
    ids=["a guard that failed", "a right that is missing", "a server in trouble"],
)
def test_temporary_rejection_is_retried_soon(virtually, error):
    async def test(bed):
        calls = []

        async def reconcile(obj, ctx):
            calls.append(obj.name)
            if len(calls) < 4:
                raise error

        await bed.make("thing")
        async with bed.running(operator(reconcile)):
            await asyncio.sleep(1)
            assert (await bed.thing("thing")).is_true("Ready")

    virtually(test)


def test_invalid_child_is_sent_a_few_times_only(virtually):
    async def test(bed):
        async def reconcile(obj, ctx):
            await ctx.apply(fl.ConfigMap("good", data={"key": "value"}))
            await ctx.apply(fl.ConfigMap("bad", data={"no key!": "value"}))

        await bed.make("thing")
        async with bed.running(operator(reconcile, owns=[fl.ConfigMap])):
            await asyncio.sleep(590)
            ready = (await bed.thing("thing")).condition("Ready")
            assert (ready["status"], ready["reason"]) == ("False", "Invalid")
            assert "no key!" in ready["message"]
            assert len([code for method, path, code in bed.wire.requests if code == 422]) <= 4

    virtually(test)


def test_requeue_after_starts_the_next_pass_in_time(virtually):
    async def test(bed):
        calls = []

        async def reconcile(obj, ctx):
            calls.append(bed.world.clock.monotonic())
            raise fl.RequeueAfter(100)

        await bed.make("thing")
        async with bed.running(operator(reconcile)) as running:
            await running.wait_until_idle()
            seen = len(calls)
            await asyncio.sleep(1001)
            assert len(calls) - seen == 10
            assert (await bed.thing("thing")).is_true("Ready")

    virtually(test)


def test_returned_value_is_rejected_with_the_remedy(virtually, caplog):
    async def test(bed):
        async def reconcile(obj, ctx):
            return {"phase": "Done"}

        await bed.make("thing")
        async with bed.running(operator(reconcile)):
            await asyncio.sleep(1)
        assert "fl.RequeueAfter(seconds)" in (await bed.thing("thing")).condition("Ready")["message"]

    virtually(test)


def test_ready_condition_of_the_handler_wins(virtually):
    async def test(bed):
        async def reconcile(obj, ctx):
            ctx.condition("Ready", False, "Degraded", "half of it")

        await bed.make("thing")
        async with bed.running(operator(reconcile)) as running:
            await running.wait_until_idle()
        assert (await bed.thing("thing")).condition("Ready")["reason"] == "Degraded"

    virtually(test)


def test_ready_condition_can_be_renamed_or_disabled(virtually):
    async def test(bed):
        async def reconcile(obj, ctx): ...

        await bed.make("thing")
        async with bed.running(operator(reconcile, ready="Programmed")) as running:
            await running.wait_until_idle()
        assert [c["type"] for c in (await bed.thing("thing")).status["conditions"]] == ["Programmed"]
        await bed.make("second")
        async with bed.running(operator(reconcile, ready=None)) as running:
            await running.wait_until_idle()
        assert "conditions" not in (await bed.thing("second")).status

    virtually(test)


def definition(kind, *, status, schema=None):
    crd = permissive(kind)
    (version,) = crd["spec"]["versions"]
    if not status:
        del version["subresources"]
    if schema:
        version["schema"]["openAPIV3Schema"]["properties"]["status"] = {"type": "object", "properties": schema}
    return crd


def test_rejected_status_does_not_delay_requeue_after(virtually):
    async def test(bed):
        narrow = fl.kind("test.example.com/v1", "Narrow")
        await bed.client.create(definition(narrow, status=True, schema={"phase": {"type": "string"}}))
        await asyncio.sleep(1)
        op, calls = fl.Operator("tester"), []

        @op.reconcile(narrow)
        async def reconcile(obj, ctx):
            calls.append(obj.name)
            ctx.status(phase=5)
            raise fl.RequeueAfter(20)

        await bed.make("thing", kind=narrow)
        async with bed.running(op):
            await asyncio.sleep(1)
            calls.clear()
            await asyncio.sleep(101)
            assert len(calls) == 5

    virtually(test)


def test_status_schema_without_conditions_causes_no_repeated_writes(virtually):
    async def test(bed):
        narrow = fl.kind("test.example.com/v1", "Narrow")
        await bed.client.create(definition(narrow, status=True, schema={"phase": {"type": "string"}}))
        await asyncio.sleep(1)
        op = fl.Operator("tester")

        @op.reconcile(narrow, resync=60)
        async def reconcile(obj, ctx):
            ctx.status(phase="Done")

        for number in range(3):
            await bed.make(f"narrow-{number}", kind=narrow)
        async with bed.running(op) as running:
            await running.wait_until_idle()
            assert (await bed.client.get(narrow, "narrow-0", "default")).status == {"phase": "Done"}
            await bed.client.patch(
                narrow, "narrow-0", "default", {"metadata": {"labels": {"a": "b"}}}, type=PatchType.MERGE
            )
            bed.wire.requests.clear()
            await asyncio.sleep(600)
            assert bed.wire.requests == []

    virtually(test)


def test_kind_without_status_is_reconciled_and_setting_one_is_reported(virtually, caplog):
    async def test(bed):
        bare = fl.kind("test.example.com/v1", "Bare")
        await bed.client.create(definition(bare, status=False))
        await asyncio.sleep(1)
        passes = []
        op = fl.Operator("tester")

        @op.reconcile(bare)
        async def reconcile(obj, ctx):
            passes.append(obj.name)
            if obj.spec.get("report"):
                ctx.status(phase="Done")

        await bed.make("quiet", kind=bare)
        await bed.make("loud", kind=bare, spec={"report": True})
        async with bed.running(op, tries=2) as running:
            await running.wait_until_idle()
            assert sorted(passes) == ["loud", "quiet"]
            (message,) = running.failures.values()
            assert "no status subresource" in message

    virtually(test)


def test_each_controller_has_its_own_field_manager(virtually):
    async def test(bed):
        op = fl.Operator("tester")

        @op.reconcile(Thing, owns=[fl.ConfigMap])
        async def things(obj, ctx):
            await ctx.apply(fl.ConfigMap(f"thing-{obj.name}", data={"a": "b"}))

        @op.reconcile(Other, owns=[fl.ConfigMap])
        async def other_things(obj, ctx):
            await ctx.apply(fl.ConfigMap(f"other-{obj.name}", data={"a": "b"}))

        await bed.make("x")
        await bed.make("y", kind=Other)
        async with bed.running(op) as running:
            await running.wait_until_idle()
        managers = {
            child.name: [entry["manager"] for entry in child.metadata["managedFields"]]
            for child in (await bed.client.list(fl.ConfigMap, "default")).items
        }
        assert managers == {"thing-x": ["tester/thing"], "other-y": ["tester/other"]}

    virtually(test)


def test_pass_after_an_unknown_outcome_starts_with_a_live_read(virtually, counting):
    class Losing(counting):
        """Delivers the first merge patch and loses its answer."""

        lost = False

        async def request(self, request):
            answer = await super().request(request)
            if "merge" in (request.headers or {}).get("Content-Type", "") and not self.lost:
                self.lost = True
                raise ConnectionResetError("lost")
            return answer

    async def test(bed):
        passes = []

        async def reconcile(obj, ctx):
            passes.append(list(wire.requests))
            if len(passes) == 1:
                label = {"metadata": {"labels": {"seen": "yes"}}}
                await ctx.unguarded.patch(Thing, obj.name, obj.namespace, label, type=PatchType.MERGE)

        await bed.make("x")
        wire = Losing(bed.server.transport())
        async with operator(reconcile).running(wire, bed.world) as running:
            await running.wait_until_idle()
        between = passes[1][len(passes[0]) :]
        assert [method for method, path, _ in between if path.endswith("/things/x")] == ["PATCH", "GET"]

    virtually(test)


def test_lost_answer_of_a_write_is_resolved_by_a_read(virtually):
    class Losing:
        """Delivers every write, and loses the answer of every second one."""

        def __init__(self, inner):
            self._inner = inner
            self._writes = 0

        async def request(self, request):
            answer = await self._inner.request(request)
            self._writes += request.method == "PATCH"
            if request.method == "PATCH" and self._writes % 2:
                raise ConnectionResetError("lost")
            return answer

        async def stream(self, request):
            return await self._inner.stream(request)

        async def close(self): ...

    async def test(bed):
        async def reconcile(obj, ctx):
            child = await ctx.apply(fl.ConfigMap(obj.name, data={"a": "b"}))
            ctx.status(child=child.uid)

        for number in range(10):
            await bed.make(f"thing-{number}")
        op = operator(reconcile, owns=[fl.ConfigMap])
        op.cleanup(Thing)(reconcile)
        async with op.running(Losing(bed.server.transport()), bed.world) as running:
            await running.wait_until_idle()
            assert running.failures == {}
        things = (await bed.client.list(Thing, "default")).items
        assert all(thing.is_true("Ready") for thing in things)
        assert all(thing.finalizers == ["test.example.com/tester"] for thing in things)

    virtually(test)


def test_migrated_field_is_removed_when_the_payload_leaves_it_out(virtually):
    async def test(bed):
        async def reconcile(obj, ctx):
            if (child := ctx.get(fl.ConfigMap, obj.name)) is not None:
                await ctx.migrate(child, fields=["data.old"], managers=["somebody-else"])
            await ctx.apply(fl.ConfigMap(obj.name, data={"new": "1"}), adopt=True)

        await bed.make("thing")
        await bed.client.create(fl.ConfigMap("thing", "default", data={"old": "1", "theirs": "1"}))
        async with bed.running(operator(reconcile, owns=[fl.ConfigMap])) as running:
            await running.wait_until_idle()
            assert (await bed.client.get(fl.ConfigMap, "thing", "default"))["data"] == {"new": "1", "theirs": "1"}
            bed.wire.requests.clear()
            running.resync()
            await running.wait_until_idle()
            assert bed.wire.requests == []

    virtually(test)


def test_fields_of_two_field_managers_can_be_migrated_in_turn(virtually):
    async def test(bed):
        async def reconcile(obj, ctx):
            if (child := ctx.get(fl.ConfigMap, obj.name)) is not None:
                await ctx.migrate(child, fields=["data"], managers=["one"])
                await ctx.migrate(child, fields=["data"], managers=["two"])
            await ctx.apply(fl.ConfigMap(obj.name, data={"new": "1"}), adopt=True)

        await bed.make("thing")
        child = await bed.client.create(fl.ConfigMap("thing", "default", data={"old": "1"}), field_manager="one")
        await bed.client.replace(fl.Object({**child, "data": {"old": "1", "older": "1"}}), field_manager="two")
        async with bed.running(operator(reconcile, owns=[fl.ConfigMap])) as running:
            await running.wait_until_idle()
        assert (await bed.client.get(fl.ConfigMap, "thing", "default"))["data"] == {"new": "1"}

    virtually(test)


def test_objects_for_which_when_is_false_are_skipped(virtually):
    async def test(bed):
        async def reconcile(obj, ctx): ...

        await bed.make("mine", spec={"class": "mine"})
        await bed.make("theirs", spec={"class": "theirs"})
        op = operator(reconcile, when=lambda obj: obj.spec.get("class") == "mine")
        async with bed.running(op) as running:
            await running.wait_until_idle()
            assert (await bed.thing("theirs")).status == {}
            assert (await bed.thing("mine")).is_true("Ready")
            await bed.edit("theirs", spec={"class": "mine"})
            await asyncio.sleep(1)
            assert (await bed.thing("theirs")).is_true("Ready")

    virtually(test)


def test_watch_function_maps_the_old_and_the_new_object(virtually):
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
            await running.wait_until_idle()
            woken.clear()
            await bed.client.patch(
                Other, "pointer", "default", {"spec": {"thing": "b"}}, type="application/merge-patch+json"
            )
            await asyncio.sleep(1)
            assert sorted(woken) == ["a", "b"]

    virtually(test)


def test_index_finds_objects_by_value(virtually):
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
            await running.wait_until_idle()
            assert found == {"a": ["x", "y"]}
            await bed.client.delete(Other, "x", "default")
            await asyncio.sleep(1)
            assert found == {"a": ["y"]}

    virtually(test)


def test_model_is_applied_as_a_dict(virtually):
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
            await running.wait_until_idle()
            assert (await bed.client.get(fl.ConfigMap, "thing", "default"))["data"] == {"colour": "blue"}

    virtually(test)


def test_reading_an_unwatched_kind_names_the_remedy(virtually, caplog):
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
    def test_finalizer_is_added_before_the_first_pass_and_removed_after_cleanup(self, virtually):
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
                await running.wait_until_idle()
                assert seen[0] == ("reconcile", ["test.example.com/tester"])
                await bed.client.delete(Thing, "thing", "default")
                await asyncio.sleep(1)
                assert seen[-1] == ("cleanup", ["test.example.com/tester"])
                assert [name for name, _ in seen].count("cleanup") == 1
                assert (await bed.client.list(Thing, "default")).items == []

        virtually(test)

    def test_cleanup_is_retried_until_it_returns_and_foreign_finalizers_stay(self, virtually):
        async def test(bed):
            tries = []

            async def reconcile(obj, ctx): ...

            async def leave(obj, ctx):
                tries.append(obj.name)
                if len(tries) == 1:
                    raise OSError("the backend is away")
                if len(tries) == 2:
                    raise fl.RequeueAfter(10)

            op = operator(reconcile)
            op.cleanup(Thing, finalizer="cloud.example.com/finalizer")(leave)
            await bed.make("thing", metadata={"name": "thing", "namespace": "default", "finalizers": ["other.io/keep"]})
            async with bed.running(op) as running:
                await running.wait_until_idle()
                await bed.client.delete(Thing, "thing", "default")
                await asyncio.sleep(60)
                assert len(tries) == 3
                assert (await bed.thing("thing")).finalizers == ["other.io/keep"]

        virtually(test)

    def test_deleting_object_gets_no_finalizer_and_no_pass(self, virtually):
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
                await running.wait_until_idle()
            assert calls == []
            assert (await bed.thing("thing")).finalizers == ["other.io/keep"]

        virtually(test)

    def test_cleanup_needs_a_reconcile_handler(self, virtually):
        async def test(bed):
            op = fl.Operator("tester")
            op.cleanup(Thing)(lambda obj, ctx: None)
            with pytest.raises(ValueError, match="declare both"):
                bed.running(op)

        virtually(test)


def test_cancellation_inside_a_handler_fails_the_pass(virtually):
    async def test(bed):
        passes = []

        async def reconcile(obj, ctx):
            passes.append(obj.name)
            if len(passes) == 1:
                work = asyncio.create_task(asyncio.sleep(10))
                work.cancel()
                await work
            ctx.status(phase="Done")

        await bed.make("thing")
        async with bed.running(operator(reconcile)) as running:
            await running.wait_until_idle()
        assert (await bed.thing("thing")).status["phase"] == "Done"
        assert running.metrics.registry.get_sample_value(
            "controller_runtime_reconcile_errors_total", {"controller": "thing"}
        )

    virtually(test)
