"""Tests that watches, reads and writes keep their guarantees with faults, and that the checkers detect violations."""

import os
from collections import Counter
from math import inf

import pytest
from tests.server.consistency.histories import run_history
from tests.server.consistency.linearizability import Operation, explainable
from tests.server.consistency.watch_guarantees import violations

from fairlead.server.storage.store import ObjectTable, Store
from fairlead.server.verbs import lists, update, watch

SEEDS = int(os.environ.get("FAIRLEAD_HISTORIES", "30"))


def violations_of(seeds):
    """Count the violated guarantees in these histories."""
    violation_counts = Counter()
    for seed in seeds:
        histories = run_history(seed)
        for watcher in histories.watchers:
            violation_counts += violations(histories.truth, watcher)
        for operations in histories.operations.values():
            if not explainable(operations):
                violation_counts["linearisable: no order explains what was read and written"] += 1
    return violation_counts


def test_all_guarantees_hold_on_random_histories():
    assert not violations_of(range(SEEDS))


def test_random_histories_contain_conflicts_faults_and_resumed_watches():
    histories = [run_history(seed) for seed in range(5)]
    streams = [stream for history in histories for watcher in history.watchers for stream in watcher.streams]
    answers = Counter(op.answer for history in histories for ops in history.operations.values() for op in ops)
    assert all(answers[kind] > 5 for kind in ("ok", "exists", "conflict", "missing", "unknown"))
    assert sum(stream.start is not None for stream in streams) > 50
    assert sum(kind == "BOOKMARK" for stream in streams for kind, _ in stream.frames) > 50
    for history in histories:
        for watcher in history.watchers:
            versions = [
                int(obj["metadata"]["resourceVersion"]) for stream in watcher.streams for _, obj in stream.frames
            ]
            assert max(versions) >= max(version for version, *_ in history.truth.commits), (
                "a watcher did not receive the last event"
            )


def assert_detected(guarantee):
    """Assert that the patched server violates this guarantee in at least one history."""
    for seed in range(40):
        if any(line.startswith(guarantee) for line in violations_of([seed])):
            return
    pytest.fail(f"a server that is not {guarantee} was not detected")


def test_swapped_events_are_detected(monkeypatch):
    read = ObjectTable.events_from

    def swapped(self, position):
        events = read(self, position)
        return [*events[:-2], *events[:-3:-1]] if events else events

    monkeypatch.setattr(ObjectTable, "events_from", swapped)
    assert_detected("ordered")


def test_events_repeated_after_a_resume_are_detected(monkeypatch):
    position = ObjectTable.position_after
    monkeypatch.setattr(
        ObjectTable, "position_after", lambda self, version: max(self.first, position(self, version) - 1)
    )
    assert_detected("unique")


def test_a_skipped_event_is_detected(monkeypatch):
    frame = watch.Watch._encode_event
    monkeypatch.setattr(watch.Watch, "_encode_event", lambda self, e: b"" if e.version % 7 == 0 else frame(self, e))
    assert_detected("reliable")


def test_an_event_skipped_after_a_resume_is_detected(monkeypatch):
    position = ObjectTable.position_after
    monkeypatch.setattr(ObjectTable, "position_after", lambda self, version: position(self, version + 1))
    assert_detected("resumable")


def test_bookmarks_ahead_of_the_events_are_detected(monkeypatch):
    bookmark = watch.Watch._encode_bookmark

    def ahead(self, version, annotations):
        return bookmark(self, version if annotations else self.server.store.version, annotations)

    monkeypatch.setattr(watch.Watch, "_encode_bookmark", ahead)
    assert_detected("bookmarkable")


def test_stale_consistent_reads_are_detected(monkeypatch):
    at_least = lists.read_version

    def stale(server, request, version, *, reading):
        return at_least(server, request, version or "0", reading=reading)

    monkeypatch.setattr("fairlead.server.verbs.get.read_version", stale)
    assert_detected("linearisable")


def test_an_ignored_resource_version_is_detected(monkeypatch):
    monkeypatch.setattr(update, "_parse_requested_version", lambda obj: 0)
    assert_detected("linearisable")


def test_a_lost_write_is_detected(monkeypatch):
    original_put = Store.put

    def forgetful(self, table, obj, *remainder):
        stored = original_put(self, table, obj, *remainder)
        if stored.version % 11 == 0 and (previous := table.events[-1].previous):
            table.objects[obj["metadata"].get("namespace", "")][obj["metadata"]["name"]] = previous
        return stored

    monkeypatch.setattr(Store, "put", forgetful)
    assert_detected("linearisable")


@pytest.mark.parametrize(
    ("operations", "verdict"),
    [
        ([("create", 0, 1, "ok", "a"), ("get", 2, 3, "ok", "a")], True),
        ([("create", 0, 1, "ok", "a"), ("get", 2, 3, "ok", None)], False),
        ([("create", 0, 2, "ok", "a"), ("get", 1, 3, "ok", None)], True),
        ([("create", 0, inf, "unknown", "a"), ("get", 5, 6, "ok", "a"), ("get", 7, 8, "ok", None)], False),
        ([("create", 0, inf, "unknown", "a"), ("get", 5, 6, "ok", None), ("get", 7, 8, "ok", "a")], True),
        ([("create", 0, 1, "ok", "a"), ("cas", 2, 5, "ok", "b", "a"), ("cas", 3, 4, "ok", "c", "a")], False),
        ([("create", 0, 1, "ok", "a"), ("cas", 2, 5, "ok", "b", "a"), ("cas", 3, 4, "conflict", "c", "a")], True),
        ([("create", 0, 1, "ok", "a"), ("delete", 2, 3, "ok"), ("delete", 4, 5, "ok")], False),
    ],
)
def test_linearizability_checker(operations, verdict):
    assert explainable([Operation(*operation) for operation in operations]) is verdict
