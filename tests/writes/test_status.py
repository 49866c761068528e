"""Tests of write_status: one request, stable transition times, no changed foreign fields and no no-ops."""

import pytest
from workbench import WIDGET

from fairlead.api.world import World
from fairlead.writes import StatusReport, StatusSuperseded, Writer, status


class Clock:
    def __init__(self):
        self.seconds = 1_000_000_000.0

    def now(self):
        self.seconds += 60
        return self.seconds

    def monotonic(self):
        return self.seconds


@pytest.fixture
def writer(env):
    return Writer(env.recording_client, World(Clock()), "ours", env.cache)


def ready_report(generation=1, is_ready=True, message="fine", **fields):
    report = StatusReport(generation)
    report.condition("Ready", is_ready, "Because", message)
    report.set(**fields)
    return report


async def test_first_report_is_one_request(env, writer):
    widget = await env.widget()
    after = await status.write_status(writer, WIDGET, widget, ready_report(addresses=["a"]))
    assert after.status["addresses"] == ["a"]
    assert after.status["observedGeneration"] == 1
    assert after.is_true("Ready")
    assert env.faulty_transport.writes == ["PATCH"]


async def test_repeated_report_sends_nothing(env, writer):
    widget = await status.write_status(writer, WIDGET, await env.widget(), ready_report(phase="P"))
    env.faulty_transport.forget_requests()
    again = await status.write_status(writer, WIDGET, widget, ready_report(phase="P"))
    assert again.resource_version == widget.resource_version
    assert env.faulty_transport.sent_requests == []


async def test_repeated_report_sends_nothing_after_a_restart(env, writer):
    widget = await status.write_status(writer, WIDGET, await env.widget(), ready_report(phase="P"))
    env.faulty_transport.forget_requests()
    await status.write_status(Writer(env.client, World(Clock()), "ours"), WIDGET, widget, ready_report(phase="P"))
    assert env.faulty_transport.sent_requests == []


async def test_only_a_transition_changes_the_transition_time(env, writer):
    widget = await status.write_status(writer, WIDGET, await env.widget(), ready_report())
    first_condition = widget.condition("Ready")["lastTransitionTime"]
    widget = await status.write_status(writer, WIDGET, widget, ready_report(message="still fine"))
    assert widget.condition("Ready")["lastTransitionTime"] == first_condition
    widget = await status.write_status(writer, WIDGET, widget, ready_report(is_ready=False))
    assert widget.condition("Ready")["lastTransitionTime"] > first_condition


async def test_foreign_conditions_and_fields_stay_and_cause_no_retry(env, writer):
    widget = await status.write_status(writer, WIDGET, await env.widget(), ready_report(phase="P"))
    foreign = [*widget.status["conditions"], {"type": "Theirs", "status": "True"}]
    env.faulty_transport.forget_requests()
    env.faulty_transport.before_writes = [
        lambda: env.merge_patch(widget, {"status": {"conditions": foreign, "counts": {"x": 1}}}, subresource="status")
    ]
    after = await status.write_status(writer, WIDGET, widget, ready_report(is_ready=False, phase="Q"))
    assert env.faulty_transport.writes == ["PATCH"]
    assert after.is_true("Theirs")
    assert not after.is_true("Ready")
    assert (after.status["counts"], after.status["phase"]) == ({"x": 1}, "Q")


async def test_added_condition_keeps_one_added_meanwhile(env, writer):
    """Tests the guard of the existing condition types and their number."""
    widget = await env.widget(status={"conditions": [{"type": "A", "status": "True"}]})
    two_conditions = [{"type": "B", "status": "True"}, {"type": "A", "status": "True"}]
    env.faulty_transport.before_writes = [
        lambda: env.merge_patch(widget, {"status": {"conditions": two_conditions}}, subresource="status")
    ]
    after = await status.write_status(writer, WIDGET, widget, ready_report())
    assert {condition["type"] for condition in after.status["conditions"]} == {"A", "B", "Ready"}


