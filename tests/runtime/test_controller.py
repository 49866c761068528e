"""Tests of what a controller does after a handler returns, raises, or asks for a retry."""

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


def test_exception_backs_off_sets_ready_and_does_not_affect_other_objects(run_in_virtual_time, caplog):
    async def test(cluster):
        calls = []

        async def reconcile(obj, ctx):
            calls.append((obj.name, cluster.world.clock.monotonic()))
            if obj.spec.get("broken"):
                raise ValueError("no such colour: \x1b[31m")

        await cluster.create("bad", spec={"broken": True})
        await cluster.create("good")
        async with cluster.running(operator(reconcile)) as running:
            await asyncio.sleep(60)
            bad_thing = await cluster.get_thing("bad")
            assert bad_thing.condition("Ready")["status"] == "False"
            assert bad_thing.condition("Ready")["reason"] == "ValueError"
            assert (await cluster.get_thing("good")).is_true("Ready")
            times = [time for name, time in calls if name == "bad"]
            assert 10 <= len(times) <= 20  # 5 ms, doubling, up to 30 s
            gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
            assert max(gaps) <= 30
            assert gaps[-1] > 8
            assert len([name for name, _ in calls if name == "good"]) <= 2
            assert [str(key) for key in running.failures] == ["thing default/bad"]
            await cluster.patch_thing("bad", spec={"broken": None})
            await asyncio.sleep(31)
            assert (await cluster.get_thing("bad")).is_true("Ready")
            assert running.failures == {}

    run_in_virtual_time(test)
    assert "Traceback" in caplog.text


def test_steady_state_sends_no_request_on_resync(run_in_virtual_time):
    async def test(cluster):
        passes = []

        async def reconcile(obj, ctx):
            passes.append(obj.name)
            ctx.status(phase="Done")
            ctx.condition("Programmed", True, message="all well")

        for number in range(20):
            await cluster.create(f"thing-{number}")
        async with cluster.running(operator(reconcile, resync=60)) as running:
            await running.wait_until_idle()
            cluster.transport.requests.clear()
            seen = len(passes)
            await asyncio.sleep(3600)
            assert len(passes) - seen > 20 * 50
            assert cluster.transport.requests == []

    run_in_virtual_time(test)


def test_foreign_label_on_the_object_does_not_fail_a_status_write(run_in_virtual_time):
    async def test(cluster):
        async def reconcile(obj, ctx):
            await cluster.patch_thing(
                obj.name, metadata={"labels": {"edited-at": str(cluster.world.clock.monotonic())}}
            )
            ctx.status(seen=obj.spec.get("turn"))

        await cluster.create("thing", spec={"turn": 0})
        op = operator(reconcile)
        async with cluster.running(op):
            await asyncio.sleep(1)
            for round_number in range(1, 20):
                await cluster.patch_thing("thing", spec={"turn": round_number})
                await asyncio.sleep(0.5)
            assert (await cluster.get_thing("thing")).status["seen"] == 19
            assert [request for request in cluster.transport.requests if request[2] >= 300] == []

    run_in_virtual_time(test)


def test_conditions_of_other_writers_stay(run_in_virtual_time):
    async def test(cluster):
        async def reconcile(obj, ctx):
            ctx.condition("Ours", True)

        thing = await cluster.create("thing")
        foreign_condition = {
            "type": "Theirs",
            "status": "True",
            "reason": "Because",
            "message": "",
            "lastTransitionTime": None,
        }
        await cluster.client.replace(thing | {"status": {"conditions": [foreign_condition]}}, subresource="status")
        async with cluster.running(operator(reconcile)) as running:
            await running.wait_until_idle()
        condition_types = [condition["type"] for condition in (await cluster.get_thing("thing")).status["conditions"]]
        assert condition_types == ["Theirs", "Ours", "Ready"]

    run_in_virtual_time(test)


