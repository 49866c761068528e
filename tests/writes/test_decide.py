"""decide: changes are written only while everything that was read still holds. A docstring names the guard tested."""

import asyncio
import dataclasses
import functools
import time
from types import SimpleNamespace

import pytest
from workbench import WIDGET, Bench, install

from fairlead.api.errors import Invalid
from fairlead.client.client import Client
from fairlead.server.app import Server
from fairlead.testing import virtual
from fairlead.writes import (
    DecisionContention,
    ImpureDecision,
    ObjectDeleted,
    ObjectReplaced,
    PatchTestMismatch,
    UndeclaredField,
    WriteError,
    Writer,
    decide,
    purity,
)


def plan(draft, new="ours"):
    """Set a plan if there is none. Without a guard, two writers would both set one."""
    if draft.status.get("plan"):
        return draft.status["plan"]["id"]
    draft.status["plan"] = {"id": new, "steps": ["a"]}
    return new


async def test_decision_is_one_request(bench):
    widget = await bench.widget(spec={"size": 1})
    decided = await decide(bench.writer, WIDGET, widget, plan)
    assert (decided.result, decided.changed) == ("ours", True)
    assert decided.object.status["plan"] == {"id": "ours", "steps": ["a"]}
    assert bench.wire.writes == ["PATCH"]
    assert bench.wire.reads == []


async def test_decision_without_changes_sends_nothing(bench):
    widget = await bench.widget(status={"plan": {"id": "theirs"}})
    decided = await decide(bench.writer, WIDGET, widget, plan)
    assert (decided.result, decided.changed) == ("theirs", False)
    assert bench.wire.sent == []


async def test_plan_of_another_writer_is_kept(bench):
    """Guard: the absence that is filled, if status exists."""
    widget = await bench.widget(status={"phase": "Old"})
    bench.wire.first = [lambda: bench.merge(widget, {"status": {"plan": {"id": "theirs"}}}, "status")]
    decided = await decide(bench.writer, WIDGET, widget, plan)
    assert decided.result == "theirs"
    assert (await bench.live(widget)).status["plan"] == {"id": "theirs"}


async def test_plan_of_another_writer_is_kept_if_status_was_missing(bench):
    """Guard: the absence at the first missing parent."""
    widget = await bench.widget()
    bench.wire.first = [lambda: bench.merge(widget, {"status": {"plan": {"id": "theirs"}}}, "status")]
    assert (await decide(bench.writer, WIDGET, widget, plan)).result == "theirs"
    assert (await bench.live(widget)).status == {"plan": {"id": "theirs"}}


async def test_value_that_was_only_read_is_guarded(bench):
    """Guard: the test of a value that was read."""
    widget = await bench.widget(spec={"size": 1})

    def phase(draft):
        draft.status["phase"] = "Big" if draft.spec["size"] > 5 else "Small"

    bench.wire.first = [lambda: bench.merge(widget, {"spec": {"size": 9}})]
    decided = await decide(bench.writer, WIDGET, widget, phase)
    assert decided.object.status["phase"] == "Big"


async def test_absence_that_was_only_read_is_guarded(bench):
    """Guard: the test of an absence that was read."""
    widget = await bench.widget(spec={"size": 1})

    def phase(draft):
        draft.status["phase"] = "Noted" if "note" in draft.spec else "Plain"

    bench.wire.first = [lambda: bench.merge(widget, {"spec": {"note": "x"}})]
    assert (await decide(bench.writer, WIDGET, widget, phase)).object.status["phase"] == "Noted"


