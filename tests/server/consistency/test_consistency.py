"""What was promised of watches, reads and writes holds on random histories under faults, and its judges can judge."""

import os
from collections import Counter
from math import inf

import pytest
from tests.server.consistency.linearisability import Operation, explainable
from tests.server.consistency.play import play
from tests.server.consistency.watching import violations

from fairlead.server.storage.store import ObjectTable, Store
from fairlead.server.verbs import lists, watch
from fairlead.server.write import pipeline

SEEDS = int(os.environ.get("FAIRLEAD_HISTORIES", "30"))


def broken(seeds):
    """The promises that these histories saw broken, and how often."""
    found = Counter()
    for seed in seeds:
        played = play(seed)
        for watcher in played.watchers:
            found += violations(played.truth, watcher)
        for operations in played.operations.values():
            if not explainable(operations):
                found["linearisable: no order explains what was read and written"] += 1
    return found


def test_every_promise_is_kept():
    assert not broken(range(SEEDS))


def test_histories_are_worth_judging():
    played = [play(seed) for seed in range(5)]
    streams = [stream for one in played for watcher in one.watchers for stream in watcher.streams]
    answers = Counter(op.answer for one in played for ops in one.operations.values() for op in ops)
    assert all(answers[kind] > 5 for kind in ("ok", "exists", "conflict", "missing", "unknown"))
    assert sum(stream.start is not None for stream in streams) > 50
    assert sum(kind == "BOOKMARK" for stream in streams for kind, _ in stream.frames) > 50
    for one in played:
        for watcher in one.watchers:
            told = [int(obj["metadata"]["resourceVersion"]) for stream in watcher.streams for _, obj in stream.frames]
            assert max(told) >= max(version for version, *_ in one.truth.commits), "all was told in the end"


def breaks(promise):
    """The server as it is now breaks this promise in some history."""
    for seed in range(40):
        if any(line.startswith(promise) for line in broken([seed])):
            return
    pytest.fail(f"a server that is not {promise} was not found out")


def test_a_server_that_swaps_changes_is_found_out(monkeypatch):
    read = ObjectTable.events_from

    def swapped(self, position):
        events = read(self, position)
        return [*events[:-2], *events[:-3:-1]] if events else events

    monkeypatch.setattr(ObjectTable, "events_from", swapped)
    breaks("ordered")


def test_a_server_that_repeats_on_resuming_is_found_out(monkeypatch):
    position = ObjectTable.position_after
    monkeypatch.setattr(
        ObjectTable, "position_after", lambda self, version: max(self.first, position(self, version) - 1)
    )
    breaks("unique")


def test_a_server_that_skips_a_change_is_found_out(monkeypatch):
    frame = watch.Watch._encode_event
    monkeypatch.setattr(watch.Watch, "_encode_event", lambda self, e: b"" if e.version % 7 == 0 else frame(self, e))
    breaks("reliable")


def test_a_server_that_skips_on_resuming_is_found_out(monkeypatch):
    position = ObjectTable.position_after
    monkeypatch.setattr(ObjectTable, "position_after", lambda self, version: position(self, version + 1))
    breaks("resumable")


def test_a_server_whose_bookmarks_run_ahead_is_found_out(monkeypatch):
    bookmark = watch.Watch._bookmark

    def ahead(self, version, annotations):
        return bookmark(self, version if annotations else self.server.store.version, annotations)

    monkeypatch.setattr(watch.Watch, "_bookmark", ahead)
    breaks("bookmarkable")


def test_a_server_whose_plain_reads_are_stale_is_found_out(monkeypatch):
    at_least = lists.read_version

    def stale(server, request, text, *, reading):
        return at_least(server, request, text or "0", reading=reading)

    monkeypatch.setattr("fairlead.server.verbs.get.read_version", stale)
    breaks("linearisable")


def test_a_server_that_ignores_the_version_written_upon_is_found_out(monkeypatch):
    monkeypatch.setattr(pipeline, "_requested_version", lambda obj: 0)
    breaks("linearisable")


def test_a_server_that_forgets_a_write_is_found_out(monkeypatch):
    put = Store.put

    def forgetful(self, table, obj, *rest):
        stored = put(self, table, obj, *rest)
        if stored.version % 11 == 0 and (previous := table.events[-1].previous):
            table.objects[obj["metadata"].get("namespace", "")][obj["metadata"]["name"]] = previous
        return stored

    monkeypatch.setattr(Store, "put", forgetful)
    breaks("linearisable")


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
def test_the_judge_of_registers(operations, verdict):
    assert explainable([Operation(*given) for given in operations]) is verdict