def test_wait_sets_ready_false_and_counts_no_error(run_in_virtual_time):
    async def test(cluster):
        calls = []

        async def reconcile(obj, ctx):
            calls.append(cluster.world.clock.monotonic())
            if len(calls) < 4:
                raise fl.Wait("DatabaseStarting", "it takes a minute", after=20)

        await cluster.create("thing")
        async with cluster.running(operator(reconcile)) as running:
            await running.wait_until_idle()
            ready_condition = (await cluster.get_thing("thing")).condition("Ready")
            assert (ready_condition["status"], ready_condition["reason"]) == ("False", "DatabaseStarting")
            assert running.failures == {}
            await asyncio.sleep(100)
            assert (await cluster.get_thing("thing")).is_true("Ready")

    run_in_virtual_time(test)


@pytest.mark.parametrize(
    ("error", "reason", "message"),
    [
        (fl.Terminal("BadSpec", "the colour is unknown"), "BadSpec", "the colour is unknown"),
        (fl.Terminal("the spec cannot be met"), "Failed", "the spec cannot be met"),
        (fl.Wait("waiting for the moon"), "Waiting", "waiting for the moon"),
    ],
)
def test_exception_becomes_a_condition_with_a_valid_reason(run_in_virtual_time, error, reason, message):
    async def test(cluster):
        calls = []

        async def reconcile(obj, ctx):
            calls.append(obj.name)
            raise error

        await cluster.create("thing")
        async with cluster.running(operator(reconcile)) as running:
            await running.wait_until_idle()
            seen = len(calls)
            await asyncio.sleep(3600)
            assert len(calls) == seen  # not retried
            ready_condition = (await cluster.get_thing("thing")).condition("Ready")
            assert (ready_condition["status"], ready_condition["reason"], ready_condition["message"]) == (
                "False",
                reason,
                message,
            )

    run_in_virtual_time(test)


def api_error_of(reason, code, *causes):
    details = {"causes": [{"field": "spec", "message": cause} for cause in causes]}
    return ApiError.of({"reason": reason, "code": code, "message": f"{reason} it is", "details": details})


REJECTIONS = [
    api_error_of("Invalid", 422, "no such colour"),
    api_error_of("BadRequest", 400),
    api_error_of("RequestEntityTooLarge", 413),
]


@pytest.mark.parametrize("error", REJECTIONS, ids=lambda error: error.reason)
def test_rejected_content_is_retried_every_five_minutes_and_on_change(run_in_virtual_time, error):
    async def test(cluster):
        calls = []

        async def reconcile(obj, ctx):
            calls.append(cluster.world.clock.monotonic())
            if obj.spec.get("colour") != "red":
                raise error

        await cluster.create("thing", spec={"colour": "loud"})
        async with cluster.running(operator(reconcile)) as running:
            await asyncio.sleep(1)
            ready_condition = (await cluster.get_thing("thing")).condition("Ready")
            assert (ready_condition["status"], ready_condition["reason"], ready_condition["message"]) == (
                "False",
                error.reason,
                str(error),
            )
            assert list(running.failures.values()) == [f"{error.reason}: {error}"]
            calls.clear()
            await asyncio.sleep(1000)
            assert len(calls) == 3
            await cluster.patch_thing("thing", spec={"colour": "red"})
            await asyncio.sleep(0.1)
            assert (await cluster.get_thing("thing")).is_true("Ready")
            assert running.failures == {}

    run_in_virtual_time(test)


@pytest.mark.parametrize(
    "error",
    [api_error_of("Invalid", 422), api_error_of("Forbidden", 403), api_error_of("", 500)],
    ids=["a guard that failed", "a right that is missing", "a server in trouble"],
)
def test_temporary_rejection_is_retried_soon(run_in_virtual_time, error):
    async def test(cluster):
        calls = []

        async def reconcile(obj, ctx):
            calls.append(obj.name)
            if len(calls) < 4:
                raise error

        await cluster.create("thing")
        async with cluster.running(operator(reconcile)):
            await asyncio.sleep(1)
            assert (await cluster.get_thing("thing")).is_true("Ready")

    run_in_virtual_time(test)


