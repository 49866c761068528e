"""Tests that find_differences returns nothing for a correct cache, and reports each difference of a wrong one."""

import asyncio

import pytest

from fairlead.api.builtin import ConfigMap
from fairlead.api.world import World
from fairlead.cache import Cache
from fairlead.cache.entries import CacheEntry
from fairlead.client.client import Client, PatchType
from fairlead.server.app import Server
from fairlead.testing import virtual

SCOPES = {
    "everything": {},
    "selected": {"labels": "colour=red"},
    "one field": {"fields": "metadata.name=m1"},
    "metadata": {"metadata_only": True},
    "transformed": {"transform": lambda obj: {"metadata": obj["metadata"], "data": {"n": "?"}}},
}


@pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)
async def test_find_differences_is_empty_during_concurrent_writes(api, scope):
    client = Client(api.transport(), World())
    cache = Cache(Client(api.transport(), World()), World(), field_managers=["ours"])
    view = cache.watch(ConfigMap, namespaces=[api.namespace], **scope)

    async def write():
        for number in range(40):
            name = f"m{number % 4}"
            labels = {"colour": "red" if number % 3 else "blue"}
            obj = ConfigMap(name, api.namespace, data={"n": str(number)})
            obj["metadata"]["labels"] = labels
            applied = await client.apply(obj, field_manager="ours")
            if number % 7 == 0:
                await client.delete(ConfigMap, name, api.namespace, uid=applied.uid)

    async with cache:
        await cache.wait_for_sync()
        write_task = asyncio.create_task(write())
        comparisons = 0
        while not write_task.done() or comparisons < 3:
            assert await cache.find_differences() == []
            comparisons += 1
        await write_task
        assert view.health()[0].synced


async def test_find_differences_reports_each_kind_of_difference(api):
    client = Client(api.transport(), World())
    for name in ("changed", "missing"):
        applied = await client.create(ConfigMap(name, api.namespace, data={"n": "1"}))
    cache = Cache(client, World())
    cache.watch(ConfigMap, namespaces=[api.namespace])
    async with cache:
        await cache.wait_for_sync()
        ((informer, _),) = cache._watches.values()
        entry = informer.store.get((api.namespace, "changed"))
        informer.store.put((api.namespace, "changed"), CacheEntry(entry.raw.replace(b'"1"', b'"2"'), entry.uid, 1))
        informer.store.put((api.namespace, "ghost"), entry)
        informer.store.remove((api.namespace, "missing"))
        difference_prefix = f"ConfigMap in {api.namespace} at version {informer.resource_version}: {api.namespace}"
        assert await cache.find_differences() == [
            f"{difference_prefix}/changed is cached at version 1 and is at {entry.version}, or has other fields",
            f"{difference_prefix}/ghost is in the cache and not on the server",
            f"{difference_prefix}/missing is on the server and not in the cache",
        ]
        assert int(informer.resource_version) >= int(applied.resource_version)


def test_find_differences_reports_a_compacted_version():
    async def main():
        world = virtual.world()
        server = Server(world)
        client = Client(server.transport(), world)
        cache = Cache(client, world)
        cache.watch(ConfigMap)
        assert await cache.find_differences() == ["ConfigMap: it is not listed yet"]
        async with cache:
            await cache.wait_for_sync()
            applied = await client.create(ConfigMap("a", "default"))
            await client.patch(ConfigMap, "a", "default", {"data": {"n": "1"}}, type=PatchType.MERGE)
            ((informer, _),) = cache._watches.values()
            await informer.wait_until(applied.resource_version)
            while await cache.find_differences():
                pass
            for number in range(3):
                await client.create(ConfigMap(f"b{number}", "default"))
            informer.resource_version = "1"
            server.store.compact()
            (difference,) = await cache.find_differences()
            assert difference.startswith("ConfigMap: the server cannot list version")

    virtual.run(main())
