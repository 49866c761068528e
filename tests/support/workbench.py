"""The environment of write tests: a writer, a transport with faults, a cache that can be stale, and a kind."""

import asyncio
import contextlib
import json
import re
from urllib.parse import urlencode

import pytest

from fairlead.api import errors, gojson, kinds
from fairlead.api.builtin import ConfigMap, CustomResourceDefinition
from fairlead.api.objects import Object, is_removed
from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.cache.own_versions import OwnVersions
from fairlead.cache.recording import RecordingClient
from fairlead.client.client import Client, PatchType
from fairlead.writes import Writer

MANAGER = "ours"
_DISCOVERY = re.compile("/apis?(/[^/]+){0,2}")
WIDGET = kinds.kind("writes.fairlead.test/v1", "Widget")

_TEXT, _INT = {"type": "string"}, {"type": "integer"}
_KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": _TEXT, "hostname": _TEXT, "port": _INT, "mode": {"type": "string", "default": "plain"}},
    },
}
_CONDITION = {
    "type": "object",
    "required": ["type"],
    "properties": {
        **dict.fromkeys(("type", "status", "reason", "message"), _TEXT),
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": _INT,
    },
}
_CONDITIONS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": _CONDITION,
}
_SPEC = {
    "size": _INT,
    "note": _TEXT,
    "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is immutable"}]},
    "listeners": _KEYED,
    "tags": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
    "lines": {"type": "array", "items": _TEXT},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "options": {"type": "object", "additionalProperties": _TEXT},
}
_STATUS = {
    "phase": _TEXT,
    "observedGeneration": _INT,
    "plan": {"type": "object", "properties": {"id": _TEXT, "steps": {"type": "array", "items": _TEXT}}},
    "counts": {"type": "object", "additionalProperties": _INT},
    "addresses": {"type": "array", "items": _TEXT},
    "ends": {
        "type": "array",
        "items": {"type": "object", "properties": {"name": _TEXT, "mode": {"type": "string", "default": "plain"}}},
    },
    "conditions": _CONDITIONS,
}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.writes.fairlead.test"},
    "spec": {
        "group": WIDGET.group,
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": _SPEC},
                            "status": {"type": "object", "properties": _STATUS},
                        },
                    }
                },
            }
        ],
    },
}


class FaultyTransport:
    """A transport that records each request, runs other writes before or after it, and can lose answers."""

    def __init__(self, transport):
        self.transport = transport
        self.sent = []  # (method, path with query, decoded body)
        self.first = []  # coroutine functions; each runs once, before the next write
        self.then = []  # the same, after the next write
        self.lost = 0  # the number of answers to writes that are lost
        self.cancelled = 0  # the number of writes that are cancelled after the server received them
        self.later = {}  # number of reads -> a coroutine function that runs once after them

    async def request(self, request):
        if request.method != "GET" and self.first:
            await self.first.pop(0)()
        answer = await self.transport.request(request)
        if request.method != "GET" and self.then:
            await self.then.pop(0)()
        if not _DISCOVERY.fullmatch(request.path):
            where = f"{request.path}?{urlencode(request.query)}" if request.query else request.path
            self.sent.append((request.method, where, json.loads(request.body) if request.body else None))
        if request.method == "GET" and (go := self.later.pop(len(self.reads), None)):
            await go()
        if request.method != "GET" and self.lost:
            self.lost -= 1
            raise ConnectionResetError("the answer was lost")
        if request.method != "GET" and self.cancelled:
            self.cancelled -= 1
            raise asyncio.CancelledError
        return answer

    async def stream(self, request):
        return await self.transport.stream(request)

    async def close(self):
        await self.transport.close()

    @property
    def writes(self):
        return [method for method, _, _ in self.sent if method != "GET"]

    @property
    def reads(self):
        return [method for method, _, _ in self.sent if method == "GET"]

    def after_reads(self, count, go):
        self.later[len(self.reads) + count] = go

    def forget(self):
        self.sent.clear()