def test_invalid_child_is_sent_a_few_times_only(run_in_virtual_time):
    async def test(cluster):
        async def reconcile(obj, ctx):
            await ctx.apply(fl.ConfigMap("good", data={"key": "value"}))
            await ctx.apply(fl.ConfigMap("bad", data={"no key!": "value"}))

        await cluster.create("thing")
        async with cluster.running(operator(reconcile, owns=[fl.ConfigMap])):
            await asyncio.sleep(590)
            ready_condition = (await cluster.get_thing("thing")).condition("Ready")
            assert (ready_condition["status"], ready_condition["reason"]) == ("False", "Invalid")
            assert "no key!" in ready_condition["message"]
            assert len([code for method, path, code in cluster.transport.requests if code == 422]) <= 4

    run_in_virtual_time(test)


def test_requeue_after_starts_the_next_pass_in_time(run_in_virtual_time):
    async def test(cluster):
        calls = []

        async def reconcile(obj, ctx):
            calls.append(cluster.world.clock.monotonic())
            raise fl.RequeueAfter(100)

        await cluster.create("thing")
        async with cluster.running(operator(reconcile)) as running:
            await running.wait_until_idle()
            seen = len(calls)
            await asyncio.sleep(1001)
            assert len(calls) - seen == 10
            assert (await cluster.get_thing("thing")).is_true("Ready")

    run_in_virtual_time(test)


def test_returned_value_is_rejected_with_the_remedy(run_in_virtual_time, caplog):
    async def test(cluster):
        async def reconcile(obj, ctx):
            return {"phase": "Done"}

        await cluster.create("thing")
        async with cluster.running(operator(reconcile)):
            await asyncio.sleep(1)
        assert "fl.RequeueAfter(seconds)" in (await cluster.get_thing("thing")).condition("Ready")["message"]

    run_in_virtual_time(test)


def test_ready_condition_of_the_handler_wins(run_in_virtual_time):
    async def test(cluster):
        async def reconcile(obj, ctx):
            ctx.condition("Ready", False, "Degraded", "half of it")

        await cluster.create("thing")
        async with cluster.running(operator(reconcile)) as running:
            await running.wait_until_idle()
        assert (await cluster.get_thing("thing")).condition("Ready")["reason"] == "Degraded"

    run_in_virtual_time(test)


def test_ready_condition_can_be_renamed_or_disabled(run_in_virtual_time):
    async def test(cluster):
        async def reconcile(obj, ctx): ...

        await cluster.create("thing")
        async with cluster.running(operator(reconcile, ready="Programmed")) as running:
            await running.wait_until_idle()
        assert [c["type"] for c in (await cluster.get_thing("thing")).status["conditions"]] == ["Programmed"]
        await cluster.create("second")
        async with cluster.running(operator(reconcile, ready=None)) as running:
            await running.wait_until_idle()
        assert "conditions" not in (await cluster.get_thing("second")).status

    run_in_virtual_time(test)


def definition(kind, *, status, schema=None):
    crd = permissive(kind)
    (version,) = crd["spec"]["versions"]
    if not status:
        del version["subresources"]
    if schema:
        version["schema"]["openAPIV3Schema"]["properties"]["status"] = {"type": "object", "properties": schema}
    return crd


def test_rejected_status_does_not_delay_requeue_after(run_in_virtual_time):
    async def test(cluster):
        narrow_kind = fl.kind("test.example.com/v1", "Narrow")
        await cluster.client.create(definition(narrow_kind, status=True, schema={"phase": {"type": "string"}}))
        await asyncio.sleep(1)
        op, calls = fl.Operator("tester"), []

        @op.reconcile(narrow_kind)
        async def reconcile(obj, ctx):
            calls.append(obj.name)
            ctx.status(phase=5)
            raise fl.RequeueAfter(20)

        await cluster.create("thing", kind=narrow_kind)
        async with cluster.running(op):
            await asyncio.sleep(1)
            calls.clear()
            await asyncio.sleep(101)
            assert len(calls) == 5

    run_in_virtual_time(test)


