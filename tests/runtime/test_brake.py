"""Tests that a write loop is noticed, reported once and braked, and that nothing else is."""

import asyncio
import itertools
import logging
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import eventually

import fairlead as fl
from fairlead.api.history import WOKEN, WRITTEN
from fairlead.client.client import Client, PatchType
from fairlead.testing.network import SlowTransport

Thing = fl.kind("test.example.com/v1", "Thing")
Other = fl.kind("test.example.com/v1", "Other")
Text = fl.ConfigMap
Event = fl.kind("v1", "Event")


@pytest.fixture
def warnings(caplog):
    """Return a function that returns the warnings about write loops."""
    caplog.set_level(logging.WARNING)
    return lambda: [text for each in caplog.records if (text := each.getMessage()).startswith("WriteLoop")]


def run_slowly(cluster, op, **options):
    """Run an operator ten milliseconds away from the server, so that its passes take time."""
    slow = SlowTransport(cluster.server.transport(), cluster.world, request=(0.01, 0.01), watch=(0.001, 0.001))
    return op.running(slow, cluster.world, **options)


def count_writes(writes):
    """Return a subscriber of a run that appends the time and the object of each write that changed something."""

    def subscribe(running):
        loop = asyncio.get_running_loop()

        def add(record):
            if record.outcome in ("changed", "created"):
                writes.append((loop.time(), str(record.object)))

        running.history.subscribe(add, [WRITTEN])

    return subscribe


def count_passes(passes):
    def subscribe(running):
        loop = asyncio.get_running_loop()
        running.history.subscribe(lambda record: passes.append((loop.time(), record.object.name)), [WOKEN])

    return subscribe


def metric(running, name, controller="thing"):
    return running.metrics.registry.get_sample_value(name, {"controller": controller})


def make_timestamp_operator(cluster, **options):
    op = fl.Operator("clock")

    @op.reconcile(Thing, **options)
    async def reconcile(obj, ctx):
        ctx.status(checkedAt=f"{cluster.world.clock.now():.6f}")

    return op


def make_painter(name, color, kind=Thing, **options):
    """Return an operator that sets the color of a ConfigMap that it does not control alone."""
    op = fl.Operator(name)

    @op.reconcile(kind, watches={Text: lambda text: [text.name]}, ready=None, **options)
    async def paint(obj, ctx):
        await ctx.apply(Text(obj.name, data={"color": color}), adopt=True)

    return op


# Loops


