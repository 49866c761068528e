"""Tests of the memory of passes: what it keeps, and its bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.history import ENDED, READ, SKIPPED, WOKEN, WRITTEN, Cause, FieldChange, History, ObjectRef
from fairlead.api.world import SystemClock
from fairlead.report import pass_memory
from fairlead.report.pass_memory import MAX_STEPS, PassMemory


class Passes:
    """Emits the records of passes."""

    def __init__(self, **limits):
        self.history = History(SystemClock(), "tester")
        self.memory = PassMemory(**limits)
        self.memory.subscribe(self.history)
        self._count = 0

    def run(self, name="a", outcome="success", fields=(), reads=1, is_ended=True, **end):
        self._count += 1
        ref = ObjectRef("Thing", "default", name, "test.example.com/v1")
        child = ObjectRef("ConfigMap", "default", name, "v1")
        token = self.history.enter_pass(f"{self._count:08x}", "tester/thing", ref)
        cause = Cause("child", "modified", child, "7", True, ("labels",))
        self.history.record(WOKEN, "reconcile", object=ref, causes=(cause,), more_causes=2)
        for _ in range(reads):
            self.history.record(READ, "get", object=ref, source="cache", outcome="found", version="7")
        self.history.record(WRITTEN, "apply", object=child, outcome="changed", version="8", fields=tuple(fields))
        self.history.record(SKIPPED, "patch", object=ref, subresource="status")
        if is_ended:
            self.history.record(ENDED, "reconcile", object=ref, outcome=outcome, seconds=0.5, **end)
        self.history.exit_pass(token)
        return ref


def test_pass_is_kept_with_its_records():
    passes = Passes()
    ref = passes.run(fields=[FieldChange("data.text", "old", {"new": [1, None]})], reason="Reconciled", next_look=3.0)
    (remembered,) = passes.memory.objects()
    (remembered_pass,) = remembered.passes()
    assert (remembered.object, remembered.count, remembered.failures) == (ref, 1, 0)
    (cause,) = remembered_pass.woken.causes
    assert (cause.source, str(cause.object), cause.is_own, cause.changed) == (
        "child", "ConfigMap default/a", True, ("labels",),
    )  # fmt: skip
    assert remembered_pass.woken.more_causes == 2
    read, write_step, skipped = remembered_pass.steps
    assert (read.point, read.version, read.primary, read.pass_id) == (READ, "7", ref, remembered_pass.woken.pass_id)
    assert write_step.fields == (FieldChange("data.text", "old", {"new": [1, None]}),)
    assert (skipped.point, skipped.subresource) == (SKIPPED, "status")
    assert (remembered_pass.ended.outcome, remembered_pass.ended.reason, remembered_pass.ended.next_look) == (
        "success",
        "Reconciled",
        3.0,
    )


def test_passes_are_newest_first_and_limited_per_object():
    passes = Passes(max_passes=3)
    for reads in range(5):
        passes.run(reads=reads)
    (remembered,) = passes.memory.objects()
    assert [len(remembered_pass.steps) - 2 for remembered_pass in remembered.passes()] == [4, 3, 2]
    assert remembered.count == 5


def test_running_pass_is_visible_until_it_ends():
    passes = Passes()
    passes.run("a", is_ended=False)
    (running,) = passes.memory.running_passes()
    assert (running.ended, len(running.steps)) == (None, 3)
    assert list(passes.memory.objects()) == []
    passes.run("b")
    assert len(passes.memory.running_passes()) == 1


def test_failures_in_a_row_are_counted_and_the_exception_is_not_kept():
    passes = Passes()
    passes.run(outcome="error", error=ValueError("password hunter2"))
    passes.run(outcome="error", error=ValueError("password hunter2"))
    (remembered,) = passes.memory.objects()
    assert remembered.failures == 2
    assert all(
        remembered_pass.ended.error is None and "hunter2" not in str(remembered_pass.ended)
        for remembered_pass in remembered.passes()
    )
    passes.run()
    assert remembered.failures == 0


def test_steps_of_a_pass_are_limited_and_counted():
    passes = Passes()
    passes.run(reads=MAX_STEPS + 10)
    (remembered,) = passes.memory.objects()
    (remembered_pass,) = remembered.passes()
    assert (len(remembered_pass.steps), remembered_pass.more_steps) == (MAX_STEPS, 12)


@pytest.mark.parametrize(
    "value", ["x" * 1_000_000, {"key": "y" * 1_000_000}, 2**80, ["z"] * 100_000], ids=["text", "map", "number", "list"]
)
def test_large_values_are_shortened(value):
    passes = Passes()
    passes.run(fields=[FieldChange(f"data.{number}", None, value) for number in range(100)])
    (remembered,) = passes.memory.objects()
    (remembered_pass,) = remembered.passes()
    fields = remembered_pass.steps[1].fields
    assert fields[0].path == "data.0"
    assert str(fields[0].new)[:4] in str(value)
    assert fields[-1].path == "(92 more fields)"
    assert passes.memory.size < 10_000


def test_every_object_keeps_fewer_passes_before_one_is_forgotten():
    passes = Passes(max_bytes=100_000)
    for _ in range(20):
        for number in range(40):
            passes.run(f"thing-{number}")
    assert len(passes.memory) == 40
    assert 1 <= passes.memory.passes_per_object < 20
    assert passes.memory.size <= 100_000
    for number in range(200):
        passes.run(f"other-{number}")
    assert passes.memory.size <= 100_000
    names = [remembered.object.name for remembered in passes.memory.objects()]
    assert names[0] == "other-199"
    assert "thing-0" not in names


def test_number_of_objects_is_limited():
    passes = Passes(max_objects=10)
    for number in range(30):
        passes.run(f"thing-{number}")
    assert [known_object.object.name for known_object in passes.memory.objects()] == [
        f"thing-{number}" for number in range(29, 19, -1)
    ]


def test_more_passes_are_kept_again_when_there_is_room():
    passes = Passes(max_bytes=20_000, max_objects=100)
    for number in range(14):
        passes.run(f"thing-{number}", fields=[FieldChange("data", None, "x" * 700)])
    assert passes.memory.passes_per_object == 1
    passes.memory._max_objects = 2
    for _ in range(8):
        passes.run("a")
        passes.run("b")
    assert passes.memory.passes_per_object > 1


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3000)), max_size=60))
def test_counted_size_is_that_of_the_kept_passes_and_within_the_limit(runs):
    passes = Passes(max_bytes=20_000, max_passes=8)
    for number, length in runs:
        passes.run(f"thing-{number}", fields=[FieldChange("data", None, "x" * length)])
    memory = passes.memory
    assert memory.size == sum(remembered.size for remembered in memory.objects()) <= 20_000
    for remembered in memory.objects():
        kept_bytes = sum(len(encoded_pass) + pass_memory._PASS_BYTES for encoded_pass in remembered._passes)
        assert remembered.size == kept_bytes + pass_memory._OBJECT_BYTES
        assert 1 <= len(remembered) <= memory.passes_per_object


def test_ten_thousand_objects_keep_several_passes():
    passes = Passes()
    for _ in range(8):
        for number in range(10_000):
            passes.run(f"thing-{number}")
    assert len(passes.memory) == 10_000
    assert passes.memory.passes_per_object >= 5
