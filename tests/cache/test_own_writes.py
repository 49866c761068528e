"""Tests that the cache shows own writes before the watch reports them, and never shows a deleted object."""

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
    """An informer that gets its watch events from the test."""

    def __init__(self, **scope):
        self.informer = Informer(Scope(ConfigMap, **scope))
        self.changes = []
        self.informer.subscribe(lambda change: self.changes.append((change.old, change.new)))

    async def replace_with(self, version, *objects):
        entries = {}
        for snapshot in objects:
            namespace, name, _, entry = self.informer.codec.encode(json.dumps(snapshot).encode())
            entries.setdefault(namespace, {})[name] = entry
        await self.informer.replace(entries, str(version))

    def send_event(self, kind, snapshot):
        self.informer.apply_event(kind, json.dumps(snapshot).encode())

    def begin_write(self):
        return self.informer.overlay.begin_write()

    def record_write(self, response, write=None):
        self.informer.record_write(write or self.begin_write(), response)

    def record_delete(self, uid, response=None, write=None, name="a"):
        self.informer.record_delete(write or self.begin_write(), ("n", name), uid, response)

    def version(self, name="a"):
        snapshot = self.informer.get(name, "n")
        replace_with = [snapshot.version for snapshot in self.informer.list() if snapshot.object().name == name]
        assert replace_with == ([snapshot.version] if snapshot else [])
        assert [
            snapshot.version for snapshot in self.informer.list("n") if snapshot.object().name == name
        ] == replace_with
        return snapshot.version if snapshot else None

    @property
    def has_no_own_writes(self):
        return not self.informer.overlay and not self.informer.overlay._versions


@pytest.fixture
async def harness():
    harness = InformerHarness()
    await harness.replace_with(10, obj(version=5))
    harness.changes.clear()
    return harness


async def test_a_write_is_visible_until_the_watch_has_passed_it(harness):
    harness.record_write(obj(version=12))
    assert harness.version() == 12
    harness.send_event("MODIFIED", obj("b", 11, "u2"))
    assert harness.version() == 12
    harness.send_event("MODIFIED", obj(version=12))
    assert harness.version() == 12
    assert harness.has_no_own_writes


async def test_a_bookmark_drops_an_older_write(harness):
    harness.record_write(obj(version=12))
    harness.informer.apply_bookmark("12")
    assert harness.has_no_own_writes


async def test_a_write_that_the_watch_already_reported_is_not_recorded(harness):
    harness.send_event("MODIFIED", obj(version=12))
    harness.send_event("MODIFIED", obj(version=13))
    harness.record_write(obj(version=12))
    assert harness.version() == 13
    assert harness.has_no_own_writes


async def test_answers_out_of_order_keep_the_newest_version(harness):
    harness.record_write(obj(version=13))
    harness.record_write(obj(version=12))
    assert harness.version() == 13
    harness.informer.apply_bookmark("13")
    assert harness.has_no_own_writes


async def test_handlers_are_called_when_the_watch_reports_an_own_write(harness):
    harness.record_write(obj(version=12))
    assert harness.changes == []
    harness.send_event("MODIFIED", obj(version=12))
    ((old, new),) = harness.changes
    assert (old.version, new.version) == (5, 12)


async def test_a_created_object_is_visible_in_lists_and_indexes(harness):
    harness.informer.index("size", lambda snapshot: [str(len(snapshot["data"]))])
    owner = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "owner"}]
    harness.record_write(obj("b", 12, "u2", data={"x": "1"}, ownerReferences=owner))
    assert harness.version("b") == 12
    assert [snapshot.uid for snapshot in harness.informer.owned_by("owner")] == ["u2"]
    assert [snapshot.uid for snapshot in harness.informer.indexed("size", "1")] == ["u2"]
    harness.send_event("ADDED", obj("b", 12, "u2", data={"x": "1"}, ownerReferences=owner))
    assert [snapshot.uid for snapshot in harness.informer.owned_by("owner")] == ["u2"]
    harness.record_write(obj("b", 14, "u2"))
    assert [snapshot.uid for snapshot in harness.informer.owned_by("owner")] == []
    assert sorted(snapshot.uid for snapshot in harness.informer.indexed("size", "0")) == ["u1", "u2"]


async def test_a_delete_hides_the_object_until_its_deletion_event(harness):
    harness.record_delete("u1")
    assert harness.version() is None
    harness.send_event("MODIFIED", obj(version=12))  # a write of another client before our delete
    assert harness.version() is None
    harness.send_event("DELETED", obj(version=13))
    assert harness.version() is None
    assert harness.has_no_own_writes


