"""Delete, prune, create-only and defaults."""

import pytest
from workbench import WIDGET

from fairlead.api.builtin import ConfigMap
from fairlead.api.errors import UnknownOutcome
from fairlead.writes import ObjectChanged, ObjectDeleted, Writer, apply, create_only, defaults, delete, prune


@pytest.fixture
async def owner(bench):
    return await bench.widget("owner", spec={"size": 1})


# Delete


async def test_an_object_made_anew_survives_a_delete_of_the_old_one(bench):
    """Guard: the uid precondition."""
    old = await bench.config_map()
    new = await bench.make_anew(old)
    await delete(bench.writer, ConfigMap, old)
    assert await bench.exists(new)


async def test_a_changed_object_survives_a_delete_that_depended_on_content(bench):
    """Guard: the resourceVersion precondition."""
    old = await bench.config_map(data={"keep": "no"})
    await bench.merge(old, {"data": {"keep": "yes"}})
    with pytest.raises(ObjectChanged, match="decide again"):
        await delete(bench.writer, ConfigMap, old, unchanged=True)
    assert await bench.exists(old)


async def test_a_changed_object_goes_where_content_does_not_matter(bench):
    old = await bench.config_map()
    await bench.merge(old, {"data": {"x": "y"}})
    await delete(bench.writer, ConfigMap, old)
    assert not await bench.exists(old)


async def test_a_delete_of_what_is_gone_is_done_and_the_view_is_told(bench):
    old = bench.view.put(ConfigMap, await bench.config_map())
    await bench.other.delete(ConfigMap, old.name, old.namespace)
    await delete(bench.cached, ConfigMap, old)
    assert bench.view.objects == {}


async def test_what_was_deleted_is_gone_from_the_view_before_a_watch_tells(bench):
    seen = bench.view.put(WIDGET, await bench.widget())
    await delete(bench.cached, WIDGET, seen)
    assert bench.view.peek(WIDGET, seen.name, seen.namespace) is None


async def test_a_shared_object_that_goes_again_at_once_is_told_as_what_it_is(bench):
    """Someone had made it: it is gone. Our own answer was lost: nobody knows."""
    payload = ConfigMap("shared", bench.namespace, data={"x": "ours"})

    async def take_away():
        await bench.other.delete(ConfigMap, "shared", bench.namespace)

    await bench.other.create(payload)
    bench.wire.then = [take_away]
    with pytest.raises(ObjectDeleted):
        await create_only(bench.writer, payload)
    bench.wire.then, bench.wire.lost = [take_away], 1
    with pytest.raises(UnknownOutcome):
        await create_only(bench.writer, payload)


async def test_a_lost_answer_of_a_delete_is_looked_up(bench):
    old = await bench.config_map()
    bench.wire.lost = 1
    await delete(bench.writer, ConfigMap, old)
    assert [method for method, _, _ in bench.wire.sent] == ["DELETE", "GET"]


async def test_a_lost_answer_is_not_taken_for_a_change(bench):
    """Held by a finalizer, the object is there after the delete and its version has moved: by that very delete."""
    old = await bench.merge(await bench.config_map(), {"metadata": {"finalizers": ["a.b/c"]}})
    bench.wire.lost = 1
    await delete(bench.writer, ConfigMap, old, unchanged=True)
    assert (await bench.live(old)).deleting


# Prune


async def children(bench, owner, *names):
    return [await apply(bench.writer, ConfigMap(name, data={"x": "y"}), owner=owner) for name in names]


async def test_only_what_is_not_wanted_goes(bench, owner):
    a, b = await children(bench, owner, "a", "b")
    pruned = await prune(bench.writer, owner, ConfigMap, [a, b], [(bench.namespace, "a")])
    assert pruned == [b]
    assert await bench.exists(a)
    assert not await bench.exists(b)


async def test_a_child_of_another_owner_stays(bench, owner):
    """Guard: the owner's uid."""
    other = await bench.widget("other")
    theirs = await children(bench, other, "a")
    assert await prune(bench.writer, owner, ConfigMap, theirs, []) == []
    assert await bench.exists(theirs[0])


