"""Tests that defaults.fill sets only missing fields."""

from workbench import WIDGET

from fairlead.writes import defaults


async def test_defaults_fill_only_missing_fields(env):
    widget = await env.widget(spec={"size": 0, "options": {"a": "theirs"}})
    after = await defaults.fill(
        env.writer, WIDGET, widget, {"spec": {"size": 3, "note": "n", "options": {"a": "x", "b": "y"}, "free": {}}}
    )
    assert after.spec == {"size": 0, "note": "n", "options": {"a": "theirs", "b": "y"}, "free": {}}
    env.faulty_transport.forget_requests()
    await defaults.fill(env.writer, WIDGET, after, {"spec": {"size": 3, "note": "other"}})
    assert env.faulty_transport.sent_requests == []


async def test_defaults_keep_an_explicit_null(env):
    """Tests a stored null: a server stores it only if the schema allows it, so it was set on purpose."""
    widget = await env.widget(spec={"free": {"a": None, "b": None, "c": 1}})
    assert widget.spec["free"] == {"a": None, "b": None, "c": 1}
    after = await defaults.fill(env.writer, WIDGET, widget, {"spec": {"free": {"a": 1, "b": {"x": 1}, "d": 2}}})
    assert after.spec["free"] == {"a": None, "b": None, "c": 1, "d": 2}


async def test_defaults_keep_a_value_that_someone_sets_first(env):
    """Tests the guard of a filled absence."""
    widget = await env.widget(spec={"size": 1})
    env.faulty_transport.before_writes = [lambda: env.merge_patch(widget, {"spec": {"note": "theirs"}})]
    after = await defaults.fill(env.writer, WIDGET, widget, {"spec": {"note": "ours"}})
    assert after.spec["note"] == "theirs"


async def test_defaults_ignore_changes_of_other_fields(env):
    widget = await env.widget(spec={"size": 1})
    env.faulty_transport.before_writes = [lambda: env.merge_patch(widget, {"spec": {"size": 2}})]
    await defaults.fill(env.writer, WIDGET, widget, {"spec": {"note": "ours", "size": 9}})
    assert env.faulty_transport.writes == ["PATCH"]
    assert (await env.get_live(widget)).spec == {"size": 2, "note": "ours"}