async def test_a_delete_that_waits_for_finalizers_shows_deletion_timestamp(harness):
    response = obj(version=12, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x/y"])
    harness.record_delete("u1", response)
    assert harness.informer.get("a", "n").object().deleting


async def test_a_delete_that_returns_the_last_state_hides_the_object(harness):
    """Tests a kind such as Service: the server returns the last state without a deletionTimestamp."""
    harness.record_delete("u1", obj(version=12))
    assert harness.version() is None


async def test_removing_the_last_finalizer_hides_the_object(harness):
    harness.send_event("MODIFIED", obj(version=12, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x/y"]))
    harness.record_write(obj(version=12, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert harness.version() is None
    harness.send_event("DELETED", obj(version=14, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x/y"]))
    assert harness.has_no_own_writes


@pytest.mark.parametrize("kept_by", [{"finalizers": ["x/y"]}, {"deletionGracePeriodSeconds": 30}])
async def test_a_terminating_object_stays_visible(harness, kept_by):
    harness.record_write(obj(version=12, deletionTimestamp="2026-01-01T00:00:00Z", **kept_by))
    assert harness.version() == 12


async def test_a_late_answer_does_not_restore_an_object_that_we_deleted(harness):
    write = harness.begin_write()
    harness.record_delete("u1")
    harness.record_write(obj(version=12), write)
    assert harness.version() is None


async def test_a_late_answer_does_not_restore_an_object_deleted_by_others(harness):
    write = harness.begin_write()
    harness.send_event("DELETED", obj(version=13))
    harness.record_write(obj(version=12), write)
    assert harness.version() is None
    assert harness.has_no_own_writes


async def test_a_deletion_event_before_the_answer_leaves_no_tombstone(harness):
    write = harness.begin_write()
    harness.send_event("DELETED", obj(version=13))
    harness.record_delete("u1", None, write)
    assert harness.has_no_own_writes


async def test_deleting_an_unknown_object_leaves_no_tombstone(harness):
    harness.record_delete("u9", name="elsewhere")
    assert harness.has_no_own_writes


async def test_a_delete_before_the_first_list_hides_the_listed_object():
    harness = InformerHarness()
    harness.record_delete("u1")
    harness.record_delete("u2", name="b")
    await harness.replace_with(10, obj(version=5))
    assert harness.version() is None
    harness.send_event("DELETED", obj(version=11))
    assert harness.has_no_own_writes


async def test_a_relist_without_the_object_before_the_answer_leaves_no_tombstone(harness):
    write = harness.begin_write()
    await harness.replace_with(20)
    harness.record_delete("u1", None, write)
    assert harness.has_no_own_writes


async def test_a_recreated_object_is_visible_despite_the_old_tombstone(harness):
    harness.record_delete("u1")
    harness.record_write(obj(version=14, uid="u2"))
    assert harness.version() == 14
    harness.send_event("DELETED", obj(version=13))
    assert harness.version() == 14
    harness.send_event("ADDED", obj(version=14, uid="u2"))
    assert harness.version() == 14
    assert harness.has_no_own_writes


async def test_a_relist_keeps_newer_own_writes(harness):
    harness.record_write(obj("b", 22, "u2"))
    harness.record_write(obj("c", 18, "u3"))
    await harness.replace_with(20, obj(version=5))
    assert (harness.version("b"), harness.version("c")) == (22, None)


async def test_a_relist_older_than_our_delete_does_not_restore_the_object(harness):
    harness.record_delete("u1")
    await harness.replace_with(20, obj(version=15))
    assert harness.version() is None
    harness.send_event("DELETED", obj(version=21))
    assert harness.has_no_own_writes


async def test_a_relist_without_the_object_drops_its_tombstone(harness):
    harness.record_delete("u1")
    await harness.replace_with(20)
    assert harness.has_no_own_writes


async def test_a_relist_older_than_our_create_and_delete_shows_nothing(harness):
    harness.record_write(obj("b", 22, "u2"))
    harness.record_delete("u2", obj("b", 23, "u2"), name="b")
    await harness.replace_with(20, obj(version=5))
    assert harness.version("b") is None
    harness.send_event("ADDED", obj("b", 22, "u2"))
    assert harness.version("b") is None
    harness.send_event("DELETED", obj("b", 23, "u2"))
    assert harness.has_no_own_writes


async def test_versions_that_go_backwards_drop_all_own_writes(harness):
    write = harness.begin_write()
    harness.record_write(obj("b", 22, "u2"))
    harness.record_delete("u1")
    await harness.replace_with(3, obj(version=2))
    assert (harness.version("a"), harness.version("b")) == (2, None)
    harness.record_write(obj("c", 23, "u3"), write)
    assert harness.version("c") is None, "an answer from before the restore"
    assert harness.has_no_own_writes


async def test_versions_that_are_not_integers_disable_the_overlay():
    harness = InformerHarness()
    await harness.replace_with("x10", obj(version="x5"))
    harness.record_write(obj(version="x12"))
    harness.record_delete("u1")
    assert harness.version() == 0
    assert harness.has_no_own_writes
    with pytest.raises(ValueError, match="not a number"):
        await harness.informer.wait_until("x12")


async def test_own_writes_enter_and_leave_a_label_selector():
    harness = InformerHarness(labels="tier=web")
    await harness.replace_with(10, obj(version=5, labels={"tier": "web"}))
    harness.record_write(obj("b", 12, "u2", labels={"tier": "web"}))
    harness.record_write(obj("c", 13, "u3", labels={"tier": "db"}))
    harness.record_write(obj(version=14, labels={"tier": "db"}))
    assert (harness.version("a"), harness.version("b"), harness.version("c")) == (None, 12, None)
    harness.send_event("ADDED", obj("b", 12, "u2", labels={"tier": "web"}))
    harness.send_event("DELETED", obj(version=14, labels={"tier": "web"}))
    assert (harness.version("a"), harness.version("b")) == (None, 12)
    assert harness.has_no_own_writes


async def test_own_writes_under_a_field_selector_wait_for_the_watch():
    harness = InformerHarness(fields="spec.nodeName=n1")
    await harness.replace_with(10)
    harness.record_write(obj("b", 12, "u2"))
    assert harness.version("b") is None


async def test_an_event_with_another_uid_is_two_changes(harness):
    harness.record_delete("u1")
    harness.send_event("MODIFIED", obj(version=14, uid="u2"))
    assert harness.version() == 14
    assert [(old and old.uid, new and new.uid) for old, new in harness.changes] == [("u1", None), (None, "u2")]
    assert harness.has_no_own_writes


async def test_deleting_the_old_uid_keeps_the_recreated_object(harness):
    harness.send_event("MODIFIED", obj(version=14, uid="u2"))
    harness.changes.clear()
    harness.send_event("DELETED", obj(version=15, uid="u1"))
    assert harness.version() == 14
    assert harness.changes == []


async def test_a_metadata_only_scope_stores_only_metadata_of_own_writes():
    harness = InformerHarness(metadata_only=True)
    await harness.replace_with(10)
    harness.record_write(obj("b", 12, "u2", data={"password": "x"}))
    obj_read = harness.informer.get("b", "n").object()
    assert (obj_read.kind, obj_read.name, "data" in obj_read) == ("ConfigMap", "b", False)


async def test_the_version_heap_is_bounded_without_events(harness):
    for version in range(20, 5_000):
        harness.record_write(obj(version=version))
    assert len(harness.informer.overlay._versions) < 100
    assert harness.version() == 4_999
    harness.informer.apply_bookmark("4998")
    assert harness.version() == 4_999
    harness.informer.apply_bookmark("4999")
    assert harness.has_no_own_writes


async def test_a_failing_index_function_is_logged(harness, caplog):
    harness.informer.index("length", lambda snapshot: [str(len(snapshot["data"]["x"]))])
    harness.send_event("ADDED", obj("b", 12, "u2", data={"x": "abc"}))
    assert [snapshot.uid for snapshot in harness.informer.indexed("length", "3")] == ["u2"]
    assert "failed on n/a" in caplog.text


DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "spec": {"finalizers": ["kubernetes"]}}


@pytest.mark.parametrize(
    ("fields", "metadata", "is_removed_by_write", "is_removed_by_delete"),
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
    fields, metadata, is_removed_by_write, is_removed_by_delete, harness
):
    """Tests that the cache and the writer use the same rule, `is_removed`, for every response."""
    response = Object({**obj(version=12, **metadata), **fields})
    assert (is_removed(response), is_removed(response, is_deletion=True)) == (is_removed_by_write, is_removed_by_delete)

    harness.record_write(response)
    assert (harness.version() is None) == is_removed_by_write
    writer = Writer(None, None, "ours")
    writer.last_writes_of(ConfigMap, "a", "n")["ours", ""] = LastWrite("u1")
    assert writer.forget_removed(ConfigMap, response) is response
    assert (not writer.last_writes) == is_removed_by_write

    other_harness = InformerHarness()
    await other_harness.replace_with(10, obj(version=5))
    other_harness.record_delete("u1", response)
    assert (other_harness.version() is None) == is_removed_by_delete
