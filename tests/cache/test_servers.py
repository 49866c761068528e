"""Tests of the cache with random writers and a failing network. At the end, the tests compare the cache with a list."""

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


class UnreliableTransport:
    """A transport that randomly rejects requests, and breaks, ends, hangs or truncates watches."""

    def __init__(self, inner, seed, fault_types=("break", "end", "mid", "hang")):
        self.inner, self.rng, self.fault_types, self.is_reliable = inner, random.Random(seed), fault_types, False

    async def request(self, request):
        if not self.is_reliable and self.rng.random() < 0.2:
            raise NotSent("refused")
        return await self.inner.request(request)

    async def stream(self, request):
        if not self.is_reliable and self.rng.random() < 0.2:
            raise NotSent("refused")
        self.streams = [UnreliableStream(self, await self.inner.stream(request))]
        return self.streams[0]

    def break_streams(self):
        for stream in self.streams:
            stream.broken.set()

    async def close(self):
        await self.inner.close()


class UnreliableStream:
    def __init__(self, network, inner):
        self.network, self.inner = network, inner
        self.status, self.headers = inner.status, inner.headers
        self.broken = asyncio.Event()

    async def read(self):
        read_task, broken_wait = (asyncio.ensure_future(task) for task in (self.inner.read(), self.broken.wait()))
        try:
            await asyncio.wait([read_task, broken_wait], return_when=asyncio.FIRST_COMPLETED)
            if broken_wait.done():
                raise ConnectionResetError("cut")
            chunk = read_task.result()
        finally:
            for task in (read_task, broken_wait):
                task.cancel()
            await asyncio.gather(read_task, broken_wait, return_exceptions=True)
        rng = self.network.rng
        if self.network.is_reliable or rng.random() < 0.9:
            return chunk
        match rng.choice(self.network.fault_types):
            case "break":
                raise ConnectionResetError("cut")
            case "end":
                return b""
            case "hang":
                await asyncio.get_running_loop().create_future()
        length = rng.randrange(len(chunk)) if chunk else 0
        self.network, first_part = CutConnection(), chunk[:length]
        return first_part

    async def close(self):
        await self.inner.close()


class CutConnection:
    is_reliable, rng = False, None

    def __getattr__(self, name):
        raise ConnectionResetError("cut")


async def write_randomly(client, rng, namespace, cache=None):
    """Send a random write. If `cache` is set, record the write there as an own write."""
    name = rng.choice(NAMES)
    identity = (ConfigMap, name, namespace)
    with cache.writing(ConfigMap, namespace) if cache else _NoRecorder() as own_write:
        match rng.choice(["create", "edit", "edit", "delete", "hold", "release"]):
            case "create":
                own_write.record(await client.create(ConfigMap(name, namespace, data={"n": str(rng.random())})))
            case "edit":
                patch = {"data": {"n": str(rng.random())}}
                own_write.record(await client.patch(*identity, patch, type=PatchType.MERGE))
            case "hold":
                patch = {"metadata": {"finalizers": ["test.example.com/hold"]}}
                own_write.record(await client.patch(*identity, patch, type=PatchType.MERGE))
            case "release":
                patch = {"metadata": {"finalizers": None}}
                own_write.record(await client.patch(*identity, patch, type=PatchType.MERGE))
            case "delete":
                existing = await client.get(*identity)
                own_write.record_delete(name, existing.uid, await client.delete(*identity, uid=existing.uid))


class _NoRecorder:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def record(self, response):
        pass

    def record_delete(self, name, uid, response):
        pass


async def write_repeatedly(client, rng, count, namespace, cache=None, *, delays=(0, 0, 0.001, 0.5, 5)):
    for _ in range(count):
        await asyncio.sleep(rng.choice(delays))
        with contextlib.suppress(ApiError, UnknownOutcome, OSError):  # it exists, does not exist, or the network failed
            await write_randomly(client, rng, namespace, cache)


def _version(snapshot):
    return None if snapshot is None else (snapshot.uid, snapshot.version)


