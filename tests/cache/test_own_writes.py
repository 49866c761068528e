"""Reads from the cache include our own writes before the watch reports them, and never a deleted object."""

import json

import pytest

from fairlead.api.builtin import ConfigMap
from fairlead.api.objects import Object, is_removed
from fairlead.cache.informer import Informer
from fairlead.cache.scope import Scope
from fairlead.writes.writer import LastWrite, Writer


def obj(name="a", version=1, uid="u1", *, labels=None, data=None, **metadata):
    metadata = {"name": name, "namespace": "n", "uid": uid, "resourceVersion": str(version), **metadata}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {}}


class InformerHarness:
    """An informer whose watch events are given by the test."""

    def __init__(self, **scope):
        self.informer = Informer(Scope(ConfigMap, **scope))
        self.changes = []
        self.informer.subscribe(lambda change: self.changes.append((change.old, change.new)))

    async def replace_with(self, version, *objects):
        kept = {}
        for snapshot in objects:
            namespace, name, _, entry = self.informer.codec.encode(json.dumps(snapshot).encode())
            kept.setdefault(namespace, {})[name] = entry
        await self.informer.replace(kept, str(version))

    def send_event(self, kind, snapshot):
        self.informer.apply_event(kind, json.dumps(snapshot).encode())

    def begin_write(self):
        return self.informer.overlay.begin_write()

    def record_write(self, answer, write=None):
        self.informer.record_write(write or self.begin_write(), answer)

    def record_delete(self, uid, answer=None, write=None, name="a"):
        self.informer.record_delete(write or self.begin_write(), ("n", name), uid, answer)

    def version(self, name="a"):
        found = self.informer.get(name, "n")
        replace_with = [snapshot.version for snapshot in self.informer.list() if snapshot.object().name == name]
        assert replace_with == ([found.version] if found else [])
        assert [
            snapshot.version for snapshot in self.informer.list("n") if snapshot.object().name == name
        ] == replace_with
        return found.version if found else None

    @property
    def has_no_own_writes(self):
        return not self.informer.overlay and not self.informer.overlay._versions


@pytest.fixture
async def view():
    view = InformerHarness()
    await view.replace_with(10, obj(version=5))
    view.changes.clear()
    return view


async def test_a_write_is_visible_until_the_watch_has_passed_it(view):
    view.record_write(obj(version=12))
    assert view.version() == 12
    view.send_event("MODIFIED", obj("b", 11, "u2"))
    assert view.version() == 12
    view.send_event("MODIFIED", obj(version=12))
    assert view.version() == 12
    assert view.has_no_own_writes


async def test_a_bookmark_drops_an_older_write(view):
    view.record_write(obj(version=12))
    view.informer.apply_bookmark("12")
    assert view.has_no_own_writes


async def test_a_write_that_the_watch_already_reported_is_not_recorded(view):
    view.send_event("MODIFIED", obj(version=12))
    view.send_event("MODIFIED", obj(version=13))
    view.record_write(obj(version=12))
    assert view.version() == 13
    assert view.has_no_own_writes


async def test_answers_out_of_order_keep_the_newest_version(view):
    view.record_write(obj(version=13))
    view.record_write(obj(version=12))
    assert view.version() == 13
    view.informer.apply_bookmark("13")
    assert view.has_no_own_writes


async def test_handlers_are_called_when_the_watch_reports_an_own_write(view):
    view.record_write(obj(version=12))
    assert view.changes == []
    view.send_event("MODIFIED", obj(version=12))
    ((old, new),) = view.changes
    assert (old.version, new.version) == (5, 12)


async def test_a_created_object_is_visible_in_lists_and_indexes(view):
    view.informer.index("size", lambda snapshot: [str(len(snapshot["data"]))])
    owner = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "owner"}]
    view.record_write(obj("b", 12, "u2", data={"x": "1"}, ownerReferences=owner))
    assert view.version("b") == 12
    assert [snapshot.uid for snapshot in view.informer.owned_by("owner")] == ["u2"]
    assert [snapshot.uid for snapshot in view.informer.indexed("size", "1")] == ["u2"]
    view.send_event("ADDED", obj("b", 12, "u2", data={"x": "1"}, ownerReferences=owner))
    assert [snapshot.uid for snapshot in view.informer.owned_by("owner")] == ["u2"]
    view.record_write(obj("b", 14, "u2"))
    assert [snapshot.uid for snapshot in view.informer.owned_by("owner")] == []
    assert sorted(snapshot.uid for snapshot in view.informer.indexed("size", "0")) == ["u1", "u2"]


async def test_a_delete_hides_the_object_until_its_deletion_event(view):
    view.record_delete("u1")
    assert view.version() is None
    view.send_event("MODIFIED", obj(version=12))  # a write of another client before our delete
    assert view.version() is None
    view.send_event("DELETED", obj(version=13))
    assert view.version() is None
    assert view.has_no_own_writes