async def test_condition_that_someone_adds_first_is_not_added_twice(env, writer):
    """Tests the guard of the number of conditions: a condition that was appended meanwhile was not read."""
    first_condition = {"type": "A", "status": "True"}
    widget = await env.widget(status={"conditions": [first_condition]})
    two_conditions = [first_condition, {"type": "Ready", "status": "False"}]
    env.faulty_transport.before_writes = [
        lambda: env.merge_patch(widget, {"status": {"conditions": two_conditions}}, subresource="status")
    ]
    after = await status.write_status(writer, WIDGET, widget, ready_report())
    assert [(condition["type"], condition["status"]) for condition in after.status["conditions"]] == [
        ("A", "True"),
        ("Ready", "True"),
    ]


async def test_adding_a_condition_ignores_changes_in_foreign_conditions(env, writer):
    widget = await env.widget(status={"conditions": [{"type": "A", "status": "True"}]})
    changed_condition = [{"type": "A", "status": "False", "message": "no"}]
    env.faulty_transport.before_writes = [
        lambda: env.merge_patch(widget, {"status": {"conditions": changed_condition}}, subresource="status")
    ]
    after = await status.write_status(writer, WIDGET, widget, ready_report())
    assert after.status["conditions"][0] == changed_condition[0]
    assert after.is_true("Ready")
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["PATCH"]


async def test_condition_without_generation_ignores_changes_in_foreign_ones(env, writer):
    own_condition = {"type": "Ready", "status": "False", "reason": "Old", "message": ""}
    widget = await env.widget(status={"conditions": [{"type": "A", "status": "True"}, own_condition]})
    changed_condition = [{"type": "A", "status": "False"}, own_condition]
    env.faulty_transport.before_writes = [
        lambda: env.merge_patch(widget, {"status": {"conditions": changed_condition}}, subresource="status")
    ]
    after = await status.write_status(writer, WIDGET, widget, ready_report())
    assert after.condition("Ready")["observedGeneration"] == 1
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["PATCH"]


async def test_reported_value_is_restored_if_someone_changes_it_meanwhile(env, writer):
    """Tests the guard of an unchanged value: another writer changes it just before the report arrives."""
    widget = await status.write_status(writer, WIDGET, await env.widget(), ready_report(phase="P"))
    env.faulty_transport.before_writes = [
        lambda: env.merge_patch(widget, {"status": {"phase": "Theirs"}}, subresource="status")
    ]
    after = await status.write_status(writer, WIDGET, widget, ready_report(is_ready=False, phase="P"))
    assert (after.is_true("Ready"), after.status["phase"]) == (False, "P")


async def test_condition_that_another_writer_moved_is_found(env, writer):
    """Tests the guard of the condition type at the written index."""
    widget = await status.write_status(writer, WIDGET, await env.widget(), ready_report())
    own_condition = widget.status["conditions"][0]
    moved_conditions = [{"type": "B", "status": "True"}, own_condition]
    env.faulty_transport.before_writes = [
        lambda: env.merge_patch(widget, {"status": {"conditions": moved_conditions}}, subresource="status")
    ]
    after = await status.write_status(writer, WIDGET, widget, ready_report(is_ready=False))
    assert [(condition["type"], condition["status"]) for condition in after.status["conditions"]] == [
        ("B", "True"),
        ("Ready", "False"),
    ]


async def test_replaced_value_causes_another_run(env, writer):
    """Tests the guard of each replaced value."""
    widget = await env.widget(status={"phase": "Old"})
    env.faulty_transport.before_writes = [
        lambda: env.merge_patch(widget, {"status": {"phase": "Theirs"}}, subresource="status")
    ]
    await status.write_status(writer, WIDGET, widget, ready_report(phase="Ours"))
    assert env.faulty_transport.writes == ["PATCH", "PATCH"]