def test_status_schema_without_conditions_causes_no_repeated_writes(run_in_virtual_time):
    async def test(cluster):
        narrow_kind = fl.kind("test.example.com/v1", "Narrow")
        await cluster.client.create(definition(narrow_kind, status=True, schema={"phase": {"type": "string"}}))
        await asyncio.sleep(1)
        op = fl.Operator("tester")

        @op.reconcile(narrow_kind, resync=60)
        async def reconcile(obj, ctx):
            ctx.status(phase="Done")

        for number in range(3):
            await cluster.create(f"narrow-{number}", kind=narrow_kind)
        async with cluster.running(op) as running:
            await running.wait_until_idle()
            assert (await cluster.client.get(narrow_kind, "narrow-0", "default")).status == {"phase": "Done"}
            await cluster.client.patch(
                narrow_kind, "narrow-0", "default", {"metadata": {"labels": {"a": "b"}}}, type=PatchType.MERGE
            )
            cluster.transport.requests.clear()
            await asyncio.sleep(600)
            assert cluster.transport.requests == []

    run_in_virtual_time(test)


def test_kind_without_status_is_reconciled_and_setting_one_is_reported(run_in_virtual_time, caplog):
    async def test(cluster):
        kind_without_status = fl.kind("test.example.com/v1", "Bare")
        await cluster.client.create(definition(kind_without_status, status=False))
        await asyncio.sleep(1)
        passes = []
        op = fl.Operator("tester")

        @op.reconcile(kind_without_status)
        async def reconcile(obj, ctx):
            passes.append(obj.name)
            if obj.spec.get("report"):
                ctx.status(phase="Done")

        await cluster.create("quiet", kind=kind_without_status)
        await cluster.create("loud", kind=kind_without_status, spec={"report": True})
        async with cluster.running(op, tries=2) as running:
            await running.wait_until_idle()
            assert sorted(passes) == ["loud", "quiet"]
            (message,) = running.failures.values()
            assert "no status subresource" in message

    run_in_virtual_time(test)


def test_each_controller_has_its_own_field_manager(run_in_virtual_time):
    async def test(cluster):
        op = fl.Operator("tester")

        @op.reconcile(Thing, owns=[fl.ConfigMap])
        async def things(obj, ctx):
            await ctx.apply(fl.ConfigMap(f"thing-{obj.name}", data={"a": "b"}))

        @op.reconcile(Other, owns=[fl.ConfigMap])
        async def other_things(obj, ctx):
            await ctx.apply(fl.ConfigMap(f"other-{obj.name}", data={"a": "b"}))

        await cluster.create("x")
        await cluster.create("y", kind=Other)
        async with cluster.running(op) as running:
            await running.wait_until_idle()
        managers = {
            child.name: [entry["manager"] for entry in child.metadata["managedFields"]]
            for child in (await cluster.client.list(fl.ConfigMap, "default")).items
        }
        assert managers == {"thing-x": ["tester/thing"], "other-y": ["tester/other"]}

    run_in_virtual_time(test)