@pytest.mark.parametrize("seed", range(25))
def test_the_cache_converges_with_random_writers_and_a_failing_network(seed):
    async def main():
        world, rng = virtual.world(seed), random.Random(seed)
        server = Server(world)
        network = UnreliableTransport(server.transport(), seed)
        own_client, foreign_client = Client(network, world), Client(server.transport(), world)
        for name in NAMES[:3]:
            await foreign_client.create(ConfigMap(name, "default"))
        cache = Cache(own_client, world)
        view = cache.watch(ConfigMap, namespaces=["default"])
        changes = []
        view.subscribe(
            lambda write_randomly: changes.append(
                (write_randomly.name, _version(write_randomly.old), _version(write_randomly.new))
            )
        )
        async with cache:
            writers = [
                write_repeatedly(foreign_client, rng, 60, "default"),
                write_repeatedly(own_client, rng, 60, "default", cache),
            ]
            await asyncio.gather(*writers)
            network.is_reliable = True
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
    """Tests a replaced server: its versions start again, its uids differ, and all cached objects are wrong."""

    async def main():
        world = virtual.world()
        network = UnreliableTransport(Server(world).transport(), 0)
        network.is_reliable = True
        client = Client(network, world)
        cache = Cache(client, world)
        view = cache.watch(ConfigMap)
        changes = []

        def record_change(change):
            if change.namespace == "default":  # A new server has a ConfigMap in kube-system.
                changes.append((change.name, change.new is None))

        view.subscribe(record_change)
        async with cache:
            await cache.wait_for_sync()
            for number in range(30):
                with cache.writing(ConfigMap, "default") as own_write:
                    own_write.record(await client.create(ConfigMap(f"a{number}", "default")))
            await asyncio.sleep(1)
            changes.clear()
            network.inner = Server(world).transport()
            await client.create(ConfigMap("a1", "default", data={"another": "one"}))
            network.break_streams()
            await asyncio.sleep(200)  # No bookmark confirms the version, because the new server has not reached it.
            assert [(obj.name, obj["data"]) for obj in view.list("default")] == [("a1", {"another": "one"})]
            assert sorted(changes) == sorted([(f"a{number}", True) for number in range(30)] + [("a1", False)])

    virtual.run(main())


async def wait_until_caught_up(cache, view, client, namespace):
    """Create a marker object and wait until the watch reports it."""
    marker = await client.create(ConfigMap("marker", namespace))
    async with asyncio.timeout(30):
        await view.wait_until(marker.resource_version)


async def test_the_cache_converges_with_random_writers_on_each_server(api):
    world, rng = World(), random.Random(1)
    network = UnreliableTransport(api.transport(), 1, ["break", "end", "mid"])
    own_client, foreign_client = Client(network, world), Client(api.transport(), world)
    cache = Cache(own_client, world)
    view = cache.watch(ConfigMap, namespaces=[api.namespace])
    async with cache:
        writers = [
            write_repeatedly(foreign_client, rng, 100, api.namespace, delays=[0, 0.001, 0.03]),
            write_repeatedly(own_client, rng, 100, api.namespace, cache, delays=[0, 0.001, 0.03]),
        ]
        await asyncio.gather(*writers)
        network.is_reliable = True
        await wait_until_caught_up(cache, view, foreign_client, api.namespace)
        assert await cache.find_differences() == []
        assert cache.is_caught_up


async def test_own_writes_are_visible_before_the_watch_reports_them(api):
    client = Client(api.transport(), World())
    cache = Cache(client, World(), field_managers=["ours"])
    view = cache.watch(ConfigMap)
    async with cache:
        await cache.wait_for_sync()
        for number in range(20):
            with cache.writing(ConfigMap, api.namespace) as own_write:
                obj = ConfigMap("a", api.namespace, data={"n": str(number)})
                own_write.record(await client.apply(obj, field_manager="ours"))
            obj_read = view.get("a", api.namespace)
            assert obj_read["data"] == {"n": str(number)}
            assert [entry["manager"] for entry in obj_read["metadata"]["managedFields"]] == ["ours"]
        with cache.writing(ConfigMap, api.namespace) as own_write:
            own_write.record_delete(
                "a", obj_read.uid, await client.delete(ConfigMap, "a", api.namespace, uid=obj_read.uid)
            )
        assert view.get("a", api.namespace) is None
        await wait_until_caught_up(cache, view, client, api.namespace)
        assert [obj.name for obj in view.list(api.namespace) if obj.name == "a"] == []
        assert cache.is_caught_up