def test_timestamp_in_the_status_is_reported_once_and_braked(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("a")
        writes = []
        op = make_timestamp_operator(cluster)
        async with run_slowly(cluster, op, subscribers=[count_writes(writes)]) as running:
            await asyncio.sleep(600)
            assert metric(running, "fairlead_write_loops_total") == 1
            running.metrics.text()
            assert metric(running, "fairlead_braked_objects") == 1
        times = [time for time, _ in writes]
        assert 20 <= sum(time < 5 for time in times) <= 23
        waits = [round(later - earlier) for earlier, later in itertools.pairwise(times) if later - earlier > 1]
        assert waits[:4] == [10, 20, 40, 60]
        assert set(waits[3:]) == {60}
        (warning,) = warnings()
        assert "20 passes in a row over Thing default/a rewrote its status.checkedAt from '17672" in warning
        assert "woken by the write of the pass before" in warning
        assert "no timestamps" in warning
        (event,) = (await cluster.client.list(Event, "default")).items
        assert (event["reason"], event["type"], event["involvedObject"]["name"]) == ("WriteLoop", "Warning", "a")
        assert "status.checkedAt" in event["message"]
        assert "17672" not in event["message"]

    run_in_virtual_time(test)


def test_timestamp_in_a_child_is_braked(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("a")
        writes, op = [], fl.Operator("clock")

        @op.reconcile(Thing, owns=[Text])
        async def reconcile(obj, ctx):
            await ctx.apply(Text(obj.name, data={"at": f"{cluster.world.clock.now():.6f}", "fixed": "1"}))

        async with run_slowly(cluster, op, subscribers=[count_writes(writes)]):
            await asyncio.sleep(120)
        assert len(writes) < 30
        (warning,) = warnings()
        assert "rewrote data.at of ConfigMap default/a from '17672" in warning

    run_in_virtual_time(test)


def test_values_of_secrets_stay_out_of_the_report(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("a")
        numbers, op = itertools.count(), fl.Operator("tester")

        @op.reconcile(Thing, owns=[fl.Secret])
        async def reconcile(obj, ctx):
            await ctx.apply(fl.Secret(obj.name, data={"password": f"QUJD{next(numbers):04}"}))

        async with cluster.running(op):
            await asyncio.sleep(60)
        (warning,) = warnings()
        assert "data.password of Secret default/a from '<redacted>' to '<redacted>'" in warning
        assert "QUJD" not in warning

    run_in_virtual_time(test)


def test_loop_of_decide_in_the_spec_is_braked_although_it_changes_the_generation(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("a", spec={"size": 1})
        passes, op = [], fl.Operator("tester")

        @op.reconcile(Thing)
        async def reconcile(obj, ctx):
            passes.append(obj.generation)

            def grow(draft):
                draft.spec["size"] += 1

            await ctx.decide(grow)

        async with cluster.running(op):
            await asyncio.sleep(60)
        assert len(passes) < 30
        (warning,) = warnings()
        assert "rewrote its spec.size" in warning

    run_in_virtual_time(test)


def test_rival_controller_is_named(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("a")
        writes, painter = [], make_painter("blue-operator", "blue")

        async def revert():
            """Another controller, which always writes green, with merge patches."""
            client = Client(cluster.server.transport(), cluster.world, user_agent="green-controller")
            while True:
                await asyncio.sleep(0.05)
                text = next(iter((await client.list(Text, "default")).items), None)
                if text is not None and text["data"]["color"] != "green":
                    change = {"data": {"color": "green"}}
                    await client.patch(Text, "a", "default", change, type=PatchType.MERGE)

        async with run_slowly(cluster, painter, subscribers=[count_writes(writes)]):
            rival = asyncio.create_task(revert())
            await asyncio.sleep(600)
            rival.cancel()
        assert len(writes) < 20 + 15
        (warning,) = warnings()
        assert "rewrote data.color of ConfigMap default/a from 'green' to 'blue'" in warning
        assert "The field manager green-controller changes it back" in warning
        assert "leave it out of the other one's writes" in warning

    run_in_virtual_time(test)


def test_two_operators_that_write_one_child_are_both_told(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("a")
        writes = []
        subscribers = [count_writes(writes)]
        async with (
            run_slowly(cluster, make_painter("one", "blue"), subscribers=subscribers),
            run_slowly(cluster, make_painter("two", "green"), subscribers=subscribers),
        ):
            await asyncio.sleep(600)
        assert len(writes) < 100
        blue, green = sorted(warnings(), key=lambda text: "to 'green'" in text)
        assert "The field manager two/thing changes it back" in blue
        assert "The field manager one/thing changes it back" in green
        events = (await cluster.client.list(Event, "default")).items
        assert {event["source"]["component"] for event in events} == {"one", "two"}

    run_in_virtual_time(test)


def test_two_processes_with_one_field_manager_are_told(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("a")
        async with (
            run_slowly(cluster, make_painter("same", "blue")),
            run_slowly(cluster, make_painter("same", "green")),
        ):
            await asyncio.sleep(120)
        assert len(warnings()) == 2
        assert all("same/thing, another process with the same name, changes it back" in text for text in warnings())

    run_in_virtual_time(test)


def test_two_controllers_of_one_operator_that_write_one_object_are_told(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("a")
        await cluster.create("a", Other)
        await cluster.client.create(Text("shared", "default", data={"color": "red"}))
        writes, op = [], fl.Operator("painters")

        def declare(kind, color):
            @op.reconcile(kind, watches={Text: lambda text: ["a"]}, ready=None)
            async def paint(obj, ctx):
                def decide(draft):
                    draft["data"]["color"] = color

                await ctx.decide(decide, ctx.get(Text, "shared"))

        declare(Thing, "blue")
        declare(Other, "green")
        async with run_slowly(cluster, op, subscribers=[count_writes(writes)]):
            await asyncio.sleep(600)
        assert len(writes) < 100
        assert len(warnings()) == 2
        assert any("The field manager painters/other changes it back" in text for text in warnings())
        assert any("The field manager painters/thing changes it back" in text for text in warnings())

    run_in_virtual_time(test)


def test_rival_that_normalizes_a_value_is_noticed_and_a_server_makes_no_loop(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("a")
        writes, op = [], fl.Operator("tester")
        labels = {"app": "a"}

        @op.reconcile(Thing, owns=[fl.Deployment])
        async def reconcile(obj, ctx):
            container = {"name": "app", "image": "i", "resources": {"limits": {"cpu": "1000m"}}}
            template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
            spec = {"selector": {"matchLabels": labels}, "template": template}
            await ctx.apply(fl.Deployment(obj.name, spec=spec))

        async with run_slowly(cluster, op, subscribers=[count_writes(writes)]) as running:
            await asyncio.sleep(5)
            running.resync()
            await asyncio.sleep(5)
            assert len(writes) <= 4
            assert warnings() == []

        async def normalize():
            client = Client(cluster.server.transport(), cluster.world, user_agent="normalizer")
            path = "/spec/template/spec/containers/0/image"
            while True:
                await asyncio.sleep(0.05)
                patch = [{"op": "replace", "path": path, "value": "docker.io/library/i:latest"}]
                await client.patch(fl.Deployment, "a", "default", patch, type=PatchType.JSON)

        async with run_slowly(cluster, op):
            rival = asyncio.create_task(normalize())
            await asyncio.sleep(60)
            rival.cancel()
        (warning,) = warnings()
        assert "rewrote spec.template.spec.containers[name=app].image of Deployment default/a" in warning
        assert "from 'docker.io/library/i:latest' to 'i'. The field manager normalizer changes it back" in warning

    run_in_virtual_time(test)


def test_child_that_somebody_deletes_again_and_again_is_reported(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("a")
        writes, op = [], fl.Operator("tester")

        @op.reconcile(Thing, owns=[Text])
        async def reconcile(obj, ctx):
            await ctx.apply(Text(obj.name, data={"a": "b"}))

        async def delete():
            while True:
                await asyncio.sleep(0.05)
                if (await cluster.client.list(Text, "default")).items:
                    await cluster.client.delete(Text, "a", "default")

        async with run_slowly(cluster, op, subscribers=[count_writes(writes)]):
            rival = asyncio.create_task(delete())
            await asyncio.sleep(300)
            rival.cancel()
        assert len(writes) < 40
        (warning,) = warnings()
        assert "ConfigMap default/a (created or deleted). Somebody else deletes or creates it in between" in warning

    run_in_virtual_time(test)


# Not loops


def test_plan_of_a_hundred_steps_is_not_a_loop(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("steps")
        await cluster.create("children")
        op = fl.Operator("tester")

        @op.reconcile(Thing, owns=[Text])
        async def reconcile(obj, ctx):
            done = obj.status.get("done", 0)
            if done == 100:
                return
            if obj.name == "children":
                await ctx.apply(Text(f"step-{done}", data={"number": str(done)}))
            else:
                ctx.status(**{f"step{done}": "done"})
            ctx.status(done=done + 1)

        async with run_slowly(cluster, op):
            await asyncio.sleep(8)
        assert [(await cluster.get_thing(name)).status["done"] for name in ("steps", "children")] == [100, 100]
        assert warnings() == []

    run_in_virtual_time(test)


def test_twenty_edits_by_hand_are_not_a_loop(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("a", spec={"text": "0"})
        passes, op = [], fl.Operator("tester")

        @op.reconcile(Thing, owns=[Text])
        async def reconcile(obj, ctx):
            await ctx.apply(Text(obj.name, data={"text": obj.spec["text"]}))
            ctx.status(text=obj.spec["text"])

        async with run_slowly(cluster, op, subscribers=[count_passes(passes)]):
            for number in range(1, 41):
                await cluster.patch_thing("a", spec={"text": str(number)})
                await asyncio.sleep(0.5)
                assert (await cluster.get_thing("a")).status["text"] == str(number)
            for _ in range(25):
                await cluster.client.patch(Text, "a", "default", {"data": {"text": "x"}}, type=PatchType.MERGE)
                await asyncio.sleep(11)
                assert (await cluster.client.get(Text, "a", "default"))["data"]["text"] == "40"
        assert warnings() == []

    run_in_virtual_time(test)


def test_periodic_writes_are_not_a_loop(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("a")
        op = fl.Operator("tester")

        @op.reconcile(Thing)
        async def reconcile(obj, ctx):
            now = cluster.world.clock.now()
            if now - float(obj.status.get("beat", 0)) >= 1:
                ctx.status(beat=str(now))
            raise fl.RequeueAfter(1)

        writes = []
        async with run_slowly(cluster, op, subscribers=[count_writes(writes)]):
            await asyncio.sleep(120)
        assert len(writes) > 50
        assert warnings() == []

    run_in_virtual_time(test)


def test_status_that_follows_a_child_of_others_is_not_a_loop(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("a")
        op = fl.Operator("tester")

        @op.reconcile(Thing, owns=[Text])
        async def reconcile(obj, ctx):
            child = await ctx.apply(Text(obj.name, data={"ours": "1"}))
            ctx.status(ready=child["data"].get("ready", "0"))

        async with run_slowly(cluster, op):
            for number in range(200):
                await asyncio.sleep(0.03)
                change = {"data": {"ready": str(number)}}
                await cluster.client.patch(Text, "a", "default", change, type=PatchType.MERGE)
            await asyncio.sleep(1)
            assert (await cluster.get_thing("a")).status["ready"] == "199"
        assert warnings() == []

    run_in_virtual_time(test)


def test_status_that_counts_objects_of_another_controller_is_not_a_loop(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("total")
        op = fl.Operator("tester")

        @op.reconcile(Thing, watches={Other: lambda other: ["total"]})
        async def count(obj, ctx):
            ctx.status(ready=sum("ready" in other.status for other in ctx.list(Other)))

        @op.reconcile(Other, concurrency=1)
        async def prepare(obj, ctx):
            ctx.status(ready=True)

        async with run_slowly(cluster, op):
            for number in range(50):
                await cluster.create(f"o{number}", Other)
            await asyncio.sleep(8)
            assert (await cluster.get_thing("total")).status["ready"] == 50
        assert warnings() == []

    run_in_virtual_time(test)


def test_brake_can_be_disabled(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("a")
        writes, op = [], make_timestamp_operator(cluster, brake_after=math.inf)
        async with run_slowly(cluster, op, subscribers=[count_writes(writes)]):
            await asyncio.sleep(10)
        assert len(writes) > 500
        assert warnings() == []

    run_in_virtual_time(test)


# The brake


def test_brake_delays_no_other_object_and_exempts_new_generations_and_deletions(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("looping")
        passes, cleaned, op = [], [], make_timestamp_operator(cluster, concurrency=1)

        @op.cleanup(Thing, finalizer="test.example.com/cleanup")
        async def cleanup(obj, ctx):
            cleaned.append(asyncio.get_running_loop().time())
            if len(cleaned) < 3:
                raise fl.RequeueAfter(0.1)

        loop = asyncio.get_running_loop()
        async with run_slowly(cluster, op, subscribers=[count_passes(passes)]):
            await asyncio.sleep(100)
            assert len(warnings()) == 1

            passes.clear()
            before = loop.time()
            await cluster.create("other")
            await asyncio.sleep(0.1)
            assert passes[0] == (pytest.approx(before, abs=0.02), "other")
            assert all(name == "other" for _, name in passes)

            passes.clear()
            before = loop.time()
            await cluster.patch_thing("looping", metadata={"labels": {"a": "b"}})
            await asyncio.sleep(0.1)
            assert all(name == "other" for _, name in passes), "a label may wait"
            before = loop.time()
            await cluster.patch_thing("looping", spec={"text": "new"})
            await asyncio.sleep(0.1)
            assert min(time for time, name in passes if name == "looping") - before < 0.02
            await asyncio.sleep(20)  # The object loops again, and is braked again.
            assert (await cluster.get_thing("looping")).status["observedGeneration"] == 2

            before = loop.time()
            await cluster.client.delete(Thing, "looping", "default")
            await asyncio.sleep(1)
            assert cleaned[0] - before < 0.02
            assert cleaned[-1] - before < 0.3

    run_in_virtual_time(test)


def test_brake_ends_when_a_pass_leaves_the_field_unchanged(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("a")
        is_fixed, passes, op = [], [], fl.Operator("tester")

        @op.reconcile(Thing)
        async def reconcile(obj, ctx):
            if not is_fixed:
                ctx.status(at=f"{cluster.world.clock.now():.6f}")

        loop = asyncio.get_running_loop()
        async with run_slowly(cluster, op, subscribers=[count_passes(passes)]) as running:
            await asyncio.sleep(30)
            is_fixed.append(True)
            await asyncio.sleep(100)
            running.metrics.text()
            assert metric(running, "fairlead_braked_objects") == 0
            for number in range(5):
                passes.clear()
                before = loop.time()
                await cluster.patch_thing("a", metadata={"labels": {"a": str(number)}})
                await asyncio.sleep(1)
                assert [time - before < 0.02 for time, _ in passes] == [True]
        assert len(warnings()) == 1

    run_in_virtual_time(test)


def test_loop_that_starts_again_is_braked_at_once_and_not_reported_again(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("a")
        is_looping, writes, op = [True], [], fl.Operator("tester")

        @op.reconcile(Thing)
        async def reconcile(obj, ctx):
            if is_looping:
                ctx.status(at=f"{cluster.world.clock.now():.6f}")

        async with run_slowly(cluster, op, subscribers=[count_writes(writes)]) as running:
            await asyncio.sleep(30)
            is_looping.clear()
            await asyncio.sleep(100)
            is_looping.append(True)
            writes.clear()
            running.resync()
            await asyncio.sleep(30)
            assert len(writes) <= 3
            assert metric(running, "fairlead_write_loops_total") == 1
        assert len(warnings()) == 1

    run_in_virtual_time(test)


def test_brake_ends_although_other_changes_keep_rewriting_the_field(run_in_virtual_time, warnings):
    async def test(cluster):
        await cluster.create("a")
        await cluster.create("input", Other, spec={"value": "0"})
        is_fixed, op = [], fl.Operator("tester")

        @op.reconcile(Thing, watches={Other: lambda other: ["a"]})
        async def reconcile(obj, ctx):
            value = ctx.get(Other, "input").spec["value"]
            ctx.status(value=value if is_fixed else f"{cluster.world.clock.now():.6f}")

        async with run_slowly(cluster, op):
            await asyncio.sleep(30)
            assert len(warnings()) == 1
            is_fixed.append(True)
            for number in range(60):
                change = {"spec": {"value": str(number)}}
                await cluster.client.patch(Other, "input", "default", change, type=PatchType.MERGE)
                await asyncio.sleep(3)
            assert (await cluster.get_thing("a")).status["value"] == "59"

    run_in_virtual_time(test)


def test_clean_up_that_writes_in_a_loop_does_not_wait(run_in_virtual_time):
    async def test(cluster):
        await cluster.create("a")
        calls, op = [], fl.Operator("tester")

        @op.reconcile(Thing)
        async def reconcile(obj, ctx): ...

        @op.cleanup(Thing)
        async def clean(obj, ctx):
            calls.append(obj.name)
            if len(calls) < 60:
                await ctx.decide(lambda draft: draft.status.update(left=60 - len(calls)))
                raise fl.RequeueAfter(0.5)

        async with run_slowly(cluster, op) as running:
            await running.wait_until_idle()
            await cluster.client.delete(Thing, "a", "default")
            await asyncio.sleep(9)
        assert len(calls) == 60

    run_in_virtual_time(test)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(["input", "label", "child", "spec"]), st.sampled_from([0.0, 0.01, 1.0, 7.0, 31.0])),
        max_size=12,
    )
)
def test_no_event_is_lost_under_the_brake(run_in_virtual_time, edits):
    async def test(cluster):
        await cluster.create("a")
        await cluster.client.create(Other("input", "default", spec={}))
        op, seen, numbers = fl.Operator("tester"), {}, itertools.count()

        @op.reconcile(Thing, owns=[Text], watches={Other: lambda other: ["a"]})
        async def reconcile(obj, ctx):
            child = await ctx.apply(Text(obj.name, data={"n": str(next(numbers))}))
            seen.update(
                input=ctx.get(Other, "input").spec.get("value"),
                label=(obj.metadata.get("labels") or {}).get("value"),
                spec=obj.spec.get("value"),
                child=child["data"].get("value"),
            )

        expected = dict.fromkeys(["input", "label", "spec", "child"])
        async with run_slowly(cluster, op):
            await asyncio.sleep(5)
            for number, (target, pause) in enumerate(edits):
                value = expected[target] = str(number)
                match target:
                    case "input":
                        change = Other, "input", {"spec": {"value": value}}
                    case "label":
                        change = Thing, "a", {"metadata": {"labels": {"value": value}}}
                    case "spec":
                        change = Thing, "a", {"spec": {"value": value}}
                    case _:
                        change = Text, "a", {"data": {"value": value}}
                kind, name, patch = change
                await cluster.client.patch(kind, name, "default", patch, type=PatchType.MERGE)
                await asyncio.sleep(pause)
            await asyncio.sleep(61)
        assert seen == expected

    run_in_virtual_time(test)


# On both servers


async def test_hot_loop_is_braked_on_both_servers(api, warnings):
    client, writes, numbers = Client(api.transport(), fl.World()), [], itertools.count()
    op = fl.Operator("clock", brake_base=3600, brake_max=3600)

    @op.reconcile(fl.select(fl.Secret, labels="role=primary"), owns=[Text], ready=None)
    async def reconcile(obj, ctx):
        await ctx.apply(Text(obj.name, data={"at": str(next(numbers))}))

    await client.create(fl.Secret("a", api.namespace, labels={"role": "primary"}))
    options = {"namespaces": [api.namespace], "subscribers": [count_writes(writes)]}
    async with op.running(api.transport(), **options) as running:
        await eventually(lambda: len(warnings()) == 1)
        count = len(writes)
        assert 20 <= count <= 25
        await running.wait_until_seen(await client.get(Text, "a", api.namespace))
        await client.create(fl.Secret("b", api.namespace, labels={"role": "primary"}))
        await eventually(lambda: len(warnings()) == 2)
        assert sum(name.endswith("/a") for _, name in writes) == count


async def test_rival_operators_are_told_on_both_servers(api, warnings):
    client, writes = Client(api.transport(), fl.World()), []
    await client.create(fl.Secret("a", api.namespace, labels={"role": "primary"}))
    primary = fl.select(fl.Secret, labels="role=primary")
    painters = [
        make_painter(name, color, primary, brake_base=3, brake_max=3600)
        for name, color in [("one", "blue"), ("two", "green")]
    ]
    options = {"namespaces": [api.namespace], "subscribers": [count_writes(writes)]}
    async with painters[0].running(api.transport(), **options), painters[1].running(api.transport(), **options):
        await eventually(lambda: len(warnings()) == 2)
    blue, green = sorted(warnings(), key=lambda text: "to 'green'" in text)
    assert "The field manager two/secret changes it back" in blue
    assert "The field manager one/secret changes it back" in green
