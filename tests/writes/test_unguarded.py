"""What a decision does not guard, as docs/explanation/decide.md says: each counterexample, and what to do instead."""

from workbench import WIDGET

from fairlead.api.objects import Object
from fairlead.client.client import PatchType
from fairlead.writes import decide


async def test_a_value_read_elsewhere_is_not_guarded_and_one_read_of_the_draft_is(bench):
    widget = await bench.widget(spec={"size": 1})
    await bench.merge(widget, {"spec": {"size": 5}})

    def elsewhere(draft):
        draft.status["phase"] = f"size {widget.spec['size']}"

    assert (await decide(bench.writer, WIDGET, widget, elsewhere)).object.status["phase"] == "size 1"

    def of_the_draft(draft):
        draft.status["phase"] = f"size {draft.spec['size']}"

    assert (await decide(bench.writer, WIDGET, widget, of_the_draft)).object.status["phase"] == "size 5"


async def test_another_object_is_not_guarded(bench):
    widget, other = await bench.widget(), await bench.widget("other", spec={"size": 1})

    def copy(draft):
        draft.status["phase"] = f"the other's size is {other.spec['size']}"

    bench.wire.first = [lambda: bench.merge(other, {"spec": {"size": 5}})]
    decided = await decide(bench.writer, WIDGET, widget, copy)
    assert decided.object.status["phase"] == "the other's size is 1"
    assert (await bench.live(other)).spec["size"] == 5


async def test_a_decision_to_change_nothing_is_as_old_as_its_copy(bench):
    widget = await bench.widget(spec={"size": 1})
    await bench.merge(widget, {"spec": {"size": 5}})
    assert (await decide(bench.writer, WIDGET, widget, lambda draft: draft.spec["size"])).result == 1
    assert bench.wire.sent == []


async def test_there_and_back_is_not_noticed_unless_the_generation_is_read(bench):
    widget = await bench.widget(spec={"size": 1})

    async def there_and_back():
        for size in (5, 1):
            await bench.merge(widget, {"spec": {"size": size}})

    def decision(draft, generation=False):
        draft.status["phase"] = f"{draft.spec['size']} {draft.generation if generation else ''}"

    bench.wire.first = [there_and_back]
    await decide(bench.writer, WIDGET, widget, decision)
    assert bench.wire.writes == ["PATCH"], "it landed at once"

    bench.wire.forget()
    bench.wire.first = [there_and_back]
    stale = await bench.live(widget)
    after = await decide(bench.writer, WIDGET, stale, lambda draft: decision(draft, True))
    assert bench.wire.writes == ["PATCH", "PATCH"], "it was made to look again"
    assert after.object.status["phase"] == f"1 {stale.generation + 2}"


async def test_an_absence_that_became_a_null_is_not_noticed_unless_the_map_is_read(bench):
    widget = await bench.widget(spec={"free": {"b": 1}})
    null = [{"op": "add", "path": "/spec/free/a", "value": None}]
    live = await bench.other.patch(WIDGET, "w", bench.namespace, null, type=PatchType.JSON)
    assert live.spec["free"] == {"a": None, "b": 1}

    def by_key(draft):
        draft.status["phase"] = "there" if "a" in draft.spec["free"] else "not there"

    def by_map(draft):
        draft.status["phase"] = "there" if "a" in list(draft.spec["free"]) else "not there"

    assert (await decide(bench.writer, WIDGET, widget, by_key)).object.status["phase"] == "not there"
    assert (await decide(bench.writer, WIDGET, widget, by_map)).object.status["phase"] == "there"


async def test_effects_inside_the_function_happen_once_a_run_and_are_not_noticed(bench, tmp_path):
    """Each run is made twice, and a lost one is made again: an effect belongs after the decision."""
    widget, file = await bench.widget(spec={"size": 1}), tmp_path / "effects"

    def decision(draft):
        with file.open("a") as effects:
            effects.write("x")
        draft.status["phase"] = str(draft.spec["size"])

    bench.wire.first = [lambda: bench.merge(widget, {"spec": {"size": 5}})]
    await decide(bench.writer, WIDGET, widget, decision)
    assert file.read_text() == "xxxx"


async def test_a_resource_version_is_refused_by_what_a_decision_does_not_notice(bench):
    """The comparison: the same label between the look and the write."""
    widget = await bench.widget(spec={"size": 1})
    await bench.merge(widget, {"metadata": {"labels": {"theirs": "x"}}})
    version = {"metadata": {"resourceVersion": widget.resource_version}, "status": {"phase": "x"}}
    path = f"{WIDGET.path(bench.namespace, 'w')}/status"
    assert (await bench.raw("PATCH", path, version, "merge-patch"))[0] == 409
    decided = await decide(bench.writer, WIDGET, widget, lambda draft: draft.status.update(phase="x"))
    assert decided.object.status["phase"] == "x"
    assert bench.wire.writes == ["PATCH"]
    # a function that reads everything has the resourceVersion back
    stale = Object(decided.object)
    await bench.merge(widget, {"metadata": {"labels": {"theirs": "y"}}})
    bench.wire.forget()
    await decide(bench.writer, WIDGET, stale, lambda draft: draft.status.update(phase=str(len(draft.plain()))))
    assert bench.wire.writes == ["PATCH", "PATCH"]
