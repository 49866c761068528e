"""One version over all kinds, ordered history, snapshots, and nothing that grows with unrelated objects."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.server.storage.ordering import Order
from fairlead.server.storage.store import AT_ONCE, Store


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
    past = list(table.snapshot("n", version))
    assert names(past) == ["a", "b"]
    assert past[0][1].object["v"] == 1
    assert names(table.scan("n")) == ["a", "c"]


@given(st.lists(st.one_of(st.integers(0, 40), st.just("read")), max_size=60))
def test_an_order_is_a_sorted_set_whenever_it_is_read(steps):
    order, wanted = Order(), set()
    for step in steps:
        if step == "read":
            assert order.names() == sorted(wanted)
            continue
        name = f"n{step}"
        (order.remove if name in wanted else order.add)(name)
        wanted ^= {name}
    assert order.names() == sorted(wanted)


SPACES, NAMES = st.sampled_from(["a", "a-b", "b"]), st.sampled_from(["x", "x-y", "y", "z"])


@given(
    writes=st.lists(st.tuples(SPACES, NAMES, st.booleans()), max_size=30),
    at=st.integers(0, 30),
    namespace=st.one_of(st.none(), SPACES),
    start=st.sampled_from(["", "a", "a/", "a/x", "a/x\0", "a/zz", "a-b/x-y", "b/y", "c"]),
)
def test_a_snapshot_from_anywhere_is_the_rest_of_the_whole(writes, at, namespace, start):
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
    wanted = [
        (key, past[key])
        for key in sorted(past)
        if key >= start and (namespace is None or key.startswith(f"{namespace}/"))
    ]
    assert list(table.snapshot(namespace, version, start)) == wanted
    assert table.count(namespace, version, start) == len(wanted)


def test_a_page_costs_what_is_read_of_it():
    store = Store()
    table = store.table("", "a")
    for i in range(300):
        store.put(table, obj(f"o{i:03}", "n"))
    looks = []

    class Bucket(dict):
        def get(self, name, default=None):
            looks.append(name)
            return super().get(name, default)

    table.objects["n"] = Bucket(table.objects["n"])
    page = table.snapshot("n", store.version, "n/o200")
    assert names([next(page), next(page)]) == ["o200", "o201"]
    assert looks == ["o200", "o201"]


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
    await asyncio.wait_for(waiting, 60)


async def test_a_reader_that_gives_up_leaves_nothing_behind():
    store = Store()
    table = store.table("", "a")
    waiting = asyncio.create_task(table.changed(0 + table.position(store.version)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not table._waiters


async def test_many_readers_are_told_a_few_at_a_time_and_of_all_that_came_meanwhile():
    store = Store()
    table = store.table("", "a")
    told = []

    async def read():
        position = table.position(store.version)
        await table.changed(position)
        told.append(len(table.read(position)))

    readers = [asyncio.create_task(read()) for _ in range(3 * AT_ONCE)]
    await asyncio.sleep(0)
    store.put(table, obj("x"))
    await asyncio.sleep(0)
    assert told == [1] * AT_ONCE
    store.put(table, obj("y"))
    await asyncio.wait_for(asyncio.gather(*readers), 60)
    assert told == [1] * AT_ONCE + [2] * 2 * AT_ONCE


def test_readers_of_a_loop_that_ended_keep_no_later_one_from_being_told():
    store = Store()
    table = store.table("", "a")

    async def leave():
        readers = [asyncio.create_task(table.changed(table.position(store.version))) for _ in range(2 * AT_ONCE)]
        await asyncio.sleep(0)
        store.put(table, obj("x"))
        assert not all(reader.done() for reader in readers)

    async def stay():
        waiting = asyncio.create_task(table.changed(table.position(store.version)))
        await asyncio.sleep(0)
        store.put(table, obj("y"))
        await asyncio.wait_for(waiting, 60)

    asyncio.run(leave())
    asyncio.run(stay())