async def test_search_for_a_missing_item_is_guarded(bench):
    """Guard: the test of a list that was read to its end."""
    widget = await bench.widget(spec={"listeners": [{"name": "a", "port": 1}]})

    def phase(draft):
        found = any(listener["name"] == "b" for listener in draft.spec["listeners"])
        draft.status["phase"] = "B" if found else "None"

    both = [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
    bench.wire.first = [lambda: bench.merge(widget, {"spec": {"listeners": both}})]
    assert (await decide(bench.writer, WIDGET, widget, phase)).object.status["phase"] == "B"


async def test_existence_of_a_map_is_guarded_without_its_contents(bench):
    """Guard: the test of presence. A change inside the map is irrelevant, its removal is not."""
    widget = await bench.widget(spec={"options": {"a": "1"}})

    def phase(draft):
        draft.status["phase"] = "Options" if draft["spec"].get("options") is not None else "None"

    bench.wire.first = [lambda: bench.merge(widget, {"spec": {"options": {"b": "2"}}})]
    assert (await decide(bench.writer, WIDGET, widget, phase)).object.status["phase"] == "Options"
    assert bench.wire.writes == ["PATCH"]
    widget = await bench.merge(widget, {"status": {"phase": "Old"}}, "status")
    bench.wire.first = [lambda: bench.merge(widget, {"spec": {"options": None}})]
    assert (await decide(bench.writer, WIDGET, widget, phase)).object.status["phase"] == "None"


async def test_replaced_value_is_guarded_without_a_read(bench):
    """Guard: the test of a replaced value. Both writers set it without a read, and the later one must run again."""
    widget = await bench.widget(status={"phase": "Old"})

    def blind(draft):
        draft.status["phase"] = "Ours"

    bench.wire.first = [lambda: bench.merge(widget, {"status": {"phase": "Theirs"}}, "status")]
    await decide(bench.writer, WIDGET, widget, blind)
    patches = [body for method, _, body in bench.wire.sent if method == "PATCH"]
    tested = [op["value"] for patch in patches for op in patch if (op["op"], op["path"]) == ("test", "/status/phase")]
    assert tested == ["Old", "Theirs"]


async def test_removed_value_is_guarded_without_a_read(bench):
    """Guard: the test of a value that is removed. The function must know the removed value."""
    widget = await bench.widget(spec={"options": {"a": "1"}})

    def blind(draft):
        del draft["spec"]["options"]

    bench.wire.first = [lambda: bench.merge(widget, {"spec": {"options": {"b": "2"}}})]
    await decide(bench.writer, WIDGET, widget, blind)
    assert [method for method, _, _ in bench.wire.sent] == ["PATCH", "GET", "PATCH"]


async def test_unrelated_writers_cause_no_second_run(bench):
    widget = await bench.widget(spec={"size": 1}, status={"phase": "Old"})

    async def foreign():
        await bench.merge(widget, {"metadata": {"labels": {"x": "y"}, "annotations": {"a": "b"}}, "spec": {"size": 2}})
        await bench.merge(widget, {"status": {"phase": "New", "conditions": [{"type": "X"}]}}, "status")

    bench.wire.first = [foreign]
    assert (await decide(bench.writer, WIDGET, widget, plan)).result == "ours"
    assert bench.wire.writes == ["PATCH"]


async def test_decision_on_a_recreated_object_is_rejected(bench):
    """Guard: uid. The new object has the values that were read, and still must not be changed."""
    widget = await bench.widget(spec={"size": 1})
    await bench.recreate(widget)
    with pytest.raises(ObjectReplaced, match="read it again"):
        await decide(bench.writer, WIDGET, widget, plan)
    assert "status" not in await bench.live(widget)


async def test_cached_recreated_object_is_not_used_for_the_old_one(bench):
    """Guard: the newest copy must be of the same uid."""
    widget = await bench.widget(spec={"size": 1})
    bench.view.put(WIDGET, await bench.recreate(widget))
    with pytest.raises(ObjectReplaced):
        await decide(bench.cached, WIDGET, widget, plan)
    assert "status" not in await bench.live(widget)


async def test_decision_on_a_deleted_object_is_rejected(bench):
    widget = await bench.widget()
    await bench.other.delete(WIDGET, widget.name, widget.namespace)
    with pytest.raises(ObjectDeleted):
        await decide(bench.writer, WIDGET, widget, plan)


async def test_lost_answer_is_looked_up_and_not_repeated(bench):
    widget = await bench.widget()
    bench.wire.lost = 1
    decided = await decide(bench.writer, WIDGET, widget, functools.partial(plan, new="first"))
    assert decided.result == "first"
    assert [method for method, _, _ in bench.wire.sent] == ["PATCH", "GET"]


async def test_values_that_python_and_go_encode_differently_can_be_guarded(bench):
    odd = {"url": "x?a=1&b=<2>", "sep": "\u2028\u2029", "text": "ü\u00a0\U0001f600", "quote": 'a"\\\n\t/'}
    widget = await bench.widget(spec={"free": {**odd, "small": 1e-7, "float": 1.5, "big": 2**53}})

    def copy_all(draft):
        draft.status["phase"] = str(draft.spec["free"].plain())

    await decide(bench.writer, WIDGET, widget, copy_all)
    assert bench.wire.writes == ["PATCH"]


async def test_failed_test_that_should_pass_is_reported(bench, monkeypatch):
    """A test that can never pass must not be retried like a conflict."""
    widget = await bench.widget(spec={"note": "a&b"}, status={"phase": "Old"})
    real = bench.client.patch

    async def misspelt(kind, name, namespace, patch, **options):
        spoilt = [{**op, "value": "a+b"} if op.get("value") == "a&b" else op for op in patch]
        return await real(kind, name, namespace, spoilt, **options)

    monkeypatch.setattr(bench.client, "patch", misspelt)

    def phase(draft):
        draft.status["phase"] = draft.spec["note"]

    with pytest.raises(PatchTestMismatch, match="/spec/note"):
        await decide(bench.writer, WIDGET, widget, phase)
    assert bench.wire.writes == ["PATCH", "PATCH"]


DENIED = {"reason": "Invalid", "code": 422, "message": 'admission webhook "w" denied the request: not on Fridays'}


async def test_webhook_rejection_is_raised_unchanged_under_contention(bench, monkeypatch):
    """The error has no causes, like that of a failed test."""
    widget = await bench.widget(spec={"note": "a"})

    async def denied(*args, **options):
        await bench.merge(widget, {"metadata": {"labels": {"n": str(bench.world.random.random())}}})
        raise Invalid(DENIED)

    monkeypatch.setattr(bench.client, "patch", denied)
    with pytest.raises(Invalid, match="not on Fridays"):
        await decide(bench.writer, WIDGET, widget, lambda draft: draft.status.update(phase=draft.spec["note"]))


async def test_schema_error_is_not_a_conflict(bench):
    widget = await bench.widget()

    def wrong(draft):
        draft.status["phase"] = 5

    with pytest.raises(Invalid, match="phase"):
        await decide(bench.writer, WIDGET, widget, wrong)
    assert [method for method, _, _ in bench.wire.sent] == ["PATCH"], (
        "it is not a conflict, so the object is not read again"
    )


async def test_many_writers_on_one_field_end_in_an_error(bench):
    widget = await bench.widget(status={"phase": "0"})

    def count(draft):
        draft.status["phase"] = str(int(draft.status["phase"]) + 1)

    async def interfere():
        bench.wire.first = [interfere]
        live = await bench.live(widget)
        await bench.merge(widget, {"status": {"phase": str(int(live.status["phase"]) + 1)}}, "status")

    bench.wire.first = [interfere]
    with pytest.raises(DecisionContention, match="16 times"):
        await decide(bench.writer, WIDGET, widget, count)


def test_many_writers_on_one_field_are_separated_by_random_delays():
    """Thirty processes increment one field. Without delays they stay in step, and only sixteen succeed."""

    class Slow:  # The latency of a real server, in virtual time.
        def __init__(self, transport):
            self.transport = transport

        async def request(self, request):
            await asyncio.sleep(0.001)
            answer = await self.transport.request(request)
            await asyncio.sleep(0.001)
            return answer

    def increment(draft):
        draft.status["counts"]["n"] += 1

    async def increment_concurrently():
        world = virtual.world()
        bench = Bench(SimpleNamespace(namespace="default"), Server(world, tokens=["t"]).transport())
        await install(bench.other)
        widget = await bench.widget(status={"counts": {"n": 0}})
        writers = [Writer(Client(Slow(bench.transport), world), world, f"o{n}") for n in range(30)]
        await asyncio.gather(*(decide(writer, WIDGET, widget, increment) for writer in writers))
        return (await bench.live(widget)).status["counts"]["n"]

    assert virtual.run(increment_concurrently()) == 30


async def test_decisions_of_one_process_are_serialized(bench):
    """Guard: the lock. Without it the ten decisions would fail each other's tests and read live."""
    widget = await bench.widget(status={"phase": "0"})
    bench.view.put(WIDGET, widget)

    def count(draft):
        draft.status["phase"] = str(int(draft.status["phase"]) + 1)

    await asyncio.gather(*(decide(bench.cached, WIDGET, widget, count) for _ in range(10)))
    assert (await bench.live(widget)).status["phase"] == "10"
    assert [method for method, _, _ in bench.wire.sent] == ["PATCH"] * 10


async def test_status_and_spec_need_two_decisions(bench):
    widget = await bench.widget()

    def both(draft):
        draft.spec["size"] = 1
        draft.status["phase"] = "x"

    with pytest.raises(WriteError, match="two decisions"):
        await decide(bench.writer, WIDGET, widget, both)


async def test_spec_is_written_at_the_main_endpoint(bench):
    widget = await bench.widget(spec={"note": "n"})
    await decide(bench.writer, WIDGET, widget, lambda draft: draft.spec.update(size=4))
    assert (await bench.live(widget)).spec == {"note": "n", "size": 4}


async def test_only_declared_fields_may_change(bench):
    widget = await bench.widget(spec={"size": 1, "note": "n"})

    def change(draft):
        draft.spec["note"] = "m"

    with pytest.raises(UndeclaredField, match="/spec/note"):
        await decide(bench.writer, WIDGET, widget, change, only=["spec.size"])
    await decide(bench.writer, WIDGET, widget, change, only=["spec.note"])
    assert (await bench.live(widget)).spec == {"size": 1, "note": "m"}


async def test_impure_functions_are_rejected(bench):
    widget = await bench.widget()
    counter, plans = iter(range(100)), []

    def random(draft):
        draft.status["phase"] = str(next(counter))

    def collects(draft):
        plans.append("x")
        draft.status["phase"] = "x"

    async def waits(draft):
        draft.status["phase"] = "x"

    def yields(draft):
        draft.status["phase"] = "x"
        yield draft

    def lazily(draft):
        return (value for value in draft.status)

    def invents(draft):
        draft.status["phase"] = "x"
        return {"id": next(counter)}

    cases = {
        random: "different changes",
        collects: "changes plans",
        waits: "coroutine.*make it a plain function",
        yields: "generator",
        lazily: "generator",
        invents: "different values",
    }
    for function, message in cases.items():
        with pytest.raises(ImpureDecision, match=message):
            await decide(bench.writer, WIDGET, widget, function)
    assert bench.wire.sent == []


class Slotted:
    __slots__ = ("__runs",)

    def __init__(self):
        self.__runs = 0

    def count(self, draft):
        self.__runs += 1
        draft.status["phase"] = "x"


class Callable:
    def __init__(self, calls):
        self.calls = calls

    def __call__(self, draft):
        self.calls.append("x")
        draft.status["phase"] = "x"


def by_keyword(draft, *, calls=[]):  # noqa: B006 - the mistake under test
    calls.append("x")
    draft.status["phase"] = "x"


def wrapped():
    calls = []

    def collects(draft):
        calls.append("x")
        draft.status["phase"] = "x"

    @functools.wraps(collects)
    def function(draft):
        return collects(draft)

    return function


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (Slotted().count, "self._Slotted__runs"),
        (Callable([]), "self.calls"),
        (functools.partial(Callable([])), "self.calls"),
        (by_keyword, "default calls"),
        (wrapped(), "wrapped calls"),
    ],
    ids=["slots", "callable object", "partial", "keyword-only default", "wrapped"],
)
def test_state_kept_between_runs_is_detected(function, name):
    with pytest.raises(ImpureDecision, match=f"it changes .*{name}"):
        purity.run(function, {"metadata": {"uid": "u"}})


