"""Only our own entry, and never on an object that is being deleted."""

import pytest
from workbench import MANAGER, WIDGET

from fairlead.api.errors import Forbidden
from fairlead.writes import ObjectDeleting, ObjectReplaced, WriteError, finalizers
from fairlead.writes.writer import LastWrite

OURS, THEIRS = "fairlead.test/ours", "fairlead.test/theirs"


async def held(bench, *entries):
    widget = await bench.widget()
    return await bench.merge(widget, {"metadata": {"finalizers": list(entries)}})


async def test_an_add_is_one_request_and_none_when_it_is_on(bench):
    widget = await finalizers.add(bench.writer, WIDGET, await bench.widget(), OURS)
    assert widget.finalizers == [OURS]
    assert bench.wire.writes == ["PATCH"]
    await finalizers.add(bench.writer, WIDGET, widget, OURS)
    assert bench.wire.writes == ["PATCH"]


async def test_an_add_keeps_a_foreign_entry_that_came_meanwhile(bench):
    """Guard: the list as seen (here: its absence)."""
    widget = await bench.widget()
    await bench.merge(widget, {"metadata": {"finalizers": [THEIRS]}})
    assert (await finalizers.add(bench.writer, WIDGET, widget, OURS)).finalizers == [THEIRS, OURS]


async def test_a_removal_from_a_stale_copy_keeps_a_foreign_entry(bench):
    """Guard: the list as seen."""
    widget = await held(bench, OURS)
    await bench.merge(widget, {"metadata": {"finalizers": [OURS, THEIRS]}})
    await finalizers.remove(bench.writer, WIDGET, widget, OURS)
    assert (await bench.live(widget)).finalizers == [THEIRS]


async def test_removing_the_last_lets_a_deleting_object_go_and_tells_the_view(bench):
    widget = bench.view.put(WIDGET, await held(bench, OURS))
    await bench.other.delete(WIDGET, widget.name, widget.namespace)
    bench.cached.last_writes_of(WIDGET, widget.name, widget.namespace)[MANAGER, ""] = LastWrite(widget.uid)
    await finalizers.remove(bench.cached, WIDGET, widget, OURS)
    assert not await bench.exists(widget)
    assert bench.view.objects == {}
    assert bench.cached.last_writes == {}


async def test_a_deleting_object_gets_no_finalizer(bench):
    """Guard: that nobody deletes it. The copy does not know of the deletion yet."""
    widget = await held(bench, THEIRS)
    await bench.other.delete(WIDGET, widget.name, widget.namespace)
    with pytest.raises(ObjectDeleting):
        await finalizers.add(bench.writer, WIDGET, widget, OURS)
    assert (await bench.live(widget)).finalizers == [THEIRS]


async def test_an_object_made_anew_keeps_its_finalizer(bench):
    """Guard: uid."""
    widget = await held(bench, OURS)
    await bench.merge(widget, {"metadata": {"finalizers": None}})
    new = await bench.make_anew(widget)
    await bench.merge(new, {"metadata": {"finalizers": [OURS]}})
    await finalizers.remove(bench.writer, WIDGET, widget, OURS)
    assert (await bench.live(new)).finalizers == [OURS]
    with pytest.raises(ObjectReplaced):
        await finalizers.add(bench.writer, WIDGET, widget, THEIRS)


async def test_a_removal_of_what_is_gone_is_done(bench):
    widget = await held(bench, OURS)
    await bench.merge(widget, {"metadata": {"finalizers": None}})
    await bench.other.delete(WIDGET, widget.name, widget.namespace)
    await finalizers.remove(bench.writer, WIDGET, widget, OURS)


async def test_duplicates_of_ours_go_together(bench):
    """A server stores duplicates that a JSON patch or a create made."""
    made = await bench.other.create(
        {**WIDGET("dup", bench.namespace), "metadata": {
            "name": "dup", "namespace": bench.namespace, "finalizers": [OURS, THEIRS, OURS]}}
    )  # fmt: skip
    await finalizers.remove(bench.writer, WIDGET, made, OURS)
    assert (await bench.live(made)).finalizers == [THEIRS]


async def test_an_uninstall_releases_every_object_and_keeps_foreign_entries(bench):
    for n in range(5):
        widget = await bench.widget(f"w{n}")
        await bench.merge(widget, {"metadata": {"finalizers": [OURS, THEIRS] if n else [THEIRS]}})
    assert await finalizers.release_all(bench.writer, WIDGET, OURS, bench.namespace) == 4
    for widget in (await bench.other.list(WIDGET, bench.namespace)).items:
        assert widget.finalizers == [THEIRS]


async def test_an_uninstall_tries_every_object_and_says_which_was_refused(bench, monkeypatch):
    for n in range(3):
        widget = await bench.widget(f"w{n}")
        await bench.merge(widget, {"metadata": {"finalizers": [OURS]}})
    patch = bench.client.patch

    async def refuse_one(kind, name, *args, **options):
        if name == "w0":
            raise Forbidden({"message": "not that one", "reason": "Forbidden", "code": 403})
        return await patch(kind, name, *args, **options)

    monkeypatch.setattr(bench.client, "patch", refuse_one)
    with pytest.raises(
        WriteError, match=f"removed from 2 objects, but not from 1: Widget {bench.namespace}/w0: not that one$"
    ):
        await finalizers.release_all(bench.writer, WIDGET, OURS, bench.namespace)
    left = [obj.name for obj in (await bench.other.list(WIDGET, bench.namespace)).items if obj.finalizers]
    assert left == ["w0"]
