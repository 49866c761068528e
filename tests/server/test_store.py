"""One version over all kinds, ordered history, snapshots, and nothing that grows with unrelated objects."""

import asyncio

import pytest

from fairlead.server.store import Store


def obj(name, namespace="", **fields):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"metadata": metadata, **fields}


def names(entries):
    return [stored.object["metadata"]["name"] for _, stored in entries]


def test_versions_rise_across_kinds():
    store = Store()
    first = store.put(store.table("", "a"), obj("x"))
    second = store.put(store.table("", "b"), obj("x"))
    assert second.version == first.version + 1
    assert second.object["metadata"]["resourceVersion"] == str(second.version)


def test_lists_are_in_the_order_of_storage_keys():
    store = Store()
    table = store.table("", "a")
    for namespace in ("x", "x-b", "w"):
        store.put(table, obj("o", namespace))
    assert [key for key, _ in table.scan(None)] == ["w/o", "x-b/o", "x/o"]


def test_a_snapshot_is_the_past_whatever_came_after():
    store = Store()
    table = store.table("", "a")
    store.put(table, obj("a", "n", v=1))
    kept = store.put(table, obj("b", "n", v=1))
    version = store.version
    store.put(table, obj("a", "n", v=2))
    store.delete(table, kept)
    store.put(table, obj("c", "n"))
    past = table.snapshot("n", version)
    assert names(past) == ["a", "b"]
    assert past[0][1].object["v"] == 1
    assert names(table.scan("n")) == ["a", "c"]


def test_a_deletion_carries_the_last_state_at_a_new_version():
    store = Store()
    table = store.table("", "a")
    stored = store.put(table, obj("a", v=1))
    gone = store.delete(table, stored)
    assert gone.version == stored.version + 1
    assert table.events[-1].type == "DELETED"
    assert table.events[-1].stored.object["v"] == 1


def test_history_is_bounded_and_a_reader_behind_it_is_told():
    store = Store(history=10)
    table = store.table("", "a")
    start = table.position(store.version)
    for i in range(100):
        store.put(table, obj("a", v=i))
    assert len(table.events) <= 20
    assert table.read(start) is None
    assert table.floor > store.first_version


async def test_readers_of_one_kind_are_not_woken_by_another():
    store = Store()
    table = store.table("", "a")
    waiting = asyncio.create_task(table.changed(table.position(store.version)))
    await asyncio.sleep(0)
    store.put(store.table("", "b"), obj("x"))
    await asyncio.sleep(0)
    assert not waiting.done()
    store.put(table, obj("x"))
    await asyncio.wait_for(waiting, 1)


async def test_a_reader_that_gives_up_leaves_nothing_behind():
    store = Store()
    table = store.table("", "a")
    waiting = asyncio.create_task(table.changed(0 + table.position(store.version)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert table._waiters == []
