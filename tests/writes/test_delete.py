"""Tests that delete deletes only the object that was read, and updates the cache."""

import pytest
from workbench import WIDGET

from fairlead.api.builtin import ConfigMap
from fairlead.writes import ObjectChanged, delete


async def test_recreated_object_survives_a_delete_of_the_old_one(env):
    """Tests the uid precondition."""
    old = await env.config_map()
    new = await env.recreate(old)
    await delete(env.writer, ConfigMap, old)
    assert await env.exists(new)


async def test_changed_object_survives_a_delete_with_unchanged(env):
    """Tests the resourceVersion precondition."""
    old = await env.config_map(data={"keep": "no"})
    await env.merge_patch(old, {"data": {"keep": "yes"}})
    with pytest.raises(ObjectChanged, match="decide again"):
        await delete(env.writer, ConfigMap, old, unchanged=True)
    assert await env.exists(old)


async def test_changed_object_is_deleted_without_unchanged(env):
    old = await env.config_map()
    await env.merge_patch(old, {"data": {"x": "y"}})
    await delete(env.writer, ConfigMap, old)
    assert not await env.exists(old)


async def test_delete_of_a_missing_object_succeeds_and_updates_the_cache(env):
    old = env.cache.put(ConfigMap, await env.config_map())
    await env.foreign_client.delete(ConfigMap, old.name, old.namespace)
    await delete(env.cached_writer, ConfigMap, old)
    assert env.cache.objects == {}


async def test_deleted_object_leaves_the_cache_before_the_watch_event(env):
    cached_widget = env.cache.put(WIDGET, await env.widget())
    await delete(env.cached_writer, WIDGET, cached_widget)
    assert env.cache.peek(WIDGET, cached_widget.name, cached_widget.namespace) is None


async def test_lost_answer_of_a_delete_is_looked_up(env):
    old = await env.config_map()
    env.faulty_transport.lost_responses = 1
    await delete(env.writer, ConfigMap, old)
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["DELETE", "GET"]


async def test_lost_answer_of_a_delete_is_not_taken_for_a_change(env):
    """Tests an object that a finalizer keeps: the delete itself changed its resourceVersion."""
    old = await env.merge_patch(await env.config_map(), {"metadata": {"finalizers": ["a.b/c"]}})
    env.faulty_transport.lost_responses = 1
    await delete(env.writer, ConfigMap, old, unchanged=True)
    assert (await env.get_live(old)).deleting