async def test_an_object_that_we_did_not_apply_stays_though_it_names_our_owner(bench, owner):
    """Guard: our Apply entry."""
    by_another = await apply(Writer(bench.other, bench.world, "theirs"), ConfigMap("a"), owner=owner)
    plain = ConfigMap("b", bench.namespace)
    plain["metadata"]["ownerReferences"] = by_another.metadata["ownerReferences"]
    by_hand = await bench.other.create(plain, field_manager=bench.writer.manager)
    assert await prune(bench.writer, owner, ConfigMap, [by_another, by_hand], []) == []
    assert await bench.exists(by_another)
    assert await bench.exists(by_hand)


async def test_a_child_that_changed_is_left_for_the_next_pass(bench, owner):
    """Guard: the resourceVersion. Someone may just have taken it over."""
    [child] = await children(bench, owner, "a")
    await bench.merge(child, {"metadata": {"ownerReferences": None}})
    assert await prune(bench.writer, owner, ConfigMap, [child], []) == []
    assert await bench.exists(child)


async def test_a_child_made_anew_stays(bench, owner):
    """Guard: the uid."""
    [child] = await children(bench, owner, "a")
    new = await bench.make_anew(child)
    await prune(bench.writer, owner, ConfigMap, [child], [])
    assert await bench.exists(new)


# Create-only


async def test_what_is_there_is_left_as_it_is(bench):
    theirs = await bench.config_map("shared", data={"x": "theirs"})
    found = await create_only(bench.writer, ConfigMap("shared", bench.namespace, data={"x": "ours"}))
    assert found == theirs
    assert await bench.live(theirs) == theirs


async def test_what_is_not_there_is_made_in_one_request(bench):
    made = await create_only(bench.writer, ConfigMap("shared", bench.namespace, data={"x": "ours"}))
    assert made["data"] == {"x": "ours"}
    assert bench.wire.writes == ["POST"]


async def test_a_lost_answer_of_a_create_is_looked_up(bench):
    bench.wire.lost = 1
    made = await create_only(bench.writer, ConfigMap("shared", bench.namespace, data={"x": "ours"}))
    assert made["data"] == {"x": "ours"}
    assert [method for method, _, _ in bench.wire.sent] == ["POST", "GET"]


# Defaults


async def test_only_what_is_missing_is_filled(bench):
    widget = await bench.widget(spec={"size": 0, "options": {"a": "theirs"}})
    after = await defaults.fill(
        bench.writer, WIDGET, widget, {"spec": {"size": 3, "note": "n", "options": {"a": "x", "b": "y"}, "free": {}}}
    )
    assert after.spec == {"size": 0, "note": "n", "options": {"a": "theirs", "b": "y"}, "free": {}}
    bench.wire.forget()
    await defaults.fill(bench.writer, WIDGET, after, {"spec": {"size": 3, "note": "other"}})
    assert bench.wire.sent == []


async def test_an_explicit_null_stays(bench):
    """A server keeps null only where a kind allows it, so somebody means it."""
    widget = await bench.widget(spec={"free": {"a": None, "b": None, "c": 1}})
    assert widget.spec["free"] == {"a": None, "b": None, "c": 1}
    after = await defaults.fill(bench.writer, WIDGET, widget, {"spec": {"free": {"a": 1, "b": {"x": 1}, "d": 2}}})
    assert after.spec["free"] == {"a": None, "b": None, "c": 1, "d": 2}


async def test_a_value_that_someone_sets_first_stays(bench):
    """Guard: the absence that is filled."""
    widget = await bench.widget(spec={"size": 1})
    bench.wire.first = [lambda: bench.merge(widget, {"spec": {"note": "theirs"}})]
    after = await defaults.fill(bench.writer, WIDGET, widget, {"spec": {"note": "ours"}})
    assert after.spec["note"] == "theirs"


async def test_a_change_of_what_is_not_filled_does_not_disturb(bench):
    widget = await bench.widget(spec={"size": 1})
    bench.wire.first = [lambda: bench.merge(widget, {"spec": {"size": 2}})]
    await defaults.fill(bench.writer, WIDGET, widget, {"spec": {"note": "ours", "size": 9}})
    assert bench.wire.writes == ["PATCH"]
    assert (await bench.live(widget)).spec == {"size": 2, "note": "ours"}