def test_pass_after_an_unknown_outcome_starts_with_a_live_read(run_in_virtual_time, recording_transport):
    class LossyTransport(recording_transport):
        """A transport that sends the first merge patch and loses its response."""

        has_lost_a_response = False

        async def request(self, request):
            response = await super().request(request)
            if "merge" in (request.headers or {}).get("Content-Type", "") and not self.has_lost_a_response:
                self.has_lost_a_response = True
                raise ConnectionResetError("lost")
            return response

    async def test(cluster):
        passes = []

        async def reconcile(obj, ctx):
            passes.append(list(lossy_transport.requests))
            if len(passes) == 1:
                label = {"metadata": {"labels": {"seen": "yes"}}}
                await ctx.unguarded.patch(Thing, obj.name, obj.namespace, label, type=PatchType.MERGE)

        await cluster.create("x")
        lossy_transport = LossyTransport(cluster.server.transport())
        async with operator(reconcile).running(lossy_transport, cluster.world) as running:
            await running.wait_until_idle()
        requests_between = passes[1][len(passes[0]) :]
        assert [method for method, path, _ in requests_between if path.endswith("/things/x")] == ["PATCH", "GET"]

    run_in_virtual_time(test)


def test_lost_answer_of_a_write_is_resolved_by_a_read(run_in_virtual_time):
    class LossyTransport:
        """A transport that sends every write and loses the response to every second one."""

        def __init__(self, inner):
            self._inner = inner
            self._write_count = 0

        async def request(self, request):
            response = await self._inner.request(request)
            self._write_count += request.method == "PATCH"
            if request.method == "PATCH" and self._write_count % 2:
                raise ConnectionResetError("lost")
            return response

        async def stream(self, request):
            return await self._inner.stream(request)

        async def close(self): ...

    async def test(cluster):
        async def reconcile(obj, ctx):
            child = await ctx.apply(fl.ConfigMap(obj.name, data={"a": "b"}))
            ctx.status(child=child.uid)

        for number in range(10):
            await cluster.create(f"thing-{number}")
        op = operator(reconcile, owns=[fl.ConfigMap])
        op.cleanup(Thing)(reconcile)
        async with op.running(LossyTransport(cluster.server.transport()), cluster.world) as running:
            await running.wait_until_idle()
            assert running.failures == {}
        things = (await cluster.client.list(Thing, "default")).items
        assert all(thing.is_true("Ready") for thing in things)
        assert all(thing.finalizers == ["test.example.com/tester"] for thing in things)

    run_in_virtual_time(test)


def test_migrated_field_is_removed_when_the_payload_leaves_it_out(run_in_virtual_time):
    async def test(cluster):
        async def reconcile(obj, ctx):
            if (child := ctx.get(fl.ConfigMap, obj.name)) is not None:
                await ctx.migrate(child, fields=["data.old"], managers=["somebody-else"])
            await ctx.apply(fl.ConfigMap(obj.name, data={"new": "1"}), adopt=True)

        await cluster.create("thing")
        await cluster.client.create(fl.ConfigMap("thing", "default", data={"old": "1", "theirs": "1"}))
        async with cluster.running(operator(reconcile, owns=[fl.ConfigMap])) as running:
            await running.wait_until_idle()
            assert (await cluster.client.get(fl.ConfigMap, "thing", "default"))["data"] == {"new": "1", "theirs": "1"}
            cluster.transport.requests.clear()
            running.resync()
            await running.wait_until_idle()
            assert cluster.transport.requests == []

    run_in_virtual_time(test)


def test_fields_of_two_field_managers_can_be_migrated_in_turn(run_in_virtual_time):
    async def test(cluster):
        async def reconcile(obj, ctx):
            if (child := ctx.get(fl.ConfigMap, obj.name)) is not None:
                await ctx.migrate(child, fields=["data"], managers=["one"])
                await ctx.migrate(child, fields=["data"], managers=["two"])
            await ctx.apply(fl.ConfigMap(obj.name, data={"new": "1"}), adopt=True)

        await cluster.create("thing")
        child = await cluster.client.create(fl.ConfigMap("thing", "default", data={"old": "1"}), field_manager="one")
        await cluster.client.replace(fl.Object({**child, "data": {"old": "1", "older": "1"}}), field_manager="two")
        async with cluster.running(operator(reconcile, owns=[fl.ConfigMap])) as running:
            await running.wait_until_idle()
        assert (await cluster.client.get(fl.ConfigMap, "thing", "default"))["data"] == {"new": "1"}

    run_in_virtual_time(test)


