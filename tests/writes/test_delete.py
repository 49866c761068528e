"""delete: exactly the object that was read, and the cache knows it."""

import pytest
from workbench import WIDGET

from fairlead.api.builtin import ConfigMap
from fairlead.writes import ObjectChanged, delete


async def test_recreated_object_survives_a_delete_of_the_old_one(bench):
    """Guard: the uid precondition."""
    old = await bench.config_map()
    new = await bench.recreate(old)
    await delete(bench.writer, ConfigMap, old)
    assert await bench.exists(new)


async def test_changed_object_survives_a_delete_with_unchanged(bench):
    """Guard: the resourceVersion precondition."""
    old = await bench.config_map(data={"keep": "no"})
    await bench.merge(old, {"data": {"keep": "yes"}})
    with pytest.raises(ObjectChanged, match="decide again"):
        await delete(bench.writer, ConfigMap, old, unchanged=True)
    assert await bench.exists(old)


async def test_changed_object_is_deleted_without_unchanged(bench):
    old = await bench.config_map()
    await bench.merge(old, {"data": {"x": "y"}})
    await delete(bench.writer, ConfigMap, old)
    assert not await bench.exists(old)


async def test_delete_of_a_missing_object_succeeds_and_updates_the_cache(bench):
    old = bench.view.put(ConfigMap, await bench.config_map())
    await bench.other.delete(ConfigMap, old.name, old.namespace)
    await delete(bench.cached, ConfigMap, old)
    assert bench.view.objects == {}


async def test_deleted_object_leaves_the_cache_before_the_watch_event(bench):
    seen = bench.view.put(WIDGET, await bench.widget())
    await delete(bench.cached, WIDGET, seen)
    assert bench.view.peek(WIDGET, seen.name, seen.namespace) is None


async def test_lost_answer_of_a_delete_is_looked_up(bench):
    old = await bench.config_map()
    bench.wire.lost = 1
    await delete(bench.writer, ConfigMap, old)
    assert [method for method, _, _ in bench.wire.sent] == ["DELETE", "GET"]


async def test_lost_answer_of_a_delete_is_not_taken_for_a_change(bench):
    """A finalizer holds the object, so it still exists, and the delete itself changed its version."""
    old = await bench.merge(await bench.config_map(), {"metadata": {"finalizers": ["a.b/c"]}})
    bench.wire.lost = 1
    await delete(bench.writer, ConfigMap, old, unchanged=True)
    assert (await bench.live(old)).deleting