def test_nan_and_cyclic_values_may_be_captured():
    odd, held = float("nan"), {"a": 1}
    held["self"] = held
    assert purity.run(lambda draft: len(held) + (odd == odd), {"metadata": {"uid": "u"}})[0] == 2


async def test_returned_values_are_plain_and_guarded(bench):
    widget = await bench.widget(spec={"options": {"a": "1"}}, status={"phase": "Old"})

    def function(draft):
        draft.status["phase"] = "New"
        return {"options": draft.spec["options"]}

    bench.wire.first = [lambda: bench.merge(widget, {"spec": {"options": {"a": "2"}}})]
    assert (await decide(bench.writer, WIDGET, widget, function)).result == {"options": {"a": "2"}}


@dataclasses.dataclass(frozen=True)
class Found:
    options: dict


async def test_values_returned_in_a_dataclass_are_plain_and_guarded(bench):
    widget = await bench.widget(spec={"options": {"a": "1"}}, status={"phase": "Old"})

    def function(draft):
        draft.status["phase"] = "New"
        return Found(draft.spec["options"])

    bench.wire.first = [lambda: bench.merge(widget, {"spec": {"options": {"a": "2"}}})]
    decided = await decide(bench.writer, WIDGET, widget, function)
    assert decided.result == Found({"a": "2"})
    assert type(decided.result.options) is dict


async def test_function_may_return_a_tuple_that_cannot_be_rebuilt(bench):
    widget = await bench.widget()
    decided = await decide(bench.writer, WIDGET, widget, lambda draft: time.gmtime(draft.generation))
    assert decided.result == time.gmtime(1)


async def test_draft_part_that_escaped_cannot_be_read_later(bench):
    widget = await bench.widget(spec={"options": {"a": "1"}})
    decided = await decide(bench.writer, WIDGET, widget, lambda draft: iter([draft.spec["options"]]))
    with pytest.raises(WriteError, match="plain copy"):
        next(decided.result).get("a")


async def test_newer_given_copy_is_preferred_to_an_older_cached_one(bench):
    bench.view.put(WIDGET, await bench.widget(spec={"size": 1}))
    newer = await bench.merge(bench.view.peek(WIDGET, "w", bench.namespace), {"spec": {"size": 2}})
    decided = await decide(bench.cached, WIDGET, newer, lambda draft: draft.spec["size"])
    assert decided.result == 2
    bench.view.put(WIDGET, await bench.merge(newer, {"spec": {"size": 3}}))
    decided = await decide(bench.cached, WIDGET, newer, lambda draft: draft.spec["size"])
    assert decided.result == 3
