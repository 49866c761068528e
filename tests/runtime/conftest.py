"""Fixtures of the runtime tests: a fake client, and an embedded server in virtual time."""

import asyncio
import itertools
from contextlib import asynccontextmanager

import pytest
from virtual_time import run_in_virtual_time

import fairlead as fl
from fairlead.api.errors import ApiError
from fairlead.api.objects import Object
from fairlead.client.client import Client, PatchType
from fairlead.runtime.definitions import install_missing
from fairlead.server.app import Server
from fairlead.testing import virtual


def refusal(reason, code):
    return ApiError.of({"reason": reason, "code": code, "message": reason})


class OneObject:
    """A fake Client with a dict of objects. Each request takes `delay` seconds, and raises `fail` while it is set."""

    def __init__(self):
        self.objects = {}
        self.log = []
        self.delay = 0.0
        self.fail = None
        self._versions = itertools.count(1)

    async def _arrive(self, verb):
        self.log.append(verb)
        await asyncio.sleep(self.delay)
        if self.fail:
            raise self.fail

    def _store(self, obj):
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(next(self._versions)), "uid": "u"}
        self.objects[obj["metadata"]["name"]] = obj
        return Object(obj)

    async def get(self, kind, name, namespace=None):
        await self._arrive("get")
        if name not in self.objects:
            raise refusal("NotFound", 404)
        return Object(self.objects[name])

    async def create(self, obj):
        await self._arrive("create")
        if obj["metadata"]["name"] in self.objects:
            raise refusal("AlreadyExists", 409)
        return self._store(dict(obj))

    async def replace(self, obj):
        await self._arrive("replace")
        name = obj["metadata"]["name"]
        if name not in self.objects:
            raise refusal("NotFound", 404)
        if obj["metadata"]["resourceVersion"] != self.objects[name]["metadata"]["resourceVersion"]:
            raise refusal("Conflict", 409)
        return self._store(dict(obj))

    async def patch(self, kind, name, namespace, patch, *, type):  # noqa: A002
        await self._arrive("patch")
        if name not in self.objects:
            raise refusal("NotFound", 404)
        return self._store({**self.objects[name], **patch})


@pytest.fixture
def server():
    return OneObject()


class Counting:
    """A transport that records each request, except watches, with the status of its response."""

    def __init__(self, inner):
        self._inner = inner
        self.requests = []

    async def request(self, request):
        answer = await self._inner.request(request)
        self.requests.append((request.method, request.path, answer.status))
        return answer

    async def stream(self, request):
        return await self._inner.stream(request)

    async def close(self): ...


@pytest.fixture
def counting():
    return Counting


class Bed:
    """An embedded server in virtual time with two custom kinds, and a client that acts as other users."""

    def __init__(self):
        self.world = virtual.world()
        self.server = Server(self.world, controllers=("gc",))
        self.client = Client(self.server.transport(), self.world, user_agent="somebody-else")
        self.wire = Counting(self.server.transport())

    async def start(self):
        await install_missing(self.client, [Thing, Other])
        return self

    async def make(self, name, kind=None, **fields):
        return await self.client.create((kind or Thing)(name, "default", **({"spec": {}} | fields)))

    async def thing(self, name):
        return await self.client.get(Thing, name, "default")

    async def edit(self, name, **fields):
        return await self.client.patch(Thing, name, "default", fields, type=PatchType.MERGE)

    def running(self, op, **options):
        return op.running(self.wire, self.world, **options)


Thing = fl.kind("test.example.com/v1", "Thing")
Other = fl.kind("test.example.com/v1", "Other")


@asynccontextmanager
async def started_bed():
    yield await Bed().start()


@pytest.fixture
def virtually():
    """Run a coroutine function, given a Bed, in virtual time."""

    def run(test):
        return run_in_virtual_time(test, started_bed)

    return run
