"""The view sees at least our own writes, and never more than is true."""

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


class View:
    """An informer, and a stream that is told by hand."""

    def __init__(self, **scope):
        self.informer = Informer(Scope(ConfigMap, **scope))
        self.changes = []
        self.informer.subscribe(lambda change: self.changes.append((change.old, change.new)))

    async def listed(self, version, *objects):
        kept = {}
        for each in objects:
            namespace, name, _, entry = self.informer.codec.encode(json.dumps(each).encode())
            kept.setdefault(namespace, {})[name] = entry
        await self.informer.replace(kept, str(version))

    def streamed(self, kind, each):
        self.informer.apply_event(kind, json.dumps(each).encode())

    def departs(self):
        return self.informer.overlay.begin_write()

    def wrote(self, answer, flight=None):
        self.informer.record_write(flight or self.departs(), answer)

    def deleted(self, uid, answer=None, flight=None, name="a"):
        self.informer.record_delete(flight or self.departs(), ("n", name), uid, answer)

    def version(self, name="a"):
        found = self.informer.get(name, "n")
        listed = [each.version for each in self.informer.list() if each.object().name == name]
        assert listed == ([found.version] if found else [])
        assert [each.version for each in self.informer.list("n") if each.object().name == name] == listed
        return found.version if found else None

    @property
    def settled(self):
        return not self.informer.overlay and not self.informer.overlay._versions


@pytest.fixture
async def view():
    view = View()
    await view.listed(10, obj(version=5))
    view.changes.clear()
    return view


async def test_a_write_is_visible_until_the_watch_has_passed_it(view):
    view.wrote(obj(version=12))
    assert view.version() == 12
    view.streamed("MODIFIED", obj("b", 11, "u2"))
    assert view.version() == 12
    view.streamed("MODIFIED", obj(version=12))
    assert view.version() == 12
    assert view.settled


async def test_a_bookmark_drops_an_older_write(view):
    view.wrote(obj(version=12))
    view.informer.apply_bookmark("12")
    assert view.settled


async def test_a_write_that_the_watch_already_reported_is_not_recorded(view):
    view.streamed("MODIFIED", obj(version=12))
    view.streamed("MODIFIED", obj(version=13))
    view.wrote(obj(version=12))
    assert view.version() == 13
    assert view.settled


async def test_answers_out_of_order_keep_the_newest_version(view):
    view.wrote(obj(version=13))
    view.wrote(obj(version=12))
    assert view.version() == 13
    view.informer.apply_bookmark("13")
    assert view.settled


async def test_handlers_are_called_when_the_watch_reports_an_own_write(view):
    view.wrote(obj(version=12))
    assert view.changes == []
    view.streamed("MODIFIED", obj(version=12))
    ((old, new),) = view.changes
    assert (old.version, new.version) == (5, 12)


async def test_a_created_object_is_visible_in_lists_and_indexes(view):
    view.informer.index("size", lambda each: [str(len(each["data"]))])
    owner = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "owner"}]
    view.wrote(obj("b", 12, "u2", data={"x": "1"}, ownerReferences=owner))
    assert view.version("b") == 12
    assert [each.uid for each in view.informer.owned_by("owner")] == ["u2"]
    assert [each.uid for each in view.informer.indexed("size", "1")] == ["u2"]
    view.streamed("ADDED", obj("b", 12, "u2", data={"x": "1"}, ownerReferences=owner))
    assert [each.uid for each in view.informer.owned_by("owner")] == ["u2"]
    view.wrote(obj("b", 14, "u2"))
    assert [each.uid for each in view.informer.owned_by("owner")] == []
    assert sorted(each.uid for each in view.informer.indexed("size", "0")) == ["u1", "u2"]


async def test_a_delete_hides_the_object_until_its_deletion_event(view):
    view.deleted("u1")
    assert view.version() is None
    view.streamed("MODIFIED", obj(version=12))  # someone's write before our delete
    assert view.version() is None
    view.streamed("DELETED", obj(version=13))
    assert view.version() is None
    assert view.settled