POD = Pod("a", spec={"containers": [{"name": "c", "image": "i"}]})
SERVICE = Service("a", spec={"ports": [{"port": 80}]})


@pytest.mark.parametrize(
    "obj_to_create", [ConfigMap("a"), Secret("a"), SERVICE, POD], ids=lambda obj_to_create: obj_to_create["kind"]
)
async def test_an_own_delete_hides_the_object_for_every_answer(api, obj_to_create):
    """Tests every response to a delete: a Status, the object with or without deletionTimestamp, or a grace
    period of 0.
    """
    client = Client(api.transport(), World())
    kind = await client.resolve(kinds.kind(obj_to_create["apiVersion"], obj_to_create["kind"]))
    cache = Cache(client, World())
    view = cache.watch(kind, namespaces=[api.namespace])
    removed = asyncio.Event()
    view.subscribe(lambda write_randomly: removed.set() if write_randomly.new is None else None)
    async with cache:
        await cache.wait_for_sync()
        obj = await client.create(
            {**obj_to_create, "metadata": {**obj_to_create["metadata"], "namespace": api.namespace}}
        )
        await view.wait_until(obj.resource_version)
        with cache.writing(kind, api.namespace) as own_write:
            own_write.record_delete("a", obj.uid, await client.delete(kind, "a", api.namespace, uid=obj.uid))
        assert view.get("a", api.namespace) is None
        async with asyncio.timeout(10):
            await removed.wait()
        assert view.list() == []
        assert cache.is_caught_up


async def test_removing_the_last_finalizer_hides_the_object_immediately(api):
    client = Client(api.transport(), World())
    cache = Cache(client, World())
    view = cache.watch(ConfigMap, namespaces=[api.namespace])
    identity = (ConfigMap, "a", api.namespace)
    removed = asyncio.Event()
    view.subscribe(lambda write_randomly: removed.set() if write_randomly.new is None else None)
    obj_with_finalizer = ConfigMap("a", api.namespace)
    obj_with_finalizer["metadata"]["finalizers"] = ["test.example.com/hold"]
    async with cache:
        await cache.wait_for_sync()
        obj = await client.create(obj_with_finalizer)
        with cache.writing(ConfigMap, api.namespace) as own_write:
            own_write.record_delete("a", obj.uid, await client.delete(*identity))
        assert view.get("a", api.namespace).deleting
        with cache.writing(ConfigMap, api.namespace) as own_write:
            own_write.record(await client.patch(*identity, {"metadata": {"finalizers": None}}, type=PatchType.MERGE))
        assert view.get("a", api.namespace) is None
        async with asyncio.timeout(10):
            await removed.wait()
        assert cache.is_caught_up


@pytest.mark.only("embedded", reason="a fresh etcd has forgotten nothing")
async def test_a_compacted_version_lists_again_and_reports_missed_deletions(api):
    client = Client(api.transport(), World())
    cache = Cache(client, World())
    view = cache.watch(ConfigMap, namespaces=[api.namespace])
    (informer,), (reflector,) = view._informers, view._reflectors
    changes, removed = [], asyncio.Event()

    def handler(write_randomly):
        changes.append((write_randomly.name, write_randomly.new is None))
        if write_randomly.new is None:
            removed.set()

    view.subscribe(handler)
    for name in ("a", "b"):
        await client.create(ConfigMap(name, api.namespace))
    async with cache:
        await cache.wait_for_sync()
    await client.delete(ConfigMap, "a", api.namespace)
    changes.clear()
    informer.position, informer.resource_version = 1, "1"
    reflector._state = reflector._state.on_replaced()
    async with cache:
        async with asyncio.timeout(10):
            await removed.wait()
    assert changes == [("a", True)]


