"""Tests of the cache on servers with random writers and a failing network, compared with a list at the end."""

import asyncio
import contextlib
import random

import pytest

from fairlead.api import kinds
from fairlead.api.builtin import ConfigMap, Pod, Secret, Service
from fairlead.api.errors import ApiError, UnknownOutcome
from fairlead.api.world import World
from fairlead.cache import Cache
from fairlead.client.client import Client, PatchType
from fairlead.client.transport import NotSent
from fairlead.server.app import Server
from fairlead.testing import virtual

NAMES = [f"object-{number}" for number in range(6)]


class Fails:
    """A transport that rejects requests, and breaks, ends, silences or cuts watches."""

    def __init__(self, inner, seed, ways=("break", "end", "mid", "hang")):
        self.inner, self.rng, self.ways, self.calm = inner, random.Random(seed), ways, False

    async def request(self, request):
        if not self.calm and self.rng.random() < 0.2:
            raise NotSent("refused")
        return await self.inner.request(request)

    async def stream(self, request):
        if not self.calm and self.rng.random() < 0.2:
            raise NotSent("refused")
        self.streams = [Fragile(self, await self.inner.stream(request))]
        return self.streams[0]

    def break_streams(self):
        for stream in self.streams:
            stream.broken.set()

    async def close(self):
        await self.inner.close()


class Fragile:
    def __init__(self, network, inner):
        self.network, self.inner = network, inner
        self.status, self.headers = inner.status, inner.headers
        self.broken = asyncio.Event()

    async def read(self):
        reading, broken = (asyncio.ensure_future(each) for each in (self.inner.read(), self.broken.wait()))
        try:
            await asyncio.wait([reading, broken], return_when=asyncio.FIRST_COMPLETED)
            if broken.done():
                raise ConnectionResetError("cut")
            chunk = reading.result()
        finally:
            for each in (reading, broken):
                each.cancel()
            await asyncio.gather(reading, broken, return_exceptions=True)
        rng = self.network.rng
        if self.network.calm or rng.random() < 0.9:
            return chunk
        match rng.choice(self.network.ways):
            case "break":
                raise ConnectionResetError("cut")
            case "end":
                return b""
            case "hang":
                await asyncio.get_running_loop().create_future()
        cut = rng.randrange(len(chunk)) if chunk else 0
        self.network, half = Cut(), chunk[:cut]
        return half

    async def close(self):
        await self.inner.close()


class Cut:
    calm, rng = False, None

    def __getattr__(self, name):
        raise ConnectionResetError("cut")


async def change(client, rng, namespace, own=None):
    """Do a random write. `own` is the cache if it is an own write."""
    name = rng.choice(NAMES)
    where = (ConfigMap, name, namespace)
    with own.writing(ConfigMap, namespace) if own else _NoRecorder() as own_write:
        match rng.choice(["create", "edit", "edit", "delete", "hold", "release"]):
            case "create":
                own_write.record(await client.create(ConfigMap(name, namespace, data={"n": str(rng.random())})))
            case "edit":
                patch = {"data": {"n": str(rng.random())}}
                own_write.record(await client.patch(*where, patch, type=PatchType.MERGE))
            case "hold":
                patch = {"metadata": {"finalizers": ["test.example.com/hold"]}}
                own_write.record(await client.patch(*where, patch, type=PatchType.MERGE))
            case "release":
                patch = {"metadata": {"finalizers": None}}
                own_write.record(await client.patch(*where, patch, type=PatchType.MERGE))
            case "delete":
                known = await client.get(*where)
                own_write.record_delete(name, known.uid, await client.delete(*where, uid=known.uid))


class _NoRecorder:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def record(self, answer):
        pass

    def record_delete(self, name, uid, answer):
        pass


async def keep_changing(client, rng, count, namespace, own=None, *, pauses=(0, 0, 0.001, 0.5, 5)):
    for _ in range(count):
        await asyncio.sleep(rng.choice(pauses))
        with contextlib.suppress(ApiError, UnknownOutcome, OSError):  # it exists, does not exist, or the network failed
            await change(client, rng, namespace, own)


def _version(snapshot):
    return None if snapshot is None else (snapshot.uid, snapshot.version)