async def test_newer_generation_is_never_overwritten(env, writer):
    """Tests that observedGeneration never decreases, even if only the live object has the newer one."""
    widget = await env.widget(status={"observedGeneration": 1, "phase": "Old"})
    newer = {"status": {"observedGeneration": 2, "phase": "Newer"}}
    env.faulty_transport.before_writes = [lambda: env.merge_patch(widget, newer, subresource="status")]
    with pytest.raises(StatusSuperseded, match="generation 2"):
        await status.write_status(writer, WIDGET, widget, ready_report(1, phase="Older"))
    assert (await env.get_live(widget)).status == newer["status"]


async def test_none_removes_a_field(env, writer):
    widget = await env.widget(status={"phase": "Old", "addresses": ["a"]})
    report = StatusReport(1)
    report.set(addresses=None)
    after = await status.write_status(writer, WIDGET, widget, report)
    assert after.status == {"phase": "Old", "observedGeneration": 1}


async def test_field_that_the_schema_drops_is_sent_once(env, writer):
    widget = await status.write_status(writer, WIDGET, await env.widget(), ready_report(unknown="x"))
    assert "unknown" not in widget.status
    env.faulty_transport.forget_requests()
    await status.write_status(writer, WIDGET, widget, ready_report(unknown="x"))
    assert env.faulty_transport.sent_requests == []


@pytest.mark.parametrize("fields", [{"unknown": "x"}, {"ends": [{"name": "x"}]}], ids=["dropped", "defaulted"])
async def test_normalized_report_is_not_sent_again_after_foreign_writes(env, writer, fields):
    widget = await status.write_status(writer, WIDGET, await env.widget(), ready_report(**fields))
    env.faulty_transport.forget_requests()
    for number in range(5):
        env.cache.put(WIDGET, await env.merge_patch(widget, {"metadata": {"labels": {"n": str(number)}}}))
        await status.write_status(writer, WIDGET, widget, ready_report(**fields))
    assert env.faulty_transport.sent_requests == []
    for theirs in ({"ends": [{"name": "y"}]}, {"conditions": []}, {"unknown": None, "observedGeneration": None}):
        env.cache.put(WIDGET, await env.merge_patch(widget, {"status": theirs}, subresource="status"))
        after = await status.write_status(writer, WIDGET, widget, ready_report(**fields))
        assert (after.is_true("Ready"), after.status["observedGeneration"]) == (True, 1)
    assert after.status["ends"] == [{"name": "x" if "ends" in fields else "y", "mode": "plain"}]


async def test_two_new_conditions_and_a_changed_one_are_one_request(env, writer):
    widget = await status.write_status(writer, WIDGET, await env.widget(), ready_report())
    env.faulty_transport.forget_requests()
    report = ready_report(is_ready=False)
    report.condition("B", None, "R")
    report.condition("A", True, "R")
    after = await status.write_status(writer, WIDGET, widget, report)
    assert [(condition["type"], condition["status"]) for condition in after.status["conditions"]] == [
        ("Ready", "False"),
        ("B", "Unknown"),
        ("A", "True"),
    ]
    assert env.faulty_transport.writes == ["PATCH"]


@pytest.mark.parametrize("field", ["conditions", "observedGeneration"])
def test_conditions_and_generation_cannot_be_set_as_fields(field):
    report = StatusReport(10)
    with pytest.raises(ValueError, match=field):
        report.set(**{field: []})
    assert report.fields == {}


async def test_condition_never_reports_an_older_generation(env, writer):
    newer = {"type": "Ready", "status": "True", "reason": "New", "observedGeneration": 5}
    widget = await env.widget(status={"conditions": [newer]})
    report = StatusReport(4, observed=False)
    report.condition("Ready", False, "Old")
    with pytest.raises(StatusSuperseded, match="condition Ready"):
        await status.write_status(writer, WIDGET, widget, report)
    assert (await env.get_live(widget)).status["conditions"] == [newer]