async def test_a_delete_that_waits_for_finalizers_shows_deletion_timestamp(view):
    answer = obj(version=12, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x/y"])
    view.record_delete("u1", answer)
    assert view.informer.get("a", "n").object().deleting


async def test_a_delete_that_returns_the_last_state_hides_the_object(view):
    """For Services and others the server returns the last state, without a deletionTimestamp."""
    view.record_delete("u1", obj(version=12))
    assert view.version() is None


async def test_removing_the_last_finalizer_hides_the_object(view):
    view.send_event("MODIFIED", obj(version=12, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x/y"]))
    view.record_write(obj(version=12, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert view.version() is None
    view.send_event("DELETED", obj(version=14, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x/y"]))
    assert view.has_no_own_writes


@pytest.mark.parametrize("kept_by", [{"finalizers": ["x/y"]}, {"deletionGracePeriodSeconds": 30}])
async def test_a_terminating_object_stays_visible(view, kept_by):
    view.record_write(obj(version=12, deletionTimestamp="2026-01-01T00:00:00Z", **kept_by))
    assert view.version() == 12


async def test_a_late_answer_does_not_restore_an_object_that_we_deleted(view):
    write = view.begin_write()
    view.record_delete("u1")
    view.record_write(obj(version=12), write)
    assert view.version() is None


async def test_a_late_answer_does_not_restore_an_object_deleted_by_others(view):
    write = view.begin_write()
    view.send_event("DELETED", obj(version=13))
    view.record_write(obj(version=12), write)
    assert view.version() is None
    assert view.has_no_own_writes


async def test_a_deletion_event_before_the_answer_leaves_no_tombstone(view):
    write = view.begin_write()
    view.send_event("DELETED", obj(version=13))
    view.record_delete("u1", None, write)
    assert view.has_no_own_writes


async def test_deleting_an_unknown_object_leaves_no_tombstone(view):
    view.record_delete("u9", name="elsewhere")
    assert view.has_no_own_writes


async def test_a_delete_before_the_first_list_hides_the_listed_object():
    view = InformerHarness()
    view.record_delete("u1")
    view.record_delete("u2", name="b")
    await view.replace_with(10, obj(version=5))
    assert view.version() is None
    view.send_event("DELETED", obj(version=11))
    assert view.has_no_own_writes


async def test_a_relist_without_the_object_before_the_answer_leaves_no_tombstone(view):
    write = view.begin_write()
    await view.replace_with(20)
    view.record_delete("u1", None, write)
    assert view.has_no_own_writes


async def test_a_recreated_object_is_visible_despite_the_old_tombstone(view):
    view.record_delete("u1")
    view.record_write(obj(version=14, uid="u2"))
    assert view.version() == 14
    view.send_event("DELETED", obj(version=13))
    assert view.version() == 14
    view.send_event("ADDED", obj(version=14, uid="u2"))
    assert view.version() == 14
    assert view.has_no_own_writes


async def test_a_relist_keeps_newer_own_writes(view):
    view.record_write(obj("b", 22, "u2"))
    view.record_write(obj("c", 18, "u3"))
    await view.replace_with(20, obj(version=5))
    assert (view.version("b"), view.version("c")) == (22, None)


async def test_a_relist_older_than_our_delete_does_not_restore_the_object(view):
    view.record_delete("u1")
    await view.replace_with(20, obj(version=15))
    assert view.version() is None
    view.send_event("DELETED", obj(version=21))
    assert view.has_no_own_writes


async def test_a_relist_without_the_object_drops_its_tombstone(view):
    view.record_delete("u1")
    await view.replace_with(20)
    assert view.has_no_own_writes


async def test_a_relist_older_than_our_create_and_delete_shows_nothing(view):
    view.record_write(obj("b", 22, "u2"))
    view.record_delete("u2", obj("b", 23, "u2"), name="b")
    await view.replace_with(20, obj(version=5))
    assert view.version("b") is None
    view.send_event("ADDED", obj("b", 22, "u2"))
    assert view.version("b") is None
    view.send_event("DELETED", obj("b", 23, "u2"))
    assert view.has_no_own_writes


async def test_versions_that_go_backwards_drop_all_own_writes(view):
    write = view.begin_write()
    view.record_write(obj("b", 22, "u2"))
    view.record_delete("u1")
    await view.replace_with(3, obj(version=2))
    assert (view.version("a"), view.version("b")) == (2, None)
    view.record_write(obj("c", 23, "u3"), write)
    assert view.version("c") is None, "an answer from before the restore"
    assert view.has_no_own_writes


async def test_versions_that_are_not_integers_disable_the_overlay():
    view = InformerHarness()
    await view.replace_with("x10", obj(version="x5"))
    view.record_write(obj(version="x12"))
    view.record_delete("u1")
    assert view.version() == 0
    assert view.has_no_own_writes
    with pytest.raises(ValueError, match="not a number"):
        await view.informer.wait_until("x12")


async def test_own_writes_enter_and_leave_a_label_selector():
    view = InformerHarness(labels="tier=web")
    await view.replace_with(10, obj(version=5, labels={"tier": "web"}))
    view.record_write(obj("b", 12, "u2", labels={"tier": "web"}))
    view.record_write(obj("c", 13, "u3", labels={"tier": "db"}))
    view.record_write(obj(version=14, labels={"tier": "db"}))
    assert (view.version("a"), view.version("b"), view.version("c")) == (None, 12, None)
    view.send_event("ADDED", obj("b", 12, "u2", labels={"tier": "web"}))
    view.send_event("DELETED", obj(version=14, labels={"tier": "web"}))
    assert (view.version("a"), view.version("b")) == (None, 12)
    assert view.has_no_own_writes


async def test_own_writes_under_a_field_selector_wait_for_the_watch():
    view = InformerHarness(fields="spec.nodeName=n1")
    await view.replace_with(10)
    view.record_write(obj("b", 12, "u2"))
    assert view.version("b") is None


async def test_an_event_with_another_uid_is_two_changes(view):
    view.record_delete("u1")
    view.send_event("MODIFIED", obj(version=14, uid="u2"))
    assert view.version() == 14
    assert [(old and old.uid, new and new.uid) for old, new in view.changes] == [("u1", None), (None, "u2")]
    assert view.has_no_own_writes


async def test_deleting_the_old_uid_keeps_the_recreated_object(view):
    view.send_event("MODIFIED", obj(version=14, uid="u2"))
    view.changes.clear()
    view.send_event("DELETED", obj(version=15, uid="u1"))
    assert view.version() == 14
    assert view.changes == []


async def test_a_metadata_only_scope_stores_only_metadata_of_own_writes():
    view = InformerHarness(metadata_only=True)
    await view.replace_with(10)
    view.record_write(obj("b", 12, "u2", data={"password": "x"}))
    shown = view.informer.get("b", "n").object()
    assert (shown.kind, shown.name, "data" in shown) == ("ConfigMap", "b", False)


async def test_the_version_heap_is_bounded_without_events(view):
    for version in range(20, 5_000):
        view.record_write(obj(version=version))
    assert len(view.informer.overlay._versions) < 100
    assert view.version() == 4_999
    view.informer.apply_bookmark("4998")
    assert view.version() == 4_999
    view.informer.apply_bookmark("4999")
    assert view.has_no_own_writes


async def test_a_failing_index_function_is_logged(view, caplog):
    view.informer.index("length", lambda snapshot: [str(len(snapshot["data"]["x"]))])
    view.send_event("ADDED", obj("b", 12, "u2", data={"x": "abc"}))
    assert [snapshot.uid for snapshot in view.informer.indexed("length", "3")] == ["u2"]
    assert "failed on n/a" in caplog.text


DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "spec": {"finalizers": ["kubernetes"]}}


@pytest.mark.parametrize(
    ("fields", "metadata", "removed", "removed_by_delete"),
    [
        ({}, {}, False, True),
        ({}, DELETED, True, True),
        ({}, {**DELETED, "deletionGracePeriodSeconds": 0}, True, True),
        ({}, {**DELETED, "deletionGracePeriodSeconds": 30}, False, False),
        ({}, {**DELETED, "finalizers": ["example.com/f"]}, False, False),
        ({}, {"finalizers": ["example.com/f"]}, False, True),
        (NAMESPACE, DELETED, False, False),
        ({**NAMESPACE, "apiVersion": "example.com/v1"}, DELETED, True, True),
    ],
)
async def test_cache_and_writer_agree_whether_a_write_removed_the_object(
    fields, metadata, removed, removed_by_delete, view
):
    """One rule, `is_removed`, decides for the cache, the writer's memory and the answer of a delete."""
    answer = Object({**obj(version=12, **metadata), **fields})
    assert (is_removed(answer), is_removed(answer, by_delete=True)) == (removed, removed_by_delete)

    view.record_write(answer)
    assert (view.version() is None) == removed
    writer = Writer(None, None, "ours")
    writer.last_writes_of(ConfigMap, "a", "n")["ours", ""] = LastWrite("u1")
    assert writer.forget_removed(ConfigMap, answer) is answer
    assert (not writer.last_writes) == removed

    other = InformerHarness()
    await other.replace_with(10, obj(version=5))
    other.record_delete("u1", answer)
    assert (other.version() is None) == removed_by_delete
