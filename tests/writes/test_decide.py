"""Tests of decide: it writes only if everything that the function read is unchanged.

The docstring of a test names the guard that it tests.
"""

import asyncio
import dataclasses
import functools
import time
from types import SimpleNamespace

import pytest
from workbench import WIDGET, WriteTestEnvironment, install

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


def set_plan(draft, new="ours"):
    """Set a plan if the status has none. Without a guard, two writers would both set one."""
    if draft.status.get("plan"):
        return draft.status["plan"]["id"]
    draft.status["plan"] = {"id": new, "steps": ["a"]}
    return new


async def test_decision_is_one_request(env):
    widget = await env.widget(spec={"size": 1})
    decided = await decide(env.writer, WIDGET, widget, set_plan)
    assert (decided.result, decided.changed) == ("ours", True)
    assert decided.object.status["plan"] == {"id": "ours", "steps": ["a"]}
    assert env.faulty_transport.writes == ["PATCH"]
    assert env.faulty_transport.reads == []


async def test_decision_without_changes_sends_nothing(env):
    widget = await env.widget(status={"plan": {"id": "theirs"}})
    decided = await decide(env.writer, WIDGET, widget, set_plan)
    assert (decided.result, decided.changed) == ("theirs", False)
    assert env.faulty_transport.sent_requests == []


async def test_plan_of_another_writer_is_kept(env):
    """Tests the guard of a filled absence, with an existing status."""
    widget = await env.widget(status={"phase": "Old"})
    env.faulty_transport.before_writes = [
        lambda: env.merge_patch(widget, {"status": {"plan": {"id": "theirs"}}}, "status")
    ]
    decided = await decide(env.writer, WIDGET, widget, set_plan)
    assert decided.result == "theirs"
    assert (await env.get_live(widget)).status["plan"] == {"id": "theirs"}


async def test_plan_of_another_writer_is_kept_if_status_was_missing(env):
    """Tests the guard of a filled absence: the patch tests the first missing parent."""
    widget = await env.widget()
    env.faulty_transport.before_writes = [
        lambda: env.merge_patch(widget, {"status": {"plan": {"id": "theirs"}}}, "status")
    ]
    assert (await decide(env.writer, WIDGET, widget, set_plan)).result == "theirs"
    assert (await env.get_live(widget)).status == {"plan": {"id": "theirs"}}


async def test_value_that_was_only_read_is_guarded(env):
    """Tests the guard of a value that was only read."""
    widget = await env.widget(spec={"size": 1})

    def set_phase(draft):
        draft.status["phase"] = "Big" if draft.spec["size"] > 5 else "Small"

    env.faulty_transport.before_writes = [lambda: env.merge_patch(widget, {"spec": {"size": 9}})]
    decided = await decide(env.writer, WIDGET, widget, set_phase)
    assert decided.object.status["phase"] == "Big"


async def test_absence_that_was_only_read_is_guarded(env):
    """Tests the guard of an absence that was only read."""
    widget = await env.widget(spec={"size": 1})

    def set_phase(draft):
        draft.status["phase"] = "Noted" if "note" in draft.spec else "Plain"

    env.faulty_transport.before_writes = [lambda: env.merge_patch(widget, {"spec": {"note": "x"}})]
    assert (await decide(env.writer, WIDGET, widget, set_phase)).object.status["phase"] == "Noted"


