"""Tests of the store: its version counter, its history, its snapshots, and waiting for a version."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.server.storage.sorted_names import SortedNames
from fairlead.server.storage.store import WAKE_BATCH, Store


def obj(name, namespace="", **fields):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"metadata": metadata, **fields}


def names(entries):
    return [stored.object["metadata"]["name"] for _, stored in entries]


def test_versions_increase_across_kinds():
    store = Store()
    first = store.put(store.table("", "a"), obj("x"))
    second = store.put(store.table("", "b"), obj("x"))
    assert second.version == first.version + 1
    assert second.object["metadata"]["resourceVersion"] == str(second.version)


def test_scan_is_sorted_by_storage_key():
    store = Store()
    table = store.table("", "a")
    for namespace in ("x", "x-b", "w"):
        store.put(table, obj("o", namespace))
    assert [key for key, _ in table.scan(None)] == ["w/o", "x-b/o", "x/o"]


def test_snapshot_ignores_later_changes():
    store = Store()
    table = store.table("", "a")
    store.put(table, obj("a", "n", v=1))
    deleted = store.put(table, obj("b", "n", v=1))
    version = store.version
    store.put(table, obj("a", "n", v=2))
    store.delete(table, deleted)
    store.put(table, obj("c", "n"))
    past = list(table.snapshot("n", version))
    assert names(past) == ["a", "b"]
    assert past[0][1].object["v"] == 1
    assert names(table.scan("n")) == ["a", "c"]


@given(st.lists(st.one_of(st.integers(0, 40), st.just("read")), max_size=60))
def test_sorted_names_equal_a_sorted_set_after_every_step(steps):
    sorted_names, expected = SortedNames(), set()
    for step in steps:
        if step == "read":
            assert sorted_names.names() == sorted(expected)
            continue
        name = f"n{step}"
        (sorted_names.remove if name in expected else sorted_names.add)(name)
        expected ^= {name}
    assert sorted_names.names() == sorted(expected)


SPACES, NAMES = st.sampled_from(["a", "a-b", "b"]), st.sampled_from(["x", "x-y", "y", "z"])


@given(
    writes=st.lists(st.tuples(SPACES, NAMES, st.booleans()), max_size=30),
    at=st.integers(0, 30),
    namespace=st.one_of(st.none(), SPACES),
    start=st.sampled_from(["", "a", "a/", "a/x", "a/x\0", "a/zz", "a-b/x-y", "b/y", "c"]),
)
def test_snapshot_from_a_start_key_is_the_rest_of_the_snapshot(writes, at, namespace, start):
    store, past = Store(), {}
    table = store.table("", "a")
    for index, (space, name, delete) in enumerate(writes):
        if index == at:
            version, past = store.version, dict(table.scan(None))
        live = table.get(space, name)
        if not delete:
            store.put(table, obj(name, space))
        elif live:
            store.delete(table, live)
    if at >= len(writes):
        version, past = store.version, dict(table.scan(None))
    expected = [
        (key, past[key])
        for key in sorted(past)
        if key >= start and (namespace is None or key.startswith(f"{namespace}/"))
    ]
    assert list(table.snapshot(namespace, version, start)) == expected
    assert table.count(namespace, version, start) == len(expected)


def test_page_reads_only_its_own_objects():
    store = Store()
    table = store.table("", "a")
    for i in range(300):
        store.put(table, obj(f"o{i:03}", "n"))
    lookups = []

    class Bucket(dict):
        def get(self, name, default=None):
            lookups.append(name)
            return super().get(name, default)

    table.objects["n"] = Bucket(table.objects["n"])
    page = table.snapshot("n", store.version, "n/o200")
    assert names([next(page), next(page)]) == ["o200", "o201"]
    assert lookups == ["o200", "o201"]


def test_deletion_event_has_the_last_state_and_a_new_version():
    store = Store()
    table = store.table("", "a")
    stored = store.put(table, obj("a", v=1))
    deleted = store.delete(table, stored)
    assert deleted.version == stored.version + 1
    assert table.events[-1].type == "DELETED"
    assert table.events[-1].stored.object["v"] == 1


def test_reader_behind_the_limited_history_gets_none():
    store = Store(history=10)
    table = store.table("", "a")
    start = table.position_after(store.version)
    for i in range(100):
        store.put(table, obj("a", v=i))
    assert len(table.events) <= 20
    assert table.events_from(start) is None
    assert table.compacted_version > store.first_version


async def test_change_of_another_kind_wakes_no_reader():
    store = Store()
    table = store.table("", "a")
    waiting = asyncio.create_task(table.wait_for_event(table.position_after(store.version)))
    await asyncio.sleep(0)
    store.put(store.table("", "b"), obj("x"))
    await asyncio.sleep(0)
    assert not waiting.done()
    store.put(table, obj("x"))
    await asyncio.wait_for(waiting, 60)


async def test_cancelled_reader_is_removed_from_the_waiters():
    store = Store()
    table = store.table("", "a")
    waiting = asyncio.create_task(table.wait_for_event(table.position_after(store.version)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not table._waiters


async def test_readers_wake_in_batches_and_later_ones_read_all_changes():
    store = Store()
    table = store.table("", "a")
    counts = []

    async def read():
        position = table.position_after(store.version)
        await table.wait_for_event(position)
        counts.append(len(table.events_from(position)))

    readers = [asyncio.create_task(read()) for _ in range(3 * WAKE_BATCH)]
    await asyncio.sleep(0)
    store.put(table, obj("x"))
    await asyncio.sleep(0)
    assert counts == [1] * WAKE_BATCH
    store.put(table, obj("y"))
    await asyncio.wait_for(asyncio.gather(*readers), 60)
    assert counts == [1] * WAKE_BATCH + [2] * 2 * WAKE_BATCH


def test_waiters_of_an_ended_loop_do_not_block_later_readers():
    store = Store()
    table = store.table("", "a")

    async def end_with_waiters():
        readers = [
            asyncio.create_task(table.wait_for_event(table.position_after(store.version)))
            for _ in range(2 * WAKE_BATCH)
        ]
        await asyncio.sleep(0)
        store.put(table, obj("x"))
        assert not all(reader.done() for reader in readers)

    async def wait():
        waiting = asyncio.create_task(table.wait_for_event(table.position_after(store.version)))
        await asyncio.sleep(0)
        store.put(table, obj("y"))
        await asyncio.wait_for(waiting, 60)

    asyncio.run(end_with_waiters())
    asyncio.run(wait())
