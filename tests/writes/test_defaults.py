"""defaults.fill: only missing fields are set."""

from workbench import WIDGET

from fairlead.writes import defaults


async def test_defaults_fill_only_missing_fields(bench):
    widget = await bench.widget(spec={"size": 0, "options": {"a": "theirs"}})
    after = await defaults.fill(
        bench.writer, WIDGET, widget, {"spec": {"size": 3, "note": "n", "options": {"a": "x", "b": "y"}, "free": {}}}
    )
    assert after.spec == {"size": 0, "note": "n", "options": {"a": "theirs", "b": "y"}, "free": {}}
    bench.wire.forget()
    await defaults.fill(bench.writer, WIDGET, after, {"spec": {"size": 3, "note": "other"}})
    assert bench.wire.sent == []


async def test_defaults_keep_an_explicit_null(bench):
    """A server stores null only if the schema allows it, so someone set it on purpose."""
    widget = await bench.widget(spec={"free": {"a": None, "b": None, "c": 1}})
    assert widget.spec["free"] == {"a": None, "b": None, "c": 1}
    after = await defaults.fill(bench.writer, WIDGET, widget, {"spec": {"free": {"a": 1, "b": {"x": 1}, "d": 2}}})
    assert after.spec["free"] == {"a": None, "b": None, "c": 1, "d": 2}


async def test_defaults_keep_a_value_that_someone_sets_first(bench):
    """Guard: the absence that is filled."""
    widget = await bench.widget(spec={"size": 1})
    bench.wire.first = [lambda: bench.merge(widget, {"spec": {"note": "theirs"}})]
    after = await defaults.fill(bench.writer, WIDGET, widget, {"spec": {"note": "ours"}})
    assert after.spec["note"] == "theirs"


async def test_defaults_ignore_changes_of_other_fields(bench):
    widget = await bench.widget(spec={"size": 1})
    bench.wire.first = [lambda: bench.merge(widget, {"spec": {"size": 2}})]
    await defaults.fill(bench.writer, WIDGET, widget, {"spec": {"note": "ours", "size": 9}})
    assert bench.wire.writes == ["PATCH"]
    assert (await bench.live(widget)).spec == {"size": 2, "note": "ours"}
