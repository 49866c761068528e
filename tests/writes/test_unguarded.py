"""Tests of the limits of decide in docs/explanation/decide.md: a counterexample for each limit, and the alternative."""

from workbench import WIDGET

from fairlead.api.objects import Object
from fairlead.client.client import PatchType
from fairlead.writes import decide


async def test_only_values_read_from_the_draft_are_guarded(env):
    widget = await env.widget(spec={"size": 1})
    await env.merge_patch(widget, {"spec": {"size": 5}})

    def from_capture(draft):
        draft.status["phase"] = f"size {widget.spec['size']}"

    assert (await decide(env.writer, WIDGET, widget, from_capture)).object.status["phase"] == "size 1"

    def of_the_draft(draft):
        draft.status["phase"] = f"size {draft.spec['size']}"

    assert (await decide(env.writer, WIDGET, widget, of_the_draft)).object.status["phase"] == "size 5"


async def test_other_objects_are_not_guarded(env):
    widget, other = await env.widget(), await env.widget("other", spec={"size": 1})

    def copy(draft):
        draft.status["phase"] = f"the other's size is {other.spec['size']}"

    env.faulty_transport.before_writes = [lambda: env.merge_patch(other, {"spec": {"size": 5}})]
    decided = await decide(env.writer, WIDGET, widget, copy)
    assert decided.object.status["phase"] == "the other's size is 1"
    assert (await env.get_live(other)).spec["size"] == 5


async def test_decision_without_changes_is_as_old_as_its_copy(env):
    widget = await env.widget(spec={"size": 1})
    await env.merge_patch(widget, {"spec": {"size": 5}})
    assert (await decide(env.writer, WIDGET, widget, lambda draft: draft.spec["size"])).result == 1
    assert env.faulty_transport.sent_requests == []


async def test_change_and_revert_is_unnoticed_unless_generation_is_read(env):
    widget = await env.widget(spec={"size": 1})

    async def there_and_back():
        for size in (5, 1):
            await env.merge_patch(widget, {"spec": {"size": size}})

    def decision(draft, generation=False):
        draft.status["phase"] = f"{draft.spec['size']} {draft.generation if generation else ''}"

    env.faulty_transport.before_writes = [there_and_back]
    await decide(env.writer, WIDGET, widget, decision)
    assert env.faulty_transport.writes == ["PATCH"], "the first write succeeded"

    env.faulty_transport.forget_requests()
    env.faulty_transport.before_writes = [there_and_back]
    stale_widget = await env.get_live(widget)
    after = await decide(env.writer, WIDGET, stale_widget, lambda draft: decision(draft, True))
    assert env.faulty_transport.writes == ["PATCH", "PATCH"], "the first write was rejected"
    assert after.object.status["phase"] == f"1 {stale_widget.generation + 2}"


async def test_absence_that_became_null_is_unnoticed_unless_the_map_is_read(env):
    widget = await env.widget(spec={"free": {"b": 1}})
    null = [{"op": "add", "path": "/spec/free/a", "value": None}]
    live = await env.foreign_client.patch(WIDGET, "w", env.namespace, null, type=PatchType.JSON)
    assert live.spec["free"] == {"a": None, "b": 1}

    def by_key(draft):
        draft.status["phase"] = "present" if "a" in draft.spec["free"] else "absent"

    def by_map(draft):
        draft.status["phase"] = "present" if "a" in list(draft.spec["free"]) else "absent"

    assert (await decide(env.writer, WIDGET, widget, by_key)).object.status["phase"] == "absent"
    assert (await decide(env.writer, WIDGET, widget, by_map)).object.status["phase"] == "present"


async def test_side_effects_happen_in_every_run_and_are_not_detected(env, tmp_path):
    """Tests side effects: the function runs twice per attempt, so they belong after the decision."""
    widget, file = await env.widget(spec={"size": 1}), tmp_path / "effects"

    def decision(draft):
        with file.open("a") as effects:
            effects.write("x")
        draft.status["phase"] = str(draft.spec["size"])

    env.faulty_transport.before_writes = [lambda: env.merge_patch(widget, {"spec": {"size": 5}})]
    await decide(env.writer, WIDGET, widget, decision)
    assert file.read_text() == "xxxx"


async def test_resource_version_lock_rejects_what_a_decision_tolerates(env):
    """Tests a PUT with a resourceVersion for comparison: a label between read and write rejects it."""
    widget = await env.widget(spec={"size": 1})
    await env.merge_patch(widget, {"metadata": {"labels": {"theirs": "x"}}})
    version = {"metadata": {"resourceVersion": widget.resource_version}, "status": {"phase": "x"}}
    path = f"{WIDGET.path(env.namespace, 'w')}/status"
    assert (await env.send_raw("PATCH", path, version, "merge-patch"))[0] == 409
    decided = await decide(env.writer, WIDGET, widget, lambda draft: draft.status.update(phase="x"))
    assert decided.object.status["phase"] == "x"
    assert env.faulty_transport.writes == ["PATCH"]
    # A function that reads everything is as strict as the resourceVersion.
    stale_widget = Object(decided.object)
    await env.merge_patch(widget, {"metadata": {"labels": {"theirs": "y"}}})
    env.faulty_transport.forget_requests()
    await decide(env.writer, WIDGET, stale_widget, lambda draft: draft.status.update(phase=str(len(draft.plain()))))
    assert env.faulty_transport.writes == ["PATCH", "PATCH"]
