"""Fixtures of the runtime tests: a fake client, and an embedded server in virtual time."""

import asyncio
import itertools
from contextlib import asynccontextmanager

import pytest
import virtual_time

import fairlead as fl
from fairlead.api.errors import ApiError
from fairlead.api.objects import Object
from fairlead.client.client import Client, PatchType
from fairlead.runtime.definitions import install_missing
from fairlead.server.app import Server
from fairlead.testing import virtual


def api_error(reason, code):
    return ApiError.of({"reason": reason, "code": code, "message": reason})


class FakeClient:
    """A fake Client that stores objects in a dict.

    Every request takes `delay` seconds. Every request raises `failure_to_raise` if the test has set it.
    """

    def __init__(self):
        self.objects = {}
        self.log = []
        self.delay = 0.0
        self.failure_to_raise = None
        self.events = None  # a queue of watch events: (type, JSON)
        self._versions = itertools.count(1)

    async def _start_request(self, verb):
        self.log.append(verb)
        await asyncio.sleep(self.delay)
        if self.failure_to_raise:
            raise self.failure_to_raise

    def _store(self, obj):
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(next(self._versions)), "uid": "u"}
        self.objects[obj["metadata"]["name"]] = obj
        return Object(obj)

    async def get(self, kind, name, namespace=None):
        await self._start_request("get")
        if name not in self.objects:
            raise api_error("NotFound", 404)
        return Object(self.objects[name])

    async def create(self, obj):
        await self._start_request("create")
        if obj["metadata"]["name"] in self.objects:
            raise api_error("AlreadyExists", 409)
        return self._store(dict(obj))

    async def replace(self, obj):
        await self._start_request("replace")
        name = obj["metadata"]["name"]
        if name not in self.objects:
            raise api_error("NotFound", 404)
        if obj["metadata"]["resourceVersion"] != self.objects[name]["metadata"]["resourceVersion"]:
            raise api_error("Conflict", 409)
        return self._store(dict(obj))

    @asynccontextmanager
    async def watch(self, kind, namespace, *, fields):
        """Open a watch of the events in `self.events`, or raise Forbidden if the test has not set it."""
        if self.events is None:
            raise api_error("Forbidden", 403)
        yield self._receive_events()

    async def _receive_events(self):
        while True:
            yield await self.events.get()

    async def patch(self, kind, name, namespace, patch, *, type):  # noqa: A002
        await self._start_request("patch")
        if name not in self.objects:
            raise api_error("NotFound", 404)
        return self._store({**self.objects[name], **patch})


@pytest.fixture
def server():
    return FakeClient()


class RecordingTransport:
    """A transport that records the method, path and response status of every request except watches."""

    def __init__(self, inner):
        self._transport = inner
        self.requests = []

    async def request(self, request):
        response = await self._transport.request(request)
        self.requests.append((request.method, request.path, response.status))
        return response

    async def stream(self, request):
        return await self._transport.stream(request)

    async def close(self): ...


@pytest.fixture
def recording_transport():
    return RecordingTransport


class EmbeddedCluster:
    """An embedded server in virtual time with two custom kinds, and a client that acts as another user."""

    def __init__(self):
        self.world = virtual.world()
        self.server = Server(self.world, controllers=("gc",))
        self.client = Client(self.server.transport(), self.world, user_agent="somebody-else")
        self.transport = RecordingTransport(self.server.transport())

    async def start(self):
        await install_missing(self.client, [Thing, Other])
        return self

    async def create(self, name, kind=None, **fields):
        return await self.client.create((kind or Thing)(name, "default", **({"spec": {}} | fields)))

    async def get_thing(self, name):
        return await self.client.get(Thing, name, "default")

    async def patch_thing(self, name, **fields):
        return await self.client.patch(Thing, name, "default", fields, type=PatchType.MERGE)

    def running(self, op, **options):
        return op.running(self.transport, self.world, **options)


Thing = fl.kind("test.example.com/v1", "Thing")
Other = fl.kind("test.example.com/v1", "Other")


@asynccontextmanager
async def started_cluster():
    yield await EmbeddedCluster().start()


@pytest.fixture
def run_in_virtual_time():
    """Return a function that runs a test in virtual time and passes it an EmbeddedCluster."""

    def run(test):
        return virtual_time.run_in_virtual_time(test, started_cluster)

    return run
