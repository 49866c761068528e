"""The cache on the embedded server: random writers, a network that fails, and the server's own word at the end."""

import asyncio
import contextlib
import random

import pytest

from fairlead.api.builtin import ConfigMap, Secret
from fairlead.api.errors import ApiError, Unknown
from fairlead.cache import Cache
from fairlead.client.client import Client, PatchType
from fairlead.client.transport import NotSent
from fairlead.server.app import Server
from fairlead.testing import virtual

NAMES = [f"object-{number}" for number in range(6)]


class Fails:
    """A transport over which requests are refused, streams break, end, fall silent, or are cut inside a frame."""

    def __init__(self, inner, seed):
        self.inner, self.chance, self.calm = inner, random.Random(seed), False

    async def request(self, *args, **kwargs):
        if not self.calm and self.chance.random() < 0.2:
            raise NotSent("refused")
        return await self.inner.request(*args, **kwargs)

    async def stream(self, *args, **kwargs):
        if not self.calm and self.chance.random() < 0.2:
            raise NotSent("refused")
        return Fragile(self, await self.inner.stream(*args, **kwargs))

    async def close(self):
        await self.inner.close()


class Fragile:
    def __init__(self, network, inner):
        self.network, self.inner = network, inner
        self.status, self.headers = inner.status, inner.headers

    async def read(self):
        chunk = await self.inner.read()
        chance = self.network.chance
        if self.network.calm or chance.random() < 0.9:
            return chunk
        match chance.choice(["break", "end", "mid", "hang"]):
            case "break":
                raise ConnectionResetError("cut")
            case "end":
                return b""
            case "hang":
                await asyncio.get_running_loop().create_future()
        cut = chance.randrange(len(chunk)) if chunk else 0
        self.network, half = Cut(), chunk[:cut]
        return half

    async def close(self):
        await self.inner.close()


class Cut:
    calm, chance = False, None

    def __getattr__(self, name):
        raise ConnectionResetError("cut")


async def change(client, chance, own=None):
    """Something that a controller or a user would do. `own` is the cache when it is we who do it."""
    name = chance.choice(NAMES)
    where = (ConfigMap, name, "default")
    with own.writing(ConfigMap, "default") if own else _nobody() as telling:
        match chance.choice(["create", "edit", "edit", "delete", "hold", "release"]):
            case "create":
                telling.wrote(await client.create(ConfigMap(name, "default", data={"n": str(chance.random())})))
            case "edit":
                patch = {"data": {"n": str(chance.random())}}
                telling.wrote(await client.patch(*where, patch, type=PatchType.MERGE))
            case "hold":
                patch = {"metadata": {"finalizers": ["test.example.com/hold"]}}
                telling.wrote(await client.patch(*where, patch, type=PatchType.MERGE))
            case "release":
                patch = {"metadata": {"finalizers": None}}
                telling.wrote(await client.patch(*where, patch, type=PatchType.MERGE))
            case "delete":
                known = await client.get(*where)
                telling.deleted(name, known.uid, await client.delete(*where, uid=known.uid))


class _nobody:  # noqa: N801
    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def wrote(self, answer):
        pass

    def deleted(self, name, uid, answer):
        pass


async def keep_changing(client, chance, count, own=None):
    for _ in range(count):
        await asyncio.sleep(chance.choice([0, 0, 0.001, 0.5, 5]))
        with contextlib.suppress(ApiError, Unknown, OSError):  # there already, not there, or the network failed
            await change(client, chance, own)


def _version(snapshot):
    return None if snapshot is None else (snapshot.uid, snapshot.version)


def without_managed_fields(obj):
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


@pytest.mark.parametrize("seed", range(25))
def test_random_writers_and_a_failing_network_leave_the_cache_as_the_server_is(seed):
    async def main():
        world, chance = virtual.world(seed), random.Random(seed)
        server = Server(world)
        network = Fails(server.transport(), seed)
        ours, others = Client(network, world), Client(server.transport(), world)
        for name in NAMES[:3]:
            await others.create(ConfigMap(name, "default"))
        cache = Cache(ours, world)
        view = cache.watch(ConfigMap, namespaces=["default"])
        told = []
        view.subscribe(lambda change: told.append((change.name, _version(change.old), _version(change.new))))
        async with cache:
            writers = [keep_changing(others, chance, 60), keep_changing(ours, chance, 60, cache)]
            await asyncio.gather(*writers)
            network.calm = True
            await asyncio.sleep(300)
            (health,) = view.health()
            listed = await others.list(
                ConfigMap, "default", resource_version=health.resource_version, resource_version_match="Exact"
            )
            expected = {obj.name: without_managed_fields(obj) for obj in listed.items}
            assert {obj.name: obj for obj in view.list()} == expected
            state = {}
            for name, old, new in told:
                assert state.get(name) == old
                state[name] = new
            assert {name for name, version in state.items() if version} == set(expected)
            assert len(told) > 30
            assert cache.caught_up
            assert health.failures == 0

    virtual.run(main())


def test_our_own_writes_are_seen_before_the_stream_tells_them():
    async def main():
        world = virtual.world()
        server = Server(world)
        client = Client(server.transport(), world)
        cache = Cache(client, world, field_managers=["ours"])
        view = cache.watch(ConfigMap)
        async with cache:
            await cache.synced()
            for number in range(20):
                with cache.writing(ConfigMap, "default") as own:
                    obj = ConfigMap("a", "default", data={"n": str(number)})
                    own.wrote(await client.apply(obj, field_manager="ours"))
                shown = view.get("a", "default")
                assert shown["data"] == {"n": str(number)}
                assert [entry["manager"] for entry in shown["metadata"]["managedFields"]] == ["ours"]
            with cache.writing(ConfigMap, "default") as own:
                own.deleted("a", shown.uid, await client.delete(ConfigMap, "a", "default", uid=shown.uid))
            assert view.get("a", "default") is None
            await asyncio.sleep(1)
            assert view.list("default") == []
            assert cache.caught_up

    virtual.run(main())


def test_a_selection_and_metadata_alone_can_be_watched():
    async def main():
        world = virtual.world()
        server = Server(world)
        client = Client(server.transport(), world)
        cache = Cache(client, world)
        web = cache.watch(ConfigMap, labels="tier in (web)")
        names = cache.watch(Secret, metadata_only=True)
        async with cache:
            await cache.synced()
            await client.create(ConfigMap("a", "default", labels={"tier": "web"}))
            await client.create(ConfigMap("b", "default", labels={"tier": "db"}))
            await client.create(Secret("s", "default", stringData={"password": "x"}))
            await asyncio.sleep(1)
            assert [obj.name for obj in web.list()] == ["a"]
            (secret,) = names.list()
            assert (secret.kind, secret.name, "data" in secret) == ("Secret", "s", False)
            await client.patch(ConfigMap, "a", "default", {"metadata": {"labels": None}}, type=PatchType.MERGE)
            await asyncio.sleep(1)
            assert web.list() == []
            assert not cache.covers(ConfigMap, "default")
            assert not cache.covers(Secret, "default")

    virtual.run(main())