async def test_selectors_and_metadata_only_can_be_watched(api):
    client = Client(api.transport(), World())
    cache = Cache(client, World())
    web_view = cache.watch(ConfigMap, namespaces=[api.namespace], labels="tier in (web)")
    metadata_view = cache.watch(Secret, namespaces=[api.namespace], metadata_only=True)
    async with cache:
        await cache.wait_for_sync()
        obj_to_create = await client.create(ConfigMap("a", api.namespace, labels={"tier": "web"}))
        await client.create(ConfigMap("b", api.namespace, labels={"tier": "db"}))
        secret = await client.create(Secret("s", api.namespace, stringData={"password": "x"}))
        async with asyncio.timeout(10):
            await web_view.wait_until(obj_to_create.resource_version)
            await metadata_view.wait_until(secret.resource_version)
        assert [obj.name for obj in web_view.list()] == ["a"]
        (obj_read,) = metadata_view.list()
        assert (obj_read.kind, obj_read.name, "data" in obj_read) == ("Secret", "s", False)
        identity = (ConfigMap, "a", api.namespace)
        unlabelled = await client.patch(*identity, {"metadata": {"labels": None}}, type=PatchType.MERGE)
        async with asyncio.timeout(10):
            await web_view.wait_until(unlabelled.resource_version)
        assert web_view.list() == []
        assert not cache.covers(ConfigMap, api.namespace)
        assert not cache.covers(Secret, api.namespace)


class RequestRecorder:
    """A transport that records lists and watches, and can break the open watch or answer 503 to the next one."""

    def __init__(self, inner):
        self._inner = inner
        self.requests = []
        self.streams = []
        self.fails_next_watch = False

    async def request(self, request):
        if request.method == "GET" and request.path.endswith("/configmaps"):
            self.requests.append("list")
        return await self._inner.request(request)

    async def stream(self, request):
        self.requests.append("initial" if request.query.get("sendInitialEvents") else "watch")
        if self.fails_next_watch:
            self.fails_next_watch = False
            return ServerUnavailable()
        self.streams = [BreakableStream(await self._inner.stream(request))]
        return self.streams[0]

    async def close(self): ...


class ServerUnavailable:
    status, headers = 503, {}

    async def read(self):
        return b""

    async def close(self): ...


class BreakableStream:
    def __init__(self, inner):
        self._inner = inner
        self.status, self.headers = inner.status, inner.headers
        self._broken = asyncio.Event()

    def break_connection(self):
        self._broken.set()

    async def read(self):
        reading, broken = (asyncio.ensure_future(each) for each in (self._inner.read(), self._broken.wait()))
        try:
            await asyncio.wait([reading, broken], return_when=asyncio.FIRST_COMPLETED)
            if broken.done():
                raise ConnectionResetError("cut")
            return reading.result()
        finally:
            for each in (reading, broken):
                each.cancel()
            await asyncio.gather(reading, broken, return_exceptions=True)

    async def close(self):
        await self._inner.close()


@pytest.mark.parametrize("fails_next_watch", [False, True])
async def test_a_cut_watch_resumes_with_one_request_on_each_server(api, fails_next_watch):
    client, transport = Client(api.transport(), World()), RequestRecorder(api.transport())
    cache = Cache(Client(transport, World()), World())
    view = cache.watch(ConfigMap, namespaces=[api.namespace])
    async with cache:
        await cache.wait_for_sync()
        await client.create(ConfigMap("before", api.namespace))
        transport.requests.clear()
        transport.fails_next_watch = fails_next_watch
        transport.streams[0].break_connection()
        after = await client.create(ConfigMap("after", api.namespace))
        await view.wait_until(after.resource_version)
        assert transport.requests == ["watch"] * (1 + fails_next_watch)
        assert {"before", "after"} <= {obj.name for obj in view.list()}