def test_objects_for_which_when_is_false_are_skipped(run_in_virtual_time):
    async def test(cluster):
        async def reconcile(obj, ctx): ...

        await cluster.create("mine", spec={"class": "mine"})
        await cluster.create("theirs", spec={"class": "theirs"})
        op = operator(reconcile, when=lambda obj: obj.spec.get("class") == "mine")
        async with cluster.running(op) as running:
            await running.wait_until_idle()
            assert (await cluster.get_thing("theirs")).status == {}
            assert (await cluster.get_thing("mine")).is_true("Ready")
            await cluster.patch_thing("theirs", spec={"class": "mine"})
            await asyncio.sleep(1)
            assert (await cluster.get_thing("theirs")).is_true("Ready")

    run_in_virtual_time(test)


def test_watch_function_maps_the_old_and_the_new_object(run_in_virtual_time):
    async def test(cluster):
        mapped = []

        async def reconcile(obj, ctx):
            mapped.append(obj.name)

        def things_of(other, view):
            assert view.get(Thing, "a", "default") is not None
            return [other.spec["thing"]]

        await cluster.create("a")
        await cluster.create("b")
        await cluster.create("pointer", kind=Other, spec={"thing": "a"})
        async with cluster.running(operator(reconcile, watches={Other: things_of})) as running:
            await running.wait_until_idle()
            mapped.clear()
            await cluster.client.patch(
                Other, "pointer", "default", {"spec": {"thing": "b"}}, type="application/merge-patch+json"
            )
            await asyncio.sleep(1)
            assert sorted(mapped) == ["a", "b"]

    run_in_virtual_time(test)


def test_index_finds_objects_by_value(run_in_virtual_time):
    async def test(cluster):
        indexed_names = {}

        async def reconcile(obj, ctx):
            indexed_names[obj.name] = sorted(other.name for other in ctx.indexed(Other, "thing", obj.name))

        op = operator(reconcile, watches={Other: lambda other: [other.spec["thing"]]})
        op.index(Other, "thing")(lambda other: [other.spec["thing"]])
        await cluster.create("a")
        for name, thing in (("x", "a"), ("y", "a"), ("z", "b")):
            await cluster.create(name, kind=Other, spec={"thing": thing})
        async with cluster.running(op) as running:
            await running.wait_until_idle()
            assert indexed_names == {"a": ["x", "y"]}
            await cluster.client.delete(Other, "x", "default")
            await asyncio.sleep(1)
            assert indexed_names == {"a": ["y"]}

    run_in_virtual_time(test)


def test_model_is_applied_as_a_dict(run_in_virtual_time):
    class Metadata(msgspec.Struct):
        name: str

    class Settings(msgspec.Struct, rename="camel"):
        metadata: Metadata
        data: dict[str, str]
        api_version: str = "v1"
        kind: str = "ConfigMap"

    async def test(cluster):
        async def reconcile(obj, ctx):
            await ctx.apply(Settings(Metadata(obj.name), {"colour": "blue"}))

        await cluster.create("thing")
        async with cluster.running(operator(reconcile, owns=[fl.ConfigMap])) as running:
            await running.wait_until_idle()
            assert (await cluster.client.get(fl.ConfigMap, "thing", "default"))["data"] == {"colour": "blue"}

    run_in_virtual_time(test)


def test_reading_an_unwatched_kind_names_the_remedy(run_in_virtual_time, caplog):
    async def test(cluster):
        async def reconcile(obj, ctx):
            ctx.get(fl.Secret, "credentials")

        await cluster.create("thing")
        async with cluster.running(operator(reconcile)):
            await asyncio.sleep(1)
        message = (await cluster.get_thing("thing")).condition("Ready")["message"]
        assert "Secret is not watched" in message
        assert "ctx.live" in message

    run_in_virtual_time(test)


