"""Tests of what a streak of passes counts as a write loop."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.history import WOKEN, WRITTEN, Cause, FieldChange, ObjectRef, Record
from fairlead.runtime.write_loops import Field, PassWrites, Streak, WokenBy

THING = ObjectRef("Thing", "default", "a", "test.example.com/v1")
CHILD = ObjectRef("ConfigMap", "default", "a", "v1")
START = Cause("start", "added", THING, "1")
versions = itertools.count(100)


def run_pass(streak, causes, *writes):
    """Add a pass to the streak: the writes are (object, path, old, new). Return what woke it, and its echoes."""
    passed = PassWrites(Record(WOKEN, 0.0, "tester/thing", "reconcile", THING, THING, causes=tuple(causes)))
    echoes = []
    for obj, path, old, new in writes:
        version, fields = str(next(versions)), (FieldChange(path, old, new),)
        passed.add(
            Record(WRITTEN, 0.0, "tester/thing", "patch", obj, THING, "", version, fields=fields, outcome="changed")
        )
        echoes.append(Cause("primary" if obj == THING else "child", "modified", obj, version, is_own=True))
    return streak.add_pass(passed), echoes


def count(streak, obj=THING, path="status.at"):
    field = Field(obj, path)
    return streak.fields[field].count if field in streak.fields else 0


def test_passes_that_wake_each_other_are_counted():
    streak, causes = Streak(), [START]
    for number in range(20):
        woken_by, causes = run_pass(streak, causes, (THING, "status.at", number - 1, number))
        assert woken_by is (WokenBy.LOOP if number else WokenBy.OTHER)
    assert count(streak) == 20


def test_timer_beside_an_echo_hides_no_loop_and_alone_is_a_reason():
    streak, causes = Streak(), [START]
    for number in range(5):
        _, causes = run_pass(streak, causes, (THING, "status.at", number - 1, number))
        causes.append(Cause("requeue_after", seconds=0.1))
    assert count(streak) == 5
    run_pass(streak, [Cause("requeue_after", seconds=0.1)], (THING, "status.at", 4, 5))
    assert count(streak) == 1


def test_field_that_has_converged_starts_again_unless_somebody_reverts_it():
    streak = Streak()
    _, echo = run_pass(streak, [START], (THING, "status.at", 0, 1))
    _, echo = run_pass(streak, echo, (THING, "status.at", 1, 2))
    run_pass(streak, echo)
    _, echo = run_pass(streak, echo, (THING, "status.at", 2, 3))
    assert count(streak) == 1
    run_pass(streak, echo)
    rival = Cause("primary", "modified", THING, "999")
    assert run_pass(streak, [rival], (THING, "status.at", "theirs", 3))[0] is WokenBy.LOOP
    assert count(streak) == 2


def test_change_of_an_object_that_the_passes_write_counts_only_if_it_reverts_them():
    streak = Streak()
    _, echo = run_pass(streak, [START], (CHILD, "data.a", 0, 1), (THING, "status.at", 0, 1))
    foreign = Cause("child", "modified", CHILD, "999")
    assert run_pass(streak, [*echo, foreign], (THING, "status.at", 1, 2))[0] is WokenBy.UNCLEAR
    assert count(streak) == 1
    assert run_pass(streak, [foreign], (CHILD, "data.a", "theirs", 1))[0] is WokenBy.LOOP


def test_write_of_another_pass_of_this_process_is_not_an_echo():
    streak = Streak()
    run_pass(streak, [START], (THING, "status.at", 0, 1))
    own = Cause("primary", "modified", THING, "998", is_own=True)
    assert run_pass(streak, [own], (THING, "status.at", 1, 2))[0] is WokenBy.UNCLEAR
    other = Cause("mapped", "modified", CHILD, "999", is_own=True)
    assert run_pass(streak, [other], (THING, "status.at", 2, 3))[0] is WokenBy.OTHER


def test_edit_of_the_object_starts_again():
    streak, causes = Streak(), [START]
    for number in range(5):
        _, causes = run_pass(streak, causes, (THING, "status.at", number - 1, number))
    edit = Cause("primary", "modified", THING, "999", changed=("generation",))
    assert run_pass(streak, [*causes, edit], (THING, "status.at", 4, 5))[0] is WokenBy.OTHER
    assert count(streak) == 1


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60))
def test_count_never_exceeds_the_passes_since_the_last_new_field(paths):
    streak, causes = Streak(), [START]
    since_new, known = 0, set()
    for number, path in enumerate(paths):
        _, causes = run_pass(streak, causes, (THING, f"status.f{path}", number, number + 1))
        since_new = since_new + 1 if path in known else 1
        known.add(path)
        assert max(rewrites.count for rewrites in streak.fields.values()) <= since_new
