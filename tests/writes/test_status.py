"""write_status: one request, stable transition times, no foreign field changed, no no-op sent."""

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
def writer(bench):
    return Writer(bench.recording, World(Clock()), "ours", bench.view)


def ready(generation=1, value=True, message="fine", **fields):
    report = StatusReport(generation)
    report.condition("Ready", value, "Because", message)
    report.set(**fields)
    return report


async def test_first_report_is_one_request(bench, writer):
    widget = await bench.widget()
    after = await status.write_status(writer, WIDGET, widget, ready(addresses=["a"]))
    assert after.status["addresses"] == ["a"]
    assert after.status["observedGeneration"] == 1
    assert after.is_true("Ready")
    assert bench.wire.writes == ["PATCH"]


async def test_repeated_report_sends_nothing(bench, writer):
    widget = await status.write_status(writer, WIDGET, await bench.widget(), ready(phase="P"))
    bench.wire.forget()
    again = await status.write_status(writer, WIDGET, widget, ready(phase="P"))
    assert again.resource_version == widget.resource_version
    assert bench.wire.sent == []


async def test_repeated_report_sends_nothing_after_a_restart(bench, writer):
    widget = await status.write_status(writer, WIDGET, await bench.widget(), ready(phase="P"))
    bench.wire.forget()
    await status.write_status(Writer(bench.client, World(Clock()), "ours"), WIDGET, widget, ready(phase="P"))
    assert bench.wire.sent == []


async def test_only_a_transition_changes_the_transition_time(bench, writer):
    widget = await status.write_status(writer, WIDGET, await bench.widget(), ready())
    first = widget.condition("Ready")["lastTransitionTime"]
    widget = await status.write_status(writer, WIDGET, widget, ready(message="still fine"))
    assert widget.condition("Ready")["lastTransitionTime"] == first
    widget = await status.write_status(writer, WIDGET, widget, ready(value=False))
    assert widget.condition("Ready")["lastTransitionTime"] > first


async def test_foreign_conditions_and_fields_stay_and_cause_no_retry(bench, writer):
    widget = await status.write_status(writer, WIDGET, await bench.widget(), ready(phase="P"))
    foreign = [*widget.status["conditions"], {"type": "Theirs", "status": "True"}]
    bench.wire.forget()
    bench.wire.first = [
        lambda: bench.merge(widget, {"status": {"conditions": foreign, "counts": {"x": 1}}}, subresource="status")
    ]
    after = await status.write_status(writer, WIDGET, widget, ready(value=False, phase="Q"))
    assert bench.wire.writes == ["PATCH"]
    assert after.is_true("Theirs")
    assert not after.is_true("Ready")
    assert (after.status["counts"], after.status["phase"]) == ({"x": 1}, "Q")


async def test_added_condition_keeps_one_added_meanwhile(bench, writer):
    """Guard: the existing types, and their number."""
    widget = await bench.widget(status={"conditions": [{"type": "A", "status": "True"}]})
    both = [{"type": "B", "status": "True"}, {"type": "A", "status": "True"}]
    bench.wire.first = [lambda: bench.merge(widget, {"status": {"conditions": both}}, subresource="status")]
    after = await status.write_status(writer, WIDGET, widget, ready())
    assert {condition["type"] for condition in after.status["conditions"]} == {"A", "B", "Ready"}


async def test_condition_that_someone_adds_first_is_not_added_twice(bench, writer):
    """Guard: the number of conditions. One that was appended meanwhile was not read."""
    first = {"type": "A", "status": "True"}
    widget = await bench.widget(status={"conditions": [first]})
    both = [first, {"type": "Ready", "status": "False"}]
    bench.wire.first = [lambda: bench.merge(widget, {"status": {"conditions": both}}, subresource="status")]
    after = await status.write_status(writer, WIDGET, widget, ready())
    assert [(c["type"], c["status"]) for c in after.status["conditions"]] == [("A", "True"), ("Ready", "True")]


async def test_adding_a_condition_ignores_changes_in_foreign_conditions(bench, writer):
    widget = await bench.widget(status={"conditions": [{"type": "A", "status": "True"}]})
    other = [{"type": "A", "status": "False", "message": "no"}]
    bench.wire.first = [lambda: bench.merge(widget, {"status": {"conditions": other}}, subresource="status")]
    after = await status.write_status(writer, WIDGET, widget, ready())
    assert after.status["conditions"][0] == other[0]
    assert after.is_true("Ready")
    assert [method for method, _, _ in bench.wire.sent] == ["PATCH"]


async def test_condition_without_generation_ignores_changes_in_foreign_ones(bench, writer):
    mine = {"type": "Ready", "status": "False", "reason": "Old", "message": ""}
    widget = await bench.widget(status={"conditions": [{"type": "A", "status": "True"}, mine]})
    other = [{"type": "A", "status": "False"}, mine]
    bench.wire.first = [lambda: bench.merge(widget, {"status": {"conditions": other}}, subresource="status")]
    after = await status.write_status(writer, WIDGET, widget, ready())
    assert after.condition("Ready")["observedGeneration"] == 1
    assert [method for method, _, _ in bench.wire.sent] == ["PATCH"]


