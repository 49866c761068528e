"""Tests that the finalizer functions change only our own entry, and never add one to an object being deleted."""

import pytest
from workbench import MANAGER, WIDGET

from fairlead.api.errors import Forbidden
from fairlead.writes import ObjectDeleting, ObjectReplaced, WriteError, finalizers
from fairlead.writes.writer import LastWrite

OURS, FOREIGN = "fairlead.test/ours", "fairlead.test/theirs"


async def create_with_finalizers(env, *entries):
    widget = await env.widget()
    return await env.merge_patch(widget, {"metadata": {"finalizers": list(entries)}})


async def test_add_is_one_request_and_none_if_the_finalizer_exists(env):
    widget = await finalizers.add(env.writer, WIDGET, await env.widget(), OURS)
    assert widget.finalizers == [OURS]
    assert env.faulty_transport.writes == ["PATCH"]
    await finalizers.add(env.writer, WIDGET, widget, OURS)
    assert env.faulty_transport.writes == ["PATCH"]


async def test_add_keeps_a_foreign_entry_added_meanwhile(env):
    """Tests the guard of the finalizers that were read, here of an absent list."""
    widget = await env.widget()
    await env.merge_patch(widget, {"metadata": {"finalizers": [FOREIGN]}})
    assert (await finalizers.add(env.writer, WIDGET, widget, OURS)).finalizers == [FOREIGN, OURS]


async def test_remove_from_a_stale_copy_keeps_a_foreign_entry(env):
    """Tests the guard of the list that was read."""
    widget = await create_with_finalizers(env, OURS)
    await env.merge_patch(widget, {"metadata": {"finalizers": [OURS, FOREIGN]}})
    await finalizers.remove(env.writer, WIDGET, widget, OURS)
    assert (await env.get_live(widget)).finalizers == [FOREIGN]


async def test_removing_the_last_finalizer_deletes_the_object_and_updates_the_cache(env):
    widget = env.cache.put(WIDGET, await create_with_finalizers(env, OURS))
    await env.foreign_client.delete(WIDGET, widget.name, widget.namespace)
    env.cached_writer.last_writes_of(WIDGET, widget.name, widget.namespace)[MANAGER, ""] = LastWrite(widget.uid)
    await finalizers.remove(env.cached_writer, WIDGET, widget, OURS)
    assert not await env.exists(widget)
    assert env.cache.objects == {}
    assert env.cached_writer.last_writes == {}


async def test_deleting_object_gets_no_finalizer(env):
    """Tests the guard of the absent deletionTimestamp: the copy does not show the deletion yet."""
    widget = await create_with_finalizers(env, FOREIGN)
    await env.foreign_client.delete(WIDGET, widget.name, widget.namespace)
    with pytest.raises(ObjectDeleting):
        await finalizers.add(env.writer, WIDGET, widget, OURS)
    assert (await env.get_live(widget)).finalizers == [FOREIGN]


async def test_recreated_object_keeps_its_finalizer(env):
    """Tests the uid guard."""
    widget = await create_with_finalizers(env, OURS)
    await env.merge_patch(widget, {"metadata": {"finalizers": None}})
    new = await env.recreate(widget)
    await env.merge_patch(new, {"metadata": {"finalizers": [OURS]}})
    await finalizers.remove(env.writer, WIDGET, widget, OURS)
    assert (await env.get_live(new)).finalizers == [OURS]
    with pytest.raises(ObjectReplaced):
        await finalizers.add(env.writer, WIDGET, widget, FOREIGN)


async def test_remove_from_a_deleted_object_succeeds(env):
    widget = await create_with_finalizers(env, OURS)
    await env.merge_patch(widget, {"metadata": {"finalizers": None}})
    await env.foreign_client.delete(WIDGET, widget.name, widget.namespace)
    await finalizers.remove(env.writer, WIDGET, widget, OURS)


async def test_remove_removes_every_duplicate(env):
    """Tests duplicate entries, which a server stores after a JSON patch or a create."""
    created = await env.foreign_client.create(
        {**WIDGET("dup", env.namespace), "metadata": {
            "name": "dup", "namespace": env.namespace, "finalizers": [OURS, FOREIGN, OURS]}}
    )  # fmt: skip
    await finalizers.remove(env.writer, WIDGET, created, OURS)
    assert (await env.get_live(created)).finalizers == [FOREIGN]


async def test_release_all_releases_every_object_and_keeps_foreign_entries(env):
    for number in range(5):
        widget = await env.widget(f"w{number}")
        await env.merge_patch(widget, {"metadata": {"finalizers": [OURS, FOREIGN] if number else [FOREIGN]}})
    assert await finalizers.release_all(env.writer, WIDGET, OURS, env.namespace) == 4
    for widget in (await env.foreign_client.list(WIDGET, env.namespace)).items:
        assert widget.finalizers == [FOREIGN]


async def test_release_all_tries_every_object_and_lists_failures(env, monkeypatch):
    for number in range(3):
        widget = await env.widget(f"w{number}")
        await env.merge_patch(widget, {"metadata": {"finalizers": [OURS]}})
    patch = env.client.patch

    async def reject_one(kind, name, *args, **options):
        if name == "w0":
            raise Forbidden({"message": "not that one", "reason": "Forbidden", "code": 403})
        return await patch(kind, name, *args, **options)

    monkeypatch.setattr(env.client, "patch", reject_one)
    with pytest.raises(
        WriteError, match=f"removed from 2 objects, but not from 1: Widget {env.namespace}/w0: not that one$"
    ):
        await finalizers.release_all(env.writer, WIDGET, OURS, env.namespace)
    remaining_names = [
        obj.name for obj in (await env.foreign_client.list(WIDGET, env.namespace)).items if obj.finalizers
    ]
    assert remaining_names == ["w0"]
