"""The environment of write tests: a writer, a transport with faults, a cache that can be stale, and the Widget kind."""

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
_LISTENERS = {
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
    "listeners": _LISTENERS,
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
    """A transport that records each request, runs other writes before or after it, and can lose responses."""

    def __init__(self, transport):
        self.transport = transport
        self.sent_requests = []  # (method, path with query, decoded body)
        self.before_writes = []  # coroutine functions; each runs once, before the next write
        self.after_writes = []  # the same, after the next write
        self.lost_responses = 0  # the number of answers to writes that are lost
        self.cancelled_writes = 0  # the number of writes that are cancelled after the server received them
        self.after_read_counts = {}  # number of reads -> a coroutine function that runs once after them

    async def request(self, request):
        if request.method != "GET" and self.before_writes:
            await self.before_writes.pop(0)()
        response = await self.transport.request(request)
        if request.method != "GET" and self.after_writes:
            await self.after_writes.pop(0)()
        if not _DISCOVERY.fullmatch(request.path):
            path_with_query = f"{request.path}?{urlencode(request.query)}" if request.query else request.path
            self.sent_requests.append(
                (request.method, path_with_query, json.loads(request.body) if request.body else None)
            )
        if request.method == "GET" and (callback := self.after_read_counts.pop(len(self.reads), None)):
            await callback()
        if request.method != "GET" and self.lost_responses:
            self.lost_responses -= 1
            raise ConnectionResetError("the answer was lost")
        if request.method != "GET" and self.cancelled_writes:
            self.cancelled_writes -= 1
            raise asyncio.CancelledError
        return response

    async def stream(self, request):
        return await self.transport.stream(request)

    async def close(self):
        await self.transport.close()

    @property
    def writes(self):
        return [method for method, _, _ in self.sent_requests if method != "GET"]

    @property
    def reads(self):
        return [method for method, _, _ in self.sent_requests if method == "GET"]

    def after_reads(self, count, callback):
        self.after_read_counts[len(self.reads) + count] = callback

    def forget_requests(self):
        self.sent_requests.clear()


class FakeCache:
    """A cache that contains only the objects that the test and own writes put into it, so it can be stale."""

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
        """Return a context manager in which a `RecordingClient` records its own write."""
        yield _OwnWrite(self, kind, namespace)

    def observe_removal(self, kind, name, namespace, uid):
        obj = self.objects.get((kind.kind, namespace, name))
        if obj is not None and obj.uid == uid:
            del self.objects[kind.kind, namespace, name]


class _OwnWrite:
    def __init__(self, cache, kind, namespace):
        self._cache, self._kind, self._namespace = cache, kind, namespace

    def record(self, obj):
        if is_removed(obj):
            self._cache.observe_removal(self._kind, obj.name, obj.namespace, obj.uid)
        else:
            self._cache.put(self._kind, obj)

    def record_delete(self, name, uid, obj):
        if obj is not None and not is_removed(obj, is_deletion=True):
            self._cache.put(self._kind, obj)
        else:
            self._cache.observe_removal(self._kind, name, self._namespace, uid)


class WriteTestEnvironment:
    """A writer with a cache, a writer without one, and a client that acts as another writer (`foreign_client`)."""

    def __init__(self, api, transport):
        self.namespace = api.namespace
        self.transport = transport
        self.faulty_transport = FaultyTransport(transport)
        self.world = World()
        self.client = Client(self.faulty_transport, self.world)
        self.foreign_client = Client(transport, self.world, user_agent="someone-else")
        self.cache = FakeCache()
        self.writer = Writer(self.client, self.world, MANAGER)
        self.recording_client = RecordingClient(self.faulty_transport, self.world, cache=self.cache)
        self.cached_writer = Writer(self.recording_client, self.world, MANAGER, self.cache)

    async def widget(self, name="w", **fields):
        """Create a widget as another writer, and forget the recorded requests."""
        status = fields.pop("status", None)
        created = await self.foreign_client.create(WIDGET(name, self.namespace, **fields), field_manager="maker")
        if status is not None:
            patch = {"status": status}
            created = await self.merge_patch(created, patch, subresource="status")
        self.faulty_transport.forget_requests()
        return created

    async def config_map(self, name="cm", **fields):
        created = await self.foreign_client.create(ConfigMap(name, self.namespace, **fields), field_manager="maker")
        self.faulty_transport.forget_requests()
        return created

    async def merge_patch(self, obj, patch, subresource=None, manager="someone"):
        """Send a merge patch as another writer."""
        return await self.foreign_client.patch(
            self.kind_of(obj), obj.name, obj.namespace, patch,
            type=PatchType.MERGE, subresource=subresource, field_manager=manager,
        )  # fmt: skip

    async def get_live(self, obj):
        return await self.foreign_client.get(self.kind_of(obj), obj.name, obj.namespace)

    async def exists(self, obj):
        try:
            return (await self.get_live(obj)).uid == obj.uid
        except errors.NotFound:
            return False

    async def recreate(self, obj):
        """Delete the object and create another one with the same name, as another writer."""
        await self.foreign_client.delete(self.kind_of(obj), obj.name, obj.namespace)
        fields = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
        meta = {key: obj.metadata[key] for key in ("name", "namespace", "labels") if key in obj.metadata}
        return await self.foreign_client.create(Object({**fields, "metadata": meta}), field_manager="maker")

    async def send_raw(self, method, path, body=None, kind="json", **query):
        """Send a request as another writer, and return the status code and the decoded body."""
        content_types = {"json": "application/json", "apply": "application/apply-patch+yaml"}
        headers = {"Content-Type": content_types.get(kind, f"application/{kind}+json"), "User-Agent": "raw/1"}
        encoded_body = None if body is None else gojson.dumps(body)
        response = await self.transport.request(
            HttpRequest(method, path, query=query, headers=headers, body=encoded_body)
        )
        return response.status, json.loads(response.body)

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
async def env(api):
    """Create an environment with a new namespace and the Widget kind."""
    env = WriteTestEnvironment(api, api.transport())
    await install(env.foreign_client)
    return env