async def test_reported_value_is_restored_if_someone_changes_it_meanwhile(bench, writer):
    """Guard: a value that already is the reported one. Someone changes it just before the report arrives."""
    widget = await status.write_status(writer, WIDGET, await bench.widget(), ready(phase="P"))
    bench.wire.first = [lambda: bench.merge(widget, {"status": {"phase": "Theirs"}}, subresource="status")]
    after = await status.write_status(writer, WIDGET, widget, ready(value=False, phase="P"))
    assert (after.is_true("Ready"), after.status["phase"]) == (False, "P")


async def test_condition_that_another_writer_moved_is_found(bench, writer):
    """Guard: the test of the type at the index that is written."""
    widget = await status.write_status(writer, WIDGET, await bench.widget(), ready())
    ours = widget.status["conditions"][0]
    moved = [{"type": "B", "status": "True"}, ours]
    bench.wire.first = [lambda: bench.merge(widget, {"status": {"conditions": moved}}, subresource="status")]
    after = await status.write_status(writer, WIDGET, widget, ready(value=False))
    assert [(c["type"], c["status"]) for c in after.status["conditions"]] == [("B", "True"), ("Ready", "False")]


async def test_replaced_value_causes_another_run(bench, writer):
    """Guard: the test of each value that is replaced."""
    widget = await bench.widget(status={"phase": "Old"})
    bench.wire.first = [lambda: bench.merge(widget, {"status": {"phase": "Theirs"}}, subresource="status")]
    await status.write_status(writer, WIDGET, widget, ready(phase="Ours"))
    assert bench.wire.writes == ["PATCH", "PATCH"]


async def test_newer_generation_is_never_overwritten(bench, writer):
    """Guard: observedGeneration never decreases, even if only the live object shows the newer one."""
    widget = await bench.widget(status={"observedGeneration": 1, "phase": "Old"})
    newer = {"status": {"observedGeneration": 2, "phase": "Newer"}}
    bench.wire.first = [lambda: bench.merge(widget, newer, subresource="status")]
    with pytest.raises(StatusSuperseded, match="generation 2"):
        await status.write_status(writer, WIDGET, widget, ready(1, phase="Older"))
    assert (await bench.live(widget)).status == newer["status"]


async def test_none_removes_a_field(bench, writer):
    widget = await bench.widget(status={"phase": "Old", "addresses": ["a"]})
    report = StatusReport(1)
    report.set(addresses=None)
    after = await status.write_status(writer, WIDGET, widget, report)
    assert after.status == {"phase": "Old", "observedGeneration": 1}


async def test_field_that_the_schema_drops_is_sent_once(bench, writer):
    widget = await status.write_status(writer, WIDGET, await bench.widget(), ready(unknown="x"))
    assert "unknown" not in widget.status
    bench.wire.forget()
    await status.write_status(writer, WIDGET, widget, ready(unknown="x"))
    assert bench.wire.sent == []


@pytest.mark.parametrize("fields", [{"unknown": "x"}, {"ends": [{"name": "x"}]}], ids=["dropped", "defaulted"])
async def test_normalized_report_is_not_sent_again_after_foreign_writes(bench, writer, fields):
    widget = await status.write_status(writer, WIDGET, await bench.widget(), ready(**fields))
    bench.wire.forget()
    for n in range(5):
        bench.view.put(WIDGET, await bench.merge(widget, {"metadata": {"labels": {"n": str(n)}}}))
        await status.write_status(writer, WIDGET, widget, ready(**fields))
    assert bench.wire.sent == []
    for theirs in ({"ends": [{"name": "y"}]}, {"conditions": []}, {"unknown": None, "observedGeneration": None}):
        bench.view.put(WIDGET, await bench.merge(widget, {"status": theirs}, subresource="status"))
        after = await status.write_status(writer, WIDGET, widget, ready(**fields))
        assert (after.is_true("Ready"), after.status["observedGeneration"]) == (True, 1)
    assert after.status["ends"] == [{"name": "x" if "ends" in fields else "y", "mode": "plain"}]


async def test_two_new_conditions_and_a_changed_one_are_one_request(bench, writer):
    widget = await status.write_status(writer, WIDGET, await bench.widget(), ready())
    bench.wire.forget()
    report = ready(value=False)
    report.condition("B", None, "R")
    report.condition("A", True, "R")
    after = await status.write_status(writer, WIDGET, widget, report)
    assert [(c["type"], c["status"]) for c in after.status["conditions"]] == [
        ("Ready", "False"),
        ("B", "Unknown"),
        ("A", "True"),
    ]
    assert bench.wire.writes == ["PATCH"]


@pytest.mark.parametrize("field", ["conditions", "observedGeneration"])
def test_conditions_and_generation_cannot_be_set_as_fields(field):
    report = StatusReport(10)
    with pytest.raises(ValueError, match=field):
        report.set(**{field: []})
    assert report.fields == {}


async def test_condition_never_reports_an_older_generation(bench, writer):
    newer = {"type": "Ready", "status": "True", "reason": "New", "observedGeneration": 5}
    widget = await bench.widget(status={"conditions": [newer]})
    report = StatusReport(4, observed=False)
    report.condition("Ready", False, "Old")
    with pytest.raises(StatusSuperseded, match="condition Ready"):
        await status.write_status(writer, WIDGET, widget, report)
    assert (await bench.live(widget)).status["conditions"] == [newer]