class FakeCache:
    """A cache that has only what the test and own writes put into it, so it can be stale."""

    def __init__(self):
        self.objects = {}
        self.decoded = 0
        self.own_versions = OwnVersions()

    def put(self, kind, obj):
        self.objects[kind.kind, obj.namespace, obj.name] = obj
        return obj

    def covers(self, kind, namespace):
        return True

    def version(self, kind, name, namespace):
        obj = self.objects.get((kind.kind, namespace, name))
        return None if obj is None else (obj.uid, obj.resource_version)

    def peek(self, kind, name, namespace):
        self.decoded += 1
        return self.objects.get((kind.kind, namespace, name))

    @contextlib.contextmanager
    def writing(self, kind, namespace):
        """Record a write of a `RecordingClient`."""
        yield _OwnWrite(self, kind, namespace)

    def observe_removal(self, kind, name, namespace, uid):
        obj = self.objects.get((kind.kind, namespace, name))
        if obj is not None and obj.uid == uid:
            del self.objects[kind.kind, namespace, name]


class _OwnWrite:
    def __init__(self, view, kind, namespace):
        self._view, self._kind, self._namespace = view, kind, namespace

    def record(self, obj):
        if is_removed(obj):
            self._view.observe_removal(self._kind, obj.name, obj.namespace, obj.uid)
        else:
            self._view.put(self._kind, obj)

    def record_delete(self, name, uid, obj):
        if obj is not None and not is_removed(obj, by_delete=True):
            self._view.put(self._kind, obj)
        else:
            self._view.observe_removal(self._kind, name, self._namespace, uid)


class Bench:
    """Writers without and with a cache. `other` is the client of another writer."""

    def __init__(self, api, transport):
        self.namespace = api.namespace
        self.transport = transport
        self.wire = FaultyTransport(transport)
        self.world = World()
        self.client = Client(self.wire, self.world)
        self.other = Client(transport, self.world, user_agent="someone-else")
        self.view = FakeCache()
        self.writer = Writer(self.client, self.world, MANAGER)
        self.recording = RecordingClient(self.wire, self.world, cache=self.view)
        self.cached = Writer(self.recording, self.world, MANAGER, self.view)

    async def widget(self, name="w", **fields):
        """Create a widget as another writer, and forget the requests."""
        status = fields.pop("status", None)
        made = await self.other.create(WIDGET(name, self.namespace, **fields), field_manager="maker")
        if status is not None:
            patch = {"status": status}
            made = await self.merge(made, patch, subresource="status")
        self.wire.forget()
        return made

    async def config_map(self, name="cm", **fields):
        made = await self.other.create(ConfigMap(name, self.namespace, **fields), field_manager="maker")
        self.wire.forget()
        return made

    async def merge(self, obj, patch, subresource=None, manager="someone"):
        """Send a merge patch as another writer."""
        return await self.other.patch(
            self.kind_of(obj), obj.name, obj.namespace, patch,
            type=PatchType.MERGE, subresource=subresource, field_manager=manager,
        )  # fmt: skip

    async def live(self, obj):
        return await self.other.get(self.kind_of(obj), obj.name, obj.namespace)

    async def exists(self, obj):
        try:
            return (await self.live(obj)).uid == obj.uid
        except errors.NotFound:
            return False

    async def recreate(self, obj):
        """Delete the object as someone else, and create another one of that name."""
        await self.other.delete(self.kind_of(obj), obj.name, obj.namespace)
        again = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
        meta = {key: obj.metadata[key] for key in ("name", "namespace", "labels") if key in obj.metadata}
        return await self.other.create(Object({**again, "metadata": meta}), field_manager="maker")

    async def raw(self, method, path, body=None, kind="json", **query):
        """Send a request as another writer, and return (status code, decoded body)."""
        types = {"json": "application/json", "apply": "application/apply-patch+yaml"}
        headers = {"Content-Type": types.get(kind, f"application/{kind}+json"), "User-Agent": "raw/1"}
        data = None if body is None else gojson.dumps(body)
        answer = await self.transport.request(HttpRequest(method, path, query=query, headers=headers, body=data))
        return answer.status, json.loads(answer.body)

    @staticmethod
    def kind_of(obj):
        return kinds.kind(obj.api_version, obj.kind)


async def install(client):
    """Install the Widget kind and wait until it is served."""
    with contextlib.suppress(errors.AlreadyExists):
        await client.create(CRD)
    while True:
        crd = Object(await client.get(CustomResourceDefinition, CRD["metadata"]["name"]))
        if crd.is_true("Established"):
            break
        await asyncio.sleep(0.05)
    while True:
        try:
            await client.list(WIDGET, "default")
            return
        except errors.ApiError:
            await asyncio.sleep(0.05)


@pytest.fixture
async def bench(api):
    """A bench with a new namespace and the Widget kind."""
    bench = Bench(api, api.transport())
    await install(bench.other)
    return bench
