"""finalizers: only our own entry changes, and never on an object that is being deleted."""

import pytest
from workbench import MANAGER, WIDGET

from fairlead.api.errors import Forbidden
from fairlead.writes import ObjectDeleting, ObjectReplaced, WriteError, finalizers
from fairlead.writes.writer import LastWrite

OURS, THEIRS = "fairlead.test/ours", "fairlead.test/theirs"


async def held(bench, *entries):
    widget = await bench.widget()
    return await bench.merge(widget, {"metadata": {"finalizers": list(entries)}})


async def test_add_is_one_request_and_none_if_the_finalizer_exists(bench):
    widget = await finalizers.add(bench.writer, WIDGET, await bench.widget(), OURS)
    assert widget.finalizers == [OURS]
    assert bench.wire.writes == ["PATCH"]
    await finalizers.add(bench.writer, WIDGET, widget, OURS)
    assert bench.wire.writes == ["PATCH"]


async def test_add_keeps_a_foreign_entry_added_meanwhile(bench):
    """Guard: the list that was read, here its absence."""
    widget = await bench.widget()
    await bench.merge(widget, {"metadata": {"finalizers": [THEIRS]}})
    assert (await finalizers.add(bench.writer, WIDGET, widget, OURS)).finalizers == [THEIRS, OURS]


async def test_remove_from_a_stale_copy_keeps_a_foreign_entry(bench):
    """Guard: the list that was read."""
    widget = await held(bench, OURS)
    await bench.merge(widget, {"metadata": {"finalizers": [OURS, THEIRS]}})
    await finalizers.remove(bench.writer, WIDGET, widget, OURS)
    assert (await bench.live(widget)).finalizers == [THEIRS]


async def test_removing_the_last_finalizer_deletes_the_object_and_updates_the_cache(bench):
    widget = bench.view.put(WIDGET, await held(bench, OURS))
    await bench.other.delete(WIDGET, widget.name, widget.namespace)
    bench.cached.last_writes_of(WIDGET, widget.name, widget.namespace)[MANAGER, ""] = LastWrite(widget.uid)
    await finalizers.remove(bench.cached, WIDGET, widget, OURS)
    assert not await bench.exists(widget)
    assert bench.view.objects == {}
    assert bench.cached.last_writes == {}


async def test_deleting_object_gets_no_finalizer(bench):
    """Guard: the missing deletionTimestamp. The copy does not show the deletion yet."""
    widget = await held(bench, THEIRS)
    await bench.other.delete(WIDGET, widget.name, widget.namespace)
    with pytest.raises(ObjectDeleting):
        await finalizers.add(bench.writer, WIDGET, widget, OURS)
    assert (await bench.live(widget)).finalizers == [THEIRS]


async def test_recreated_object_keeps_its_finalizer(bench):
    """Guard: uid."""
    widget = await held(bench, OURS)
    await bench.merge(widget, {"metadata": {"finalizers": None}})
    new = await bench.recreate(widget)
    await bench.merge(new, {"metadata": {"finalizers": [OURS]}})
    await finalizers.remove(bench.writer, WIDGET, widget, OURS)
    assert (await bench.live(new)).finalizers == [OURS]
    with pytest.raises(ObjectReplaced):
        await finalizers.add(bench.writer, WIDGET, widget, THEIRS)


async def test_remove_from_a_deleted_object_succeeds(bench):
    widget = await held(bench, OURS)
    await bench.merge(widget, {"metadata": {"finalizers": None}})
    await bench.other.delete(WIDGET, widget.name, widget.namespace)
    await finalizers.remove(bench.writer, WIDGET, widget, OURS)


async def test_remove_removes_every_duplicate(bench):
    """A server stores duplicates of a JSON patch or a create."""
    made = await bench.other.create(
        {**WIDGET("dup", bench.namespace), "metadata": {
            "name": "dup", "namespace": bench.namespace, "finalizers": [OURS, THEIRS, OURS]}}
    )  # fmt: skip
    await finalizers.remove(bench.writer, WIDGET, made, OURS)
    assert (await bench.live(made)).finalizers == [THEIRS]


async def test_release_all_releases_every_object_and_keeps_foreign_entries(bench):
    for n in range(5):
        widget = await bench.widget(f"w{n}")
        await bench.merge(widget, {"metadata": {"finalizers": [OURS, THEIRS] if n else [THEIRS]}})
    assert await finalizers.release_all(bench.writer, WIDGET, OURS, bench.namespace) == 4
    for widget in (await bench.other.list(WIDGET, bench.namespace)).items:
        assert widget.finalizers == [THEIRS]


async def test_release_all_tries_every_object_and_lists_failures(bench, monkeypatch):
    for n in range(3):
        widget = await bench.widget(f"w{n}")
        await bench.merge(widget, {"metadata": {"finalizers": [OURS]}})
    patch = bench.client.patch

    async def reject_one(kind, name, *args, **options):
        if name == "w0":
            raise Forbidden({"message": "not that one", "reason": "Forbidden", "code": 403})
        return await patch(kind, name, *args, **options)

    monkeypatch.setattr(bench.client, "patch", reject_one)
    with pytest.raises(
        WriteError, match=f"removed from 2 objects, but not from 1: Widget {bench.namespace}/w0: not that one$"
    ):
        await finalizers.release_all(bench.writer, WIDGET, OURS, bench.namespace)
    left = [obj.name for obj in (await bench.other.list(WIDGET, bench.namespace)).items if obj.finalizers]
    assert left == ["w0"]
