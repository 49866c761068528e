"""Tests of transforms that drop fields or fail."""

import asyncio

from fairlead.api.builtin import ConfigMap
from fairlead.cache import Cache
from fairlead.client.client import Client
from fairlead.server.app import Server
from fairlead.testing import virtual


def test_an_object_without_metadata_after_a_transform_has_no_owners():
    async def main():
        world = virtual.world()
        client = Client(Server(world).transport(), world)
        await client.create(ConfigMap("a", "default", data={"n": "1"}))
        cache = Cache(client, world)
        view = cache.watch(ConfigMap, transform=lambda obj: {"data": obj["data"]})
        async with cache:
            await cache.wait_for_sync()
            assert view.owned_by("nobody") == []
            await client.create(ConfigMap("b", "default", data={"n": "2"}))
            await asyncio.sleep(1)
            assert view.get("b", "default")["data"] == {"n": "2"}
            assert view.get_snapshot("b", "default").owners() == []
            assert await cache.find_differences() == []

    virtual.run(main())


def test_a_failing_transform_is_logged_with_the_object():
    async def main():
        world = virtual.world()
        client = Client(Server(world).transport(), world)
        await client.create(ConfigMap("a", "default"))
        cache = Cache(client, world)
        view = cache.watch(ConfigMap, transform=lambda obj: {"data": obj["data"]})
        async with cache:
            await asyncio.sleep(5)
            (health,) = view.health()
            assert not health.synced
            assert "the transform of ConfigMap failed on default/a" in health.error
            await client.delete(ConfigMap, "a", "default")
            await asyncio.sleep(60)
            assert view.health()[0].synced

    virtual.run(main())