@pytest.mark.parametrize("seed", range(25))
def test_the_cache_converges_with_random_writers_and_a_failing_network(seed):
    async def main():
        world, rng = virtual.world(seed), random.Random(seed)
        server = Server(world)
        network = Fails(server.transport(), seed)
        ours, others = Client(network, world), Client(server.transport(), world)
        for name in NAMES[:3]:
            await others.create(ConfigMap(name, "default"))
        cache = Cache(ours, world)
        view = cache.watch(ConfigMap, namespaces=["default"])
        changes = []
        view.subscribe(lambda change: changes.append((change.name, _version(change.old), _version(change.new))))
        async with cache:
            writers = [keep_changing(others, rng, 60, "default"), keep_changing(ours, rng, 60, "default", cache)]
            await asyncio.gather(*writers)
            network.calm = True
            await asyncio.sleep(300)
            (health,) = view.health()
            assert await cache.find_differences() == []
            state = {}
            for name, old, new in changes:
                assert state.get(name) == old
                state[name] = new
            assert {name for name, version in state.items() if version} == {obj.name for obj in view.list()}
            assert len(changes) > 30
            assert cache.is_caught_up
            assert health.failures == 0

    virtual.run(main())


def test_a_server_that_lost_its_state_is_listed_again():
    """Versions start again, uids differ, and all cached objects are wrong."""

    async def main():
        world = virtual.world()
        network = Fails(Server(world).transport(), 0)
        network.calm = True
        client = Client(network, world)
        cache = Cache(client, world)
        view = cache.watch(ConfigMap)
        changes = []
        view.subscribe(lambda change: changes.append((change.name, change.new is None)))
        async with cache:
            await cache.wait_for_sync()
            for number in range(30):
                with cache.writing(ConfigMap, "default") as own:
                    own.record(await client.create(ConfigMap(f"a{number}", "default")))
            await asyncio.sleep(1)
            changes.clear()
            network.inner = Server(world).transport()
            await client.create(ConfigMap("a1", "default", data={"another": "one"}))
            network.break_streams()
            await asyncio.sleep(60)
            assert [(obj.name, obj["data"]) for obj in view.list("default")] == [("a1", {"another": "one"})]
            assert sorted(changes) == sorted([(f"a{number}", True) for number in range(30)] + [("a1", False)])

    virtual.run(main())


async def caught_up(cache, view, client, namespace):
    """Wait until the watch has reported everything up to now, marked by a write."""
    marker = await client.create(ConfigMap("marker", namespace))
    async with asyncio.timeout(30):
        await view.wait_until(marker.resource_version)


async def test_the_cache_converges_with_random_writers_on_each_server(api):
    world, rng = World(), random.Random(1)
    network = Fails(api.transport(), 1, ["break", "end", "mid"])
    ours, others = Client(network, world), Client(api.transport(), world)
    cache = Cache(ours, world)
    view = cache.watch(ConfigMap, namespaces=[api.namespace])
    async with cache:
        writers = [
            keep_changing(others, rng, 100, api.namespace, pauses=[0, 0.001, 0.03]),
            keep_changing(ours, rng, 100, api.namespace, cache, pauses=[0, 0.001, 0.03]),
        ]
        await asyncio.gather(*writers)
        network.calm = True
        await caught_up(cache, view, others, api.namespace)
        assert await cache.find_differences() == []
        assert cache.is_caught_up


async def test_own_writes_are_visible_before_the_watch_reports_them(api):
    client = Client(api.transport(), World())
    cache = Cache(client, World(), field_managers=["ours"])
    view = cache.watch(ConfigMap)
    async with cache:
        await cache.wait_for_sync()
        for number in range(20):
            with cache.writing(ConfigMap, api.namespace) as own:
                obj = ConfigMap("a", api.namespace, data={"n": str(number)})
                own.record(await client.apply(obj, field_manager="ours"))
            shown = view.get("a", api.namespace)
            assert shown["data"] == {"n": str(number)}
            assert [entry["manager"] for entry in shown["metadata"]["managedFields"]] == ["ours"]
        with cache.writing(ConfigMap, api.namespace) as own:
            own.record_delete("a", shown.uid, await client.delete(ConfigMap, "a", api.namespace, uid=shown.uid))
        assert view.get("a", api.namespace) is None
        await caught_up(cache, view, client, api.namespace)
        assert [obj.name for obj in view.list(api.namespace) if obj.name == "a"] == []
        assert cache.is_caught_up


POD = Pod("a", spec={"containers": [{"name": "c", "image": "i"}]})
SERVICE = Service("a", spec={"ports": [{"port": 80}]})