async def test_search_for_a_missing_item_is_guarded(env):
    """Tests the guard of a list that was read to its end."""
    widget = await env.widget(spec={"listeners": [{"name": "a", "port": 1}]})

    def set_phase(draft):
        has_listener = any(listener["name"] == "b" for listener in draft.spec["listeners"])
        draft.status["phase"] = "B" if has_listener else "None"

    two_listeners = [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
    env.faulty_transport.before_writes = [lambda: env.merge_patch(widget, {"spec": {"listeners": two_listeners}})]
    assert (await decide(env.writer, WIDGET, widget, set_phase)).object.status["phase"] == "B"


async def test_existence_of_a_map_is_guarded_without_its_contents(env):
    """Tests the guard of an existing map: a change inside the map is ignored, but not its removal."""
    widget = await env.widget(spec={"options": {"a": "1"}})

    def set_phase(draft):
        draft.status["phase"] = "Options" if draft["spec"].get("options") is not None else "None"

    env.faulty_transport.before_writes = [lambda: env.merge_patch(widget, {"spec": {"options": {"b": "2"}}})]
    assert (await decide(env.writer, WIDGET, widget, set_phase)).object.status["phase"] == "Options"
    assert env.faulty_transport.writes == ["PATCH"]
    widget = await env.merge_patch(widget, {"status": {"phase": "Old"}}, "status")
    env.faulty_transport.before_writes = [lambda: env.merge_patch(widget, {"spec": {"options": None}})]
    assert (await decide(env.writer, WIDGET, widget, set_phase)).object.status["phase"] == "None"


async def test_replaced_value_is_guarded_without_a_read(env):
    """Tests the guard of a replaced value: two writers set it without reading it, and the later one runs again."""
    widget = await env.widget(status={"phase": "Old"})

    def set_without_reading(draft):
        draft.status["phase"] = "Ours"

    env.faulty_transport.before_writes = [lambda: env.merge_patch(widget, {"status": {"phase": "Theirs"}}, "status")]
    await decide(env.writer, WIDGET, widget, set_without_reading)
    patches = [body for method, _, body in env.faulty_transport.sent_requests if method == "PATCH"]
    tested = [op["value"] for patch in patches for op in patch if (op["op"], op["path"]) == ("test", "/status/phase")]
    assert tested == ["Old", "Theirs"]


async def test_removed_value_is_guarded_without_a_read(env):
    """Tests the guard of a removed value: the function must have seen it."""
    widget = await env.widget(spec={"options": {"a": "1"}})

    def set_without_reading(draft):
        del draft["spec"]["options"]

    env.faulty_transport.before_writes = [lambda: env.merge_patch(widget, {"spec": {"options": {"b": "2"}}})]
    await decide(env.writer, WIDGET, widget, set_without_reading)
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["PATCH", "GET", "PATCH"]


async def test_unrelated_writers_cause_no_second_run(env):
    widget = await env.widget(spec={"size": 1}, status={"phase": "Old"})

    async def write_unrelated_fields():
        await env.merge_patch(
            widget, {"metadata": {"labels": {"x": "y"}, "annotations": {"a": "b"}}, "spec": {"size": 2}}
        )
        await env.merge_patch(widget, {"status": {"phase": "New", "conditions": [{"type": "X"}]}}, "status")

    env.faulty_transport.before_writes = [write_unrelated_fields]
    assert (await decide(env.writer, WIDGET, widget, set_plan)).result == "ours"
    assert env.faulty_transport.writes == ["PATCH"]


async def test_decision_on_a_recreated_object_is_rejected(env):
    """Tests the uid guard: the new object has the same values, but must not be changed."""
    widget = await env.widget(spec={"size": 1})
    await env.recreate(widget)
    with pytest.raises(ObjectReplaced, match="read it again"):
        await decide(env.writer, WIDGET, widget, set_plan)
    assert "status" not in await env.get_live(widget)


async def test_cached_recreated_object_is_not_used_for_the_old_one(env):
    """Tests that a cached copy with another uid is not used."""
    widget = await env.widget(spec={"size": 1})
    env.cache.put(WIDGET, await env.recreate(widget))
    with pytest.raises(ObjectReplaced):
        await decide(env.cached_writer, WIDGET, widget, set_plan)
    assert "status" not in await env.get_live(widget)


async def test_decision_on_a_deleted_object_is_rejected(env):
    widget = await env.widget()
    await env.foreign_client.delete(WIDGET, widget.name, widget.namespace)
    with pytest.raises(ObjectDeleted):
        await decide(env.writer, WIDGET, widget, set_plan)


async def test_lost_answer_is_looked_up_and_not_repeated(env):
    widget = await env.widget()
    env.faulty_transport.lost_responses = 1
    decided = await decide(env.writer, WIDGET, widget, functools.partial(set_plan, new="first"))
    assert decided.result == "first"
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["PATCH", "GET"]


async def test_values_that_python_and_go_encode_differently_can_be_guarded(env):
    unusual_values = {"url": "x?a=1&b=<2>", "sep": "\u2028\u2029", "text": "ü\u00a0\U0001f600", "quote": 'a"\\\n\t/'}
    widget = await env.widget(spec={"free": {**unusual_values, "small": 1e-7, "float": 1.5, "big": 2**53}})

    def copy_all(draft):
        draft.status["phase"] = str(draft.spec["free"].plain())

    await decide(env.writer, WIDGET, widget, copy_all)
    assert env.faulty_transport.writes == ["PATCH"]


async def test_failed_test_that_should_pass_is_reported(env, monkeypatch):
    """Tests a JSON patch test that can never pass: it is an error, not a conflict to retry."""
    widget = await env.widget(spec={"note": "a&b"}, status={"phase": "Old"})
    original_patch = env.client.patch

    async def send_wrong_test(kind, name, namespace, patch, **options):
        wrong_patch = [{**op, "value": "a+b"} if op.get("value") == "a&b" else op for op in patch]
        return await original_patch(kind, name, namespace, wrong_patch, **options)

    monkeypatch.setattr(env.client, "patch", send_wrong_test)

    def set_phase(draft):
        draft.status["phase"] = draft.spec["note"]

    with pytest.raises(PatchTestMismatch, match="/spec/note"):
        await decide(env.writer, WIDGET, widget, set_phase)
    assert env.faulty_transport.writes == ["PATCH", "PATCH"]


DENIED = {"reason": "Invalid", "code": 422, "message": 'admission webhook "w" denied the request: not on Fridays'}


async def test_webhook_rejection_is_raised_unchanged_under_contention(env, monkeypatch):
    """Tests a rejection by a webhook, which has no causes, like the rejection of a failed JSON patch test."""
    widget = await env.widget(spec={"note": "a"})

    async def raise_denied(*args, **options):
        await env.merge_patch(widget, {"metadata": {"labels": {"n": str(env.world.random.random())}}})
        raise Invalid(DENIED)

    monkeypatch.setattr(env.client, "patch", raise_denied)
    with pytest.raises(Invalid, match="not on Fridays"):
        await decide(env.writer, WIDGET, widget, lambda draft: draft.status.update(phase=draft.spec["note"]))


async def test_schema_error_is_not_a_conflict(env):
    widget = await env.widget()

    def set_wrong_type(draft):
        draft.status["phase"] = 5

    with pytest.raises(Invalid, match="phase"):
        await decide(env.writer, WIDGET, widget, set_wrong_type)
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["PATCH"], (
        "it is not a conflict, so the object is not read again"
    )


async def test_many_writers_on_one_field_end_in_an_error(env):
    widget = await env.widget(status={"phase": "0"})

    def count(draft):
        draft.status["phase"] = str(int(draft.status["phase"]) + 1)

    async def write_first():
        env.faulty_transport.before_writes = [write_first]
        live = await env.get_live(widget)
        await env.merge_patch(widget, {"status": {"phase": str(int(live.status["phase"]) + 1)}}, "status")

    env.faulty_transport.before_writes = [write_first]
    with pytest.raises(DecisionContention, match="16 times"):
        await decide(env.writer, WIDGET, widget, count)


def test_many_writers_on_one_field_are_separated_by_random_delays():
    """Tests thirty processes that increment one field. Without random delays, only sixteen succeed."""

    class SlowTransport:  # The latency of a real server, in virtual time.
        def __init__(self, transport):
            self.transport = transport

        async def request(self, request):
            await asyncio.sleep(0.001)
            response = await self.transport.request(request)
            await asyncio.sleep(0.001)
            return response

    def increment(draft):
        draft.status["counts"]["n"] += 1

    async def increment_concurrently():
        world = virtual.world()
        env = WriteTestEnvironment(SimpleNamespace(namespace="default"), Server(world, tokens=["t"]).transport())
        await install(env.foreign_client)
        widget = await env.widget(status={"counts": {"n": 0}})
        writers = [Writer(Client(SlowTransport(env.transport), world), world, f"o{number}") for number in range(30)]
        await asyncio.gather(*(decide(writer, WIDGET, widget, increment) for writer in writers))
        return (await env.get_live(widget)).status["counts"]["n"]

    assert virtual.run(increment_concurrently()) == 30


async def test_decisions_of_one_process_are_serialized(env):
    """Tests the lock: without it, the ten decisions would fail each other's tests and read live."""
    widget = await env.widget(status={"phase": "0"})
    env.cache.put(WIDGET, widget)

    def count(draft):
        draft.status["phase"] = str(int(draft.status["phase"]) + 1)

    await asyncio.gather(*(decide(env.cached_writer, WIDGET, widget, count) for _ in range(10)))
    assert (await env.get_live(widget)).status["phase"] == "10"
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["PATCH"] * 10


async def test_status_and_spec_need_two_decisions(env):
    widget = await env.widget()

    def two_listeners(draft):
        draft.spec["size"] = 1
        draft.status["phase"] = "x"

    with pytest.raises(WriteError, match="two decisions"):
        await decide(env.writer, WIDGET, widget, two_listeners)


async def test_spec_is_written_at_the_main_endpoint(env):
    widget = await env.widget(spec={"note": "n"})
    await decide(env.writer, WIDGET, widget, lambda draft: draft.spec.update(size=4))
    assert (await env.get_live(widget)).spec == {"note": "n", "size": 4}


async def test_only_declared_fields_may_change(env):
    widget = await env.widget(spec={"size": 1, "note": "n"})

    def change(draft):
        draft.spec["note"] = "m"

    with pytest.raises(UndeclaredField, match="/spec/note"):
        await decide(env.writer, WIDGET, widget, change, only=["spec.size"])
    await decide(env.writer, WIDGET, widget, change, only=["spec.note"])
    assert (await env.get_live(widget)).spec == {"size": 1, "note": "m"}


async def test_impure_functions_are_rejected(env):
    widget = await env.widget()
    counter, plans = iter(range(100)), []

    def use_random_value(draft):
        draft.status["phase"] = str(next(counter))

    def collect_plans(draft):
        plans.append("x")
        draft.status["phase"] = "x"

    async def wait_asynchronously(draft):
        draft.status["phase"] = "x"

    def yield_value(draft):
        draft.status["phase"] = "x"
        yield draft

    def return_generator(draft):
        return (value for value in draft.status)

    def use_counter(draft):
        draft.status["phase"] = "x"
        return {"id": next(counter)}

    cases = {
        use_random_value: "different changes",
        collect_plans: "changes plans",
        wait_asynchronously: "coroutine.*make it a plain function",
        yield_value: "generator",
        return_generator: "generator",
        use_counter: "different values",
    }
    for function, message in cases.items():
        with pytest.raises(ImpureDecision, match=message):
            await decide(env.writer, WIDGET, widget, function)
    assert env.faulty_transport.sent_requests == []


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

    def collect_plans(draft):
        calls.append("x")
        draft.status["phase"] = "x"

    @functools.wraps(collect_plans)
    def function(draft):
        return collect_plans(draft)

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
    unusual_values, captured_map = float("nan"), {"a": 1}
    captured_map["self"] = captured_map
    assert (
        purity.run(lambda draft: len(captured_map) + (unusual_values == unusual_values), {"metadata": {"uid": "u"}})[0]
        == 2
    )


async def test_returned_values_are_plain_and_guarded(env):
    widget = await env.widget(spec={"options": {"a": "1"}}, status={"phase": "Old"})

    def function(draft):
        draft.status["phase"] = "New"
        return {"options": draft.spec["options"]}

    env.faulty_transport.before_writes = [lambda: env.merge_patch(widget, {"spec": {"options": {"a": "2"}}})]
    assert (await decide(env.writer, WIDGET, widget, function)).result == {"options": {"a": "2"}}


@dataclasses.dataclass(frozen=True)
class FoundOption:
    options: dict


async def test_values_returned_in_a_dataclass_are_plain_and_guarded(env):
    widget = await env.widget(spec={"options": {"a": "1"}}, status={"phase": "Old"})

    def function(draft):
        draft.status["phase"] = "New"
        return FoundOption(draft.spec["options"])

    env.faulty_transport.before_writes = [lambda: env.merge_patch(widget, {"spec": {"options": {"a": "2"}}})]
    decided = await decide(env.writer, WIDGET, widget, function)
    assert decided.result == FoundOption({"a": "2"})
    assert type(decided.result.options) is dict


async def test_function_may_return_a_tuple_that_cannot_be_rebuilt(env):
    widget = await env.widget()
    decided = await decide(env.writer, WIDGET, widget, lambda draft: time.gmtime(draft.generation))
    assert decided.result == time.gmtime(1)


async def test_draft_part_that_escaped_cannot_be_read_later(env):
    widget = await env.widget(spec={"options": {"a": "1"}})
    decided = await decide(env.writer, WIDGET, widget, lambda draft: iter([draft.spec["options"]]))
    with pytest.raises(WriteError, match="plain copy"):
        next(decided.result).get("a")


async def test_newer_given_copy_is_preferred_to_an_older_cached_one(env):
    env.cache.put(WIDGET, await env.widget(spec={"size": 1}))
    newer = await env.merge_patch(env.cache.peek(WIDGET, "w", env.namespace), {"spec": {"size": 2}})
    decided = await decide(env.cached_writer, WIDGET, newer, lambda draft: draft.spec["size"])
    assert decided.result == 2
    env.cache.put(WIDGET, await env.merge_patch(newer, {"spec": {"size": 3}}))
    decided = await decide(env.cached_writer, WIDGET, newer, lambda draft: draft.spec["size"])
    assert decided.result == 3