async def test_a_delete_that_waits_for_finalizers_shows_deletion_timestamp(view):
    answer = obj(version=12, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x/y"])
    view.deleted("u1", answer)
    assert view.informer.get("a", "n").object().deleting


async def test_a_delete_that_returns_the_last_state_hides_the_object(view):
    """Services and the like are answered with their last state, without a deletionTimestamp."""
    view.deleted("u1", obj(version=12))
    assert view.version() is None


async def test_removing_the_last_finalizer_hides_the_object(view):
    view.streamed("MODIFIED", obj(version=12, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x/y"]))
    view.wrote(obj(version=12, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert view.version() is None
    view.streamed("DELETED", obj(version=14, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x/y"]))
    assert view.settled


@pytest.mark.parametrize("kept_by", [{"finalizers": ["x/y"]}, {"deletionGracePeriodSeconds": 30}])
async def test_a_terminating_object_stays_visible(view, kept_by):
    view.wrote(obj(version=12, deletionTimestamp="2026-01-01T00:00:00Z", **kept_by))
    assert view.version() == 12


async def test_a_late_answer_does_not_restore_an_object_that_we_deleted(view):
    flight = view.departs()
    view.deleted("u1")
    view.wrote(obj(version=12), flight)
    assert view.version() is None


async def test_a_late_answer_does_not_restore_an_object_deleted_by_others(view):
    flight = view.departs()
    view.streamed("DELETED", obj(version=13))
    view.wrote(obj(version=12), flight)
    assert view.version() is None
    assert view.settled


async def test_a_deletion_event_before_the_answer_leaves_no_tombstone(view):
    flight = view.departs()
    view.streamed("DELETED", obj(version=13))
    view.deleted("u1", None, flight)
    assert view.settled


async def test_deleting_an_unknown_object_leaves_no_tombstone(view):
    view.deleted("u9", name="elsewhere")
    assert view.settled


async def test_a_delete_before_the_first_list_hides_the_listed_object():
    view = View()
    view.deleted("u1")
    view.deleted("u2", name="b")
    await view.listed(10, obj(version=5))
    assert view.version() is None
    view.streamed("DELETED", obj(version=11))
    assert view.settled


async def test_a_relist_without_the_object_before_the_answer_leaves_no_tombstone(view):
    flight = view.departs()
    await view.listed(20)
    view.deleted("u1", None, flight)
    assert view.settled


async def test_a_recreated_object_is_visible_despite_the_old_tombstone(view):
    view.deleted("u1")
    view.wrote(obj(version=14, uid="u2"))
    assert view.version() == 14
    view.streamed("DELETED", obj(version=13))
    assert view.version() == 14
    view.streamed("ADDED", obj(version=14, uid="u2"))
    assert view.version() == 14
    assert view.settled


async def test_a_relist_keeps_newer_own_writes(view):
    view.wrote(obj("b", 22, "u2"))
    view.wrote(obj("c", 18, "u3"))
    await view.listed(20, obj(version=5))
    assert (view.version("b"), view.version("c")) == (22, None)


async def test_a_relist_older_than_our_delete_does_not_restore_the_object(view):
    view.deleted("u1")
    await view.listed(20, obj(version=15))
    assert view.version() is None
    view.streamed("DELETED", obj(version=21))
    assert view.settled


async def test_a_relist_without_the_object_drops_its_tombstone(view):
    view.deleted("u1")
    await view.listed(20)
    assert view.settled


async def test_a_relist_older_than_our_create_and_delete_shows_nothing(view):
    view.wrote(obj("b", 22, "u2"))
    view.deleted("u2", obj("b", 23, "u2"), name="b")
    await view.listed(20, obj(version=5))
    assert view.version("b") is None
    view.streamed("ADDED", obj("b", 22, "u2"))
    assert view.version("b") is None
    view.streamed("DELETED", obj("b", 23, "u2"))
    assert view.settled


async def test_versions_that_go_backwards_drop_all_own_writes(view):
    flight = view.departs()
    view.wrote(obj("b", 22, "u2"))
    view.deleted("u1")
    await view.listed(3, obj(version=2))
    assert (view.version("a"), view.version("b")) == (2, None)
    view.wrote(obj("c", 23, "u3"), flight)
    assert view.version("c") is None, "an answer from before the restore"
    assert view.settled


async def test_versions_that_are_not_integers_disable_the_overlay():
    view = View()
    await view.listed("x10", obj(version="x5"))
    view.wrote(obj(version="x12"))
    view.deleted("u1")
    assert view.version() == 0
    assert view.settled
    with pytest.raises(ValueError, match="not a number"):
        await view.informer.wait_until("x12")


async def test_own_writes_enter_and_leave_a_label_selector():
    view = View(labels="tier=web")
    await view.listed(10, obj(version=5, labels={"tier": "web"}))
    view.wrote(obj("b", 12, "u2", labels={"tier": "web"}))
    view.wrote(obj("c", 13, "u3", labels={"tier": "db"}))
    view.wrote(obj(version=14, labels={"tier": "db"}))
    assert (view.version("a"), view.version("b"), view.version("c")) == (None, 12, None)
    view.streamed("ADDED", obj("b", 12, "u2", labels={"tier": "web"}))
    view.streamed("DELETED", obj(version=14, labels={"tier": "web"}))
    assert (view.version("a"), view.version("b")) == (None, 12)
    assert view.settled


async def test_own_writes_under_a_field_selector_wait_for_the_watch():
    view = View(fields="spec.nodeName=n1")
    await view.listed(10)
    view.wrote(obj("b", 12, "u2"))
    assert view.version("b") is None


async def test_an_event_with_another_uid_is_two_changes(view):
    view.deleted("u1")
    view.streamed("MODIFIED", obj(version=14, uid="u2"))
    assert view.version() == 14
    assert [(old and old.uid, new and new.uid) for old, new in view.changes] == [("u1", None), (None, "u2")]
    assert view.settled


async def test_deleting_the_old_uid_keeps_the_recreated_object(view):
    view.streamed("MODIFIED", obj(version=14, uid="u2"))
    view.changes.clear()
    view.streamed("DELETED", obj(version=15, uid="u1"))
    assert view.version() == 14
    assert view.changes == []


async def test_a_metadata_only_scope_stores_only_metadata_of_own_writes():
    view = View(metadata_only=True)
    await view.listed(10)
    view.wrote(obj("b", 12, "u2", data={"password": "x"}))
    shown = view.informer.get("b", "n").object()
    assert (shown.kind, shown.name, "data" in shown) == ("ConfigMap", "b", False)


async def test_the_version_heap_is_bounded_without_events(view):
    for version in range(20, 5_000):
        view.wrote(obj(version=version))
    assert len(view.informer.overlay._versions) < 100
    assert view.version() == 4_999
    view.informer.apply_bookmark("4998")
    assert view.version() == 4_999
    view.informer.apply_bookmark("4999")
    assert view.settled


async def test_a_failing_index_function_is_logged(view, caplog):
    view.informer.index("length", lambda each: [str(len(each["data"]["x"]))])
    view.streamed("ADDED", obj("b", 12, "u2", data={"x": "abc"}))
    assert [each.uid for each in view.informer.indexed("length", "3")] == ["u2"]
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

    view.wrote(answer)
    assert (view.version() is None) == removed
    writer = Writer(None, None, "ours")
    writer.last_writes_of(ConfigMap, "a", "n")["ours", ""] = LastWrite("u1")
    assert writer.forget_removed(ConfigMap, answer) is answer
    assert (not writer.last_writes) == removed

    other = View()
    await other.listed(10, obj(version=5))
    other.deleted("u1", answer)
    assert (other.version() is None) == removed_by_delete