@pytest.mark.parametrize("made", [ConfigMap("a"), Secret("a"), SERVICE, POD], ids=lambda made: made["kind"])
async def test_an_own_delete_hides_the_object_for_every_answer(api, made):
    """The answer is a Status, the object with or without a deletionTimestamp, or has a grace period of 0."""
    client = Client(api.transport(), World())
    kind = await client.resolve(kinds.kind(made["apiVersion"], made["kind"]))
    cache = Cache(client, World())
    view = cache.watch(kind, namespaces=[api.namespace])
    gone = asyncio.Event()
    view.subscribe(lambda change: gone.set() if change.new is None else None)
    async with cache:
        await cache.wait_for_sync()
        obj = await client.create({**made, "metadata": {**made["metadata"], "namespace": api.namespace}})
        await view.wait_until(obj.resource_version)
        with cache.writing(kind, api.namespace) as own:
            own.record_delete("a", obj.uid, await client.delete(kind, "a", api.namespace, uid=obj.uid))
        assert view.get("a", api.namespace) is None
        async with asyncio.timeout(10):
            await gone.wait()
        assert view.list() == []
        assert cache.is_caught_up


async def test_removing_the_last_finalizer_hides_the_object_immediately(api):
    client = Client(api.transport(), World())
    cache = Cache(client, World())
    view = cache.watch(ConfigMap, namespaces=[api.namespace])
    where = (ConfigMap, "a", api.namespace)
    gone = asyncio.Event()
    view.subscribe(lambda change: gone.set() if change.new is None else None)
    held = ConfigMap("a", api.namespace)
    held["metadata"]["finalizers"] = ["test.example.com/hold"]
    async with cache:
        await cache.wait_for_sync()
        obj = await client.create(held)
        with cache.writing(ConfigMap, api.namespace) as own:
            own.record_delete("a", obj.uid, await client.delete(*where))
        assert view.get("a", api.namespace).deleting
        with cache.writing(ConfigMap, api.namespace) as own:
            own.record(await client.patch(*where, {"metadata": {"finalizers": None}}, type=PatchType.MERGE))
        assert view.get("a", api.namespace) is None
        async with asyncio.timeout(10):
            await gone.wait()
        assert cache.is_caught_up


@pytest.mark.only("embedded", reason="a fresh etcd has forgotten nothing")
async def test_a_compacted_version_lists_again_and_reports_missed_deletions(api):
    client = Client(api.transport(), World())
    cache = Cache(client, World())
    view = cache.watch(ConfigMap, namespaces=[api.namespace])
    (informer,), (reflector,) = view._informers, view._reflectors
    changes, gone = [], asyncio.Event()

    def handler(change):
        changes.append((change.name, change.new is None))
        if change.new is None:
            gone.set()

    view.subscribe(handler)
    for name in ("a", "b"):
        await client.create(ConfigMap(name, api.namespace))
    async with cache:
        await cache.wait_for_sync()
    await client.delete(ConfigMap, "a", api.namespace)
    changes.clear()
    informer.position, informer.resource_version = 1, "1"
    reflector._state = reflector._state.on_version_checked()
    async with cache:
        async with asyncio.timeout(10):
            await gone.wait()
    assert changes == [("a", True)]


async def test_selectors_and_metadata_only_can_be_watched(api):
    client = Client(api.transport(), World())
    cache = Cache(client, World())
    web = cache.watch(ConfigMap, namespaces=[api.namespace], labels="tier in (web)")
    names = cache.watch(Secret, namespaces=[api.namespace], metadata_only=True)
    async with cache:
        await cache.wait_for_sync()
        made = await client.create(ConfigMap("a", api.namespace, labels={"tier": "web"}))
        await client.create(ConfigMap("b", api.namespace, labels={"tier": "db"}))
        secret = await client.create(Secret("s", api.namespace, stringData={"password": "x"}))
        async with asyncio.timeout(10):
            await web.wait_until(made.resource_version)
            await names.wait_until(secret.resource_version)
        assert [obj.name for obj in web.list()] == ["a"]
        (shown,) = names.list()
        assert (shown.kind, shown.name, "data" in shown) == ("Secret", "s", False)
        where = (ConfigMap, "a", api.namespace)
        out = await client.patch(*where, {"metadata": {"labels": None}}, type=PatchType.MERGE)
        async with asyncio.timeout(10):
            await web.wait_until(out.resource_version)
        assert web.list() == []
        assert not cache.covers(ConfigMap, api.namespace)
        assert not cache.covers(Secret, api.namespace)