class TestCleanup:
    def test_finalizer_is_added_before_the_first_pass_and_removed_after_cleanup(self, run_in_virtual_time):
        async def test(cluster):
            seen = []

            async def reconcile(obj, ctx):
                seen.append(("reconcile", (await cluster.get_thing(obj.name)).finalizers))

            async def cleanup(obj, ctx):
                seen.append(("cleanup", (await cluster.get_thing(obj.name)).finalizers))

            op = operator(reconcile)
            op.cleanup(Thing)(cleanup)
            await cluster.create("thing")
            async with cluster.running(op) as running:
                await running.wait_until_idle()
                assert seen[0] == ("reconcile", ["test.example.com/tester"])
                await cluster.client.delete(Thing, "thing", "default")
                await asyncio.sleep(1)
                assert seen[-1] == ("cleanup", ["test.example.com/tester"])
                assert [name for name, _ in seen].count("cleanup") == 1
                assert (await cluster.client.list(Thing, "default")).items == []

        run_in_virtual_time(test)

    def test_cleanup_is_retried_until_it_returns_and_foreign_finalizers_stay(self, run_in_virtual_time):
        async def test(cluster):
            cleanup_attempts = []

            async def reconcile(obj, ctx): ...

            async def cleanup(obj, ctx):
                cleanup_attempts.append(obj.name)
                if len(cleanup_attempts) == 1:
                    raise OSError("the backend is away")
                if len(cleanup_attempts) == 2:
                    raise fl.RequeueAfter(10)

            op = operator(reconcile)
            op.cleanup(Thing, finalizer="cloud.example.com/finalizer")(cleanup)
            await cluster.create(
                "thing", metadata={"name": "thing", "namespace": "default", "finalizers": ["other.io/keep"]}
            )
            async with cluster.running(op) as running:
                await running.wait_until_idle()
                await cluster.client.delete(Thing, "thing", "default")
                await asyncio.sleep(60)
                assert len(cleanup_attempts) == 3
                assert (await cluster.get_thing("thing")).finalizers == ["other.io/keep"]

        run_in_virtual_time(test)

    def test_deleting_object_gets_no_finalizer_and_no_pass(self, run_in_virtual_time):
        async def test(cluster):
            calls = []

            async def reconcile(obj, ctx):
                calls.append(obj.name)

            async def cleanup(obj, ctx):
                calls.append("cleanup")

            op = operator(reconcile)
            op.cleanup(Thing)(cleanup)
            await cluster.create(
                "thing", metadata={"name": "thing", "namespace": "default", "finalizers": ["other.io/keep"]}
            )
            await cluster.client.delete(Thing, "thing", "default")
            async with cluster.running(op) as running:
                await running.wait_until_idle()
            assert calls == []
            assert (await cluster.get_thing("thing")).finalizers == ["other.io/keep"]

        run_in_virtual_time(test)

    def test_cleanup_needs_a_reconcile_handler(self, run_in_virtual_time):
        async def test(cluster):
            op = fl.Operator("tester")
            op.cleanup(Thing)(lambda obj, ctx: None)
            with pytest.raises(ValueError, match="declare both"):
                cluster.running(op)

        run_in_virtual_time(test)


def test_cancellation_inside_a_handler_fails_the_pass(run_in_virtual_time):
    async def test(cluster):
        passes = []

        async def reconcile(obj, ctx):
            passes.append(obj.name)
            if len(passes) == 1:
                sleeping = asyncio.create_task(asyncio.sleep(10))
                sleeping.cancel()
                await sleeping
            ctx.status(phase="Done")

        await cluster.create("thing")
        async with cluster.running(operator(reconcile)) as running:
            await running.wait_until_idle()
        assert (await cluster.get_thing("thing")).status["phase"] == "Done"
        assert running.metrics.registry.get_sample_value(
            "controller_runtime_reconcile_errors_total", {"controller": "thing"}
        )

    run_in_virtual_time(test)
